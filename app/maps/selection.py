"""The part of the page that a selection redraws: nearest sentences, search, the table of selected rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

from app.core import exports, markdown, rows, state
from app.core.address import BOUND, keep_rows
from app.core.component import copy_link
from app.core.latents import geometry, spaces
from app.core.markdown import verbatim
from app.core.uploads import formats
from app.maps import chart, component, compute, settings, slices, star, values
from app.maps.near import Near
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import BgtError

MAX_LISTED = 1_000  # rows of the table
COLUMNS = {"lang": "Language", "text": "Sentence", "translation": "Translation", **rows.COUNTED}
SINGLE = {name: title for name, title in COLUMNS.items() if name not in ("lang", "translation")}  # for one language
NEAREST = 10  # sentences listed in each latent
FOUND = 20  # sentences that a search by meaning or style selects
MAX_OFFERED = 200  # sentences to choose one from
WORDS, MEANING, STYLE, COLUMN = "Words", "Meaning", "Style", "Column"


def forget() -> None:
    """Clear the selection, the search and the interpolation."""
    choose([])
    settings.map_alone([])
    slices.forget()
    st.session_state["find"] = ""
    st.session_state.pop("walked", None)


def choose(chosen: Sequence[str]) -> None:
    """Select these rows; if there is only one, also show its nearest sentences."""
    star.forget()
    st.session_state.update(chosen=list(chosen), focus=chosen[0] if len(chosen) == 1 else None)


@st.fragment
def inspect(
    loaded: state.Loaded,
    fitted: spaces.Spaces,
    method: geometry.Method,
    choice: settings.Choice,
    figures: Mapping[str, partial],
) -> None:
    """Show the selection and the sentences near it; a selection reruns only this."""
    table = fitted.semantic.rows
    ids = table["id"]
    known = frozenset(ids.tolist())
    chosen = [row for row in st.session_state.get("chosen", []) if row in known]
    left, right = st.columns([2, 3], gap="large")
    with left:
        near = nearest(loaded, fitted, chosen)
    selection = compute.among(table, frozenset(chosen))
    component.light(
        fitted.semantic.content,
        component.Light(
            chosen=selection,
            lit=selection if len(chosen) != 1 else selection | near.mask(table),
            sentence=near.place(table),
            near=near.rings(table),
            movable=star.movable(loaded, fitted, near.row),
            answered=star.answered(),
        ),
        on_picked=partial(pick, fitted),
        on_moved=partial(star.move, fitted, method),
    )
    with left:
        near.whole(table)
        star.show(loaded, fitted, method, near.row, near.lang)
    with right:
        search(loaded, fitted, bool(chosen))
    near.show(choice.text.langs)
    listed(loaded, fitted, method, choice, figures, chosen)


def listed(
    loaded: state.Loaded,
    fitted: spaces.Spaces,
    method: geometry.Method,
    choice: settings.Choice,
    figures: Mapping[str, partial],
    chosen: Sequence[str],
) -> None:
    """Describe and list the chosen rows, or all."""
    table = fitted.semantic.rows
    by_words = st.session_state["find"].strip() and st.session_state["find_by"] == WORDS
    if not keep_rows([] if by_words else chosen):
        st.caption("This selection is too large for a link: the link opens without it.")
    title = (
        f"{len(chosen):,} selected sentence{'s' * (len(chosen) != 1)}" if chosen else f"All {len(table):,} sentences"
    )
    with st.expander(title, expanded=len(chosen) > 1):
        if len(chosen) > 1:
            markdown.table(
                compute.described(loaded, fitted, chosen),
                "The selected sentences against the rest: how many, how long, their marks, languages and words",
            )
            st.caption("Difference: with its 95% interval; of shares, in percentage points.")
        first = compute.selected(table.set_index("id", drop=False), chosen).head(MAX_LISTED)
        if len(first) < (len(chosen) or len(table)):
            st.caption(f"The first {MAX_LISTED:,}; the export holds them all.")
        columns = COLUMNS if len(choice.text.langs) > 1 else SINGLE
        st.dataframe(first[list(columns)].rename(columns=columns), hide_index=True, alt="The sentences on the maps")
    with st.container(horizontal=True):
        if len(chosen) == 2 and not loaded.cannot_write:
            ends = dict(zip(("start", "end"), table.loc[table["id"].isin(chosen), "text"], strict=True))
            if st.button("Interpolate between these", on_click=st.session_state.update, kwargs=ends):
                st.rerun()  # the form is outside this fragment
        alone = settings.LEAST <= len(chosen) < len(table)
        if alone and st.button("Map these alone", on_click=settings.map_alone, args=(chosen,)):
            st.rerun()  # so are the maps
        slices.show(table["id"], chosen, choose)
        copy_link()
        exports.offer(
            f"bgt-maps-{loaded.short}-seed{method.seed}",
            compute.selected(compute.with_places(fitted, loaded.second_latent), chosen),
            partial(figures[chart.ALL], chosen=chosen),
            caption=f"{loaded.title}, weights {loaded.short}. {compute.caption(method, fitted, loaded.second_latent)}",
            vectors=partial(compute.vectors_of, fitted, loaded.second_latent, chosen),
        )


def pick(fitted: spaces.Spaces) -> None:
    """Select the points that were clicked or drawn around."""
    picked = component.event("picked")
    ids = fitted.semantic.rows["id"]
    if picked.get("key") != fitted.semantic.content:  # the selection is from other sentences
        return
    choose(ids[component.unpacked(picked["rows"], len(ids))].tolist())
    st.session_state["find"] = ""


def nearest(loaded: state.Loaded, fitted: spaces.Spaces, chosen: Sequence[str]) -> Near:
    """Ask for a sentence, with the user's own and the selected ones offered first, and find those near it."""
    table = fitted.semantic.rows.set_index("id")
    own = table.index[table["own"]].tolist()
    offered = list(dict.fromkeys([*own, *chosen, *table.index[:MAX_OFFERED]]))[:MAX_OFFERED]
    focus = st.session_state.get("focus")
    if focus not in table.index and focus != st.session_state.get("typed"):  # the row is no longer on the maps
        focus = None
    if focus is not None and focus not in offered:
        offered.insert(0, focus)
    st.session_state["nearest_of"] = focus
    row = st.selectbox(
        "Nearest sentences of",
        offered,
        format_func=lambda row: table["text"].get(row, row),
        key="nearest_of",
        placeholder="Click a point, or type one",
        accept_new_options=True,
        on_change=focus_on,
        args=(chosen, offered),
    )
    if row is None:
        return Near(None, "", {})
    langs = table["lang"].unique().tolist()
    typed = row not in table.index
    lang = table["lang"].get(row, langs[0])
    if typed and len(langs) > 1:
        lang = st.segmented_control("Its language", langs, default=lang, required=True, format_func=rows.language_name)
    sides = {SEMANTIC: fitted.semantic}
    if lang in fitted.second:
        sides[loaded.second_latent] = fitted.second[lang]
    near = {}
    for latent, space in sides.items():
        if typed:
            near[latent] = compute.closest(loaded, fitted, row[: formats.MAX_CHARACTERS], lang, latent, NEAREST)
        else:
            vector = spaces.vector(space, row)
            near[latent] = spaces.nearest(loaded, vector, space.rows, space.vectors, NEAREST, row)
    return Near(row, lang, near)


def focus_on(chosen: Sequence[str], offered: Sequence[str]) -> None:
    """Select the sentence, unless the selection already contains it; one that is not among those offered was typed."""
    star.forget()
    row = st.session_state["nearest_of"]
    st.session_state["focus"], st.session_state["typed"] = row, row if row not in offered else None
    if row not in chosen:
        st.session_state["chosen"] = [row] if row else []


def search(loaded: state.Loaded, fitted: spaces.Spaces, any_chosen: bool) -> None:
    """Ask for a text, and select the sentences that match it."""
    arguments = (loaded, fitted)
    ways = [WORDS, MEANING, *[STYLE] * bool(fitted.second), COLUMN]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by_column = st.session_state.get("find_by") == COLUMN
        text = st.text_input(
            "Find in sentences", key="find", on_change=find, args=arguments, disabled=by_column, **BOUND
        ).strip()
        way = st.segmented_control(
            "Find by", ways, default=WORDS, required=True, key="find_by", on_change=find, args=arguments
        )
    if way == COLUMN:
        values.choose(fitted.semantic.rows, find, arguments)
        return
    langs = fitted.semantic.rows["lang"].unique().tolist()
    if way != WORDS and len(langs) > 1:
        st.segmented_control(
            "Language of the text",
            langs,
            default=langs[0],
            required=True,
            format_func=rows.language_name,
            key="find_lang",
            on_change=find,
            args=arguments,
        )
    if text and way == WORDS and not any_chosen:
        st.caption(f"No sentence has “{verbatim(text)}”. Find by meaning takes any words.")
    elif text and way != WORDS and any_chosen:
        st.caption(f"Selected: the {FOUND} nearest in the {latent_of(way, loaded)} latent, the nearest first.")


def find(loaded: state.Loaded, fitted: spaces.Spaces) -> None:
    """Select the sentences that match the text or the values; none if the model is busy."""
    text, way, table = st.session_state["find"].strip(), st.session_state["find_by"], fitted.semantic.rows
    if way == COLUMN:
        choose(values.matching(table))
    elif not text:
        choose([])
    elif way == WORDS:
        choose(rows.matching(table, text))
    else:
        lang = st.session_state.get("find_lang") or table["lang"].iloc[0]
        try:
            near = compute.closest(loaded, fitted, text[: formats.MAX_CHARACTERS], lang, latent_of(way, loaded), FOUND)
        except BgtError:
            near = table.head(0)
        choose(near["id"].tolist())


def latent_of(way: str, loaded: state.Loaded) -> str:
    return SEMANTIC if way == MEANING else loaded.second_latent
