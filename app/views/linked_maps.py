"""The maps of all latents, and what is selected on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from app import controls, exports, geometry, inspecting, rows, spaces, state
from app.address import keep_rows
from app.charts import maps, theme
from app.components import maps as browser
from app.components.copy import copy_link
from app.verbatim import written_out
from app.views import moving, neighbours, search
from bgt_core.contracts import SEMANTIC

ALL = "all"  # the maps of all latents in one figure
MAX_LISTED = 1_000  # rows of the table
MAP_HEIGHT = 260  # pixels of each language's map
COLUMNS = {"lang": "Language", "text": "Sentence", "translation": "Translation", **rows.COUNTED}
SINGLE = {name: title for name, title in COLUMNS.items() if name not in ("lang", "translation")}  # of one language


def forget() -> None:
    """Nothing is selected, searched for or interpolated."""
    choose([])
    st.session_state["find"] = ""
    st.session_state.pop("walked", None)


def choose(chosen: Sequence[str]) -> None:
    """These rows are selected; one alone is the sentence whose nearest are shown."""
    st.session_state.update(chosen=list(chosen), focus=chosen[0] if len(chosen) == 1 else None)


def explore(
    loaded: state.Loaded,
    fitted: spaces.Spaces,
    method: geometry.Method,
    choice: controls.Choice,
    paths: Mapping[str, np.ndarray],
) -> None:
    """All maps, and beside them, or below in a narrow window, what is selected."""
    figures = map_figures(fitted, loaded.second_latent, choice, paths)
    table = fitted.semantic.rows
    left, right = st.columns([7, 3], gap="medium")
    with left:
        drawn = [
            browser.Map(
                name,
                figure(hover=False),
                f"Map of the {name} latent: {len(table)} sentences, {method.name}, coloured by "
                f"{rows.colour_title(choice.colour).lower()}. The table beside it lists the same sentences.",
            )
            for name, figure in figures.items()
            if name != ALL
        ]
        languages = {lang: rows.language_name(lang) for lang in choice.text.langs}
        browser.draw(drawn, fitted.semantic.content, table, languages, f"bgt-{{}}-{loaded.short}")
        st.caption(caption(method, fitted, loaded.second_latent))
        if choice.text.credit:
            st.caption(choice.text.credit)
    with right:
        inspect(loaded, fitted, method, choice, figures)


@st.fragment
def inspect(
    loaded: state.Loaded,
    fitted: spaces.Spaces,
    method: geometry.Method,
    choice: controls.Choice,
    figures: Mapping[str, partial],
) -> None:
    """What is selected, and what is near it; a selection reruns only this."""
    table = fitted.semantic.rows
    ids = table["id"]
    known = frozenset(ids.tolist())
    chosen = [row for row in st.session_state.get("chosen", []) if row in known]
    near = neighbours.choose(loaded, fitted, chosen)
    selection = inspecting.among(table, frozenset(chosen))
    browser.light(
        fitted.semantic.content,
        browser.Light(
            chosen=selection,
            lit=selection if len(chosen) != 1 else selection | near.mask(table),
            sentence=near.place(table),
            near=near.rings(loaded, table),
            movable=moving.movable(loaded, fitted, near.row),
            answered=moving.answered(),
        ),
        on_picked=partial(pick, fitted),
        on_moved=partial(moving.move, fitted.semantic.content),
    )
    moving.show(loaded, fitted, near.row, near.lang)
    near.show(choice.text.langs)
    search.box(loaded, fitted, choose, bool(chosen))
    by_words = st.session_state["find"].strip() and st.session_state["find_by"] == search.WORDS
    if not keep_rows([] if by_words else chosen):
        st.caption("This selection is too scattered for a link to hold it: the link opens without it.")
    title = f"{len(chosen):,} selected sentences" if chosen else f"All {len(table):,} sentences"
    with st.expander(title, expanded=len(chosen) > 1):
        if len(chosen) > 1:
            st.table(
                written_out(inspecting.described(loaded, fitted, chosen)),
                border="horizontal",
                hide_index=True,
                alt="The selected sentences against the rest: how many, how long, their marks, languages and words",
            )
            st.caption("Difference: with its 95% interval; of shares, in percentage points.")
        listed = selected(table.set_index("id", drop=False), chosen).head(MAX_LISTED)
        if len(listed) < (len(chosen) or len(table)):
            st.caption(f"The first {MAX_LISTED:,}; the export holds them all.")
        columns = COLUMNS if len(choice.text.langs) > 1 else SINGLE
        st.dataframe(listed[list(columns)].rename(columns=columns), hide_index=True, alt="The sentences on the maps")
    with st.container(horizontal=True):
        copy_link()
        exports.offer(
            f"bgt-maps-{loaded.short}-seed{method.seed}",
            selected(with_places(fitted, loaded.second_latent), chosen),
            partial(figures[ALL], chosen=chosen),
            caption=f"{loaded.title}, weights {loaded.short}. {caption(method, fitted, loaded.second_latent)}",
            vectors=partial(vectors_of, fitted, loaded.second_latent, chosen),
        )


def pick(fitted: spaces.Spaces) -> None:
    """What was drawn around or clicked becomes the selection."""
    picked = browser.event("picked")
    ids = fitted.semantic.rows["id"]
    if picked.get("key") != fitted.semantic.content:  # of sentences that were there before
        return
    st.session_state.pop("moved", None)
    choose(ids[browser.unpacked(picked["rows"], len(ids))].tolist())
    st.session_state["find"] = ""


def map_figures(
    fitted: spaces.Spaces,
    second_latent: str,
    choice: controls.Choice,
    paths: Mapping[str, np.ndarray],
) -> dict[str, partial]:
    """How to draw the map of each latent, by its name, and all in one; `paths` are by "semantic" or language."""
    langs = choice.text.langs
    name = rows.language_name if len(langs) <= 3 else str  # more names would not fit
    signs = {lang: f"{theme.cycled(theme.GLYPHS, theme.lang_place(lang))} {name(lang)}" for lang in fitted.second}
    title_of = {SEMANTIC: "Semantic latent  " + "  ".join(signs.values())}
    title_of |= {lang: f"{rows.latent_title(second_latent)}  {sign}" for lang, sign in signs.items()}
    panels = {
        SEMANTIC: {title_of[SEMANTIC]: fitted.semantic.rows},
        second_latent: {title_of[lang]: space.rows for lang, space in fitted.second.items()},
    }
    shown = {name: tables for name, tables in panels.items() if choice.panels in (controls.BOTH, name.capitalize())}
    together = {title: table for tables in shown.values() for title, table in tables.items()}
    return {
        name: partial(
            maps.latent_map,
            tables,
            choice.colour,
            langs,
            lines=choice.lines and name != second_latent,
            paths={title_of[key]: steps for key, steps in paths.items()},
            svg=choice.svg,
            side_by_side=name == ALL and len(shown) > 1,
            theme=state.theme(),
            height=MAP_HEIGHT * max(2, len(fitted.second)),
        )
        for name, tables in {**shown, ALL: together}.items()
        if tables
    }


def with_places(fitted: spaces.Spaces, second_latent: str) -> pd.DataFrame:
    """The rows by id, with their places on the semantic map (x, y) and on the second latent's."""
    table = fitted.semantic.rows.set_index("id", drop=False)
    if not fitted.second:
        return table
    places = pd.concat([space.rows.set_index("id")[["x", "y"]] for space in fitted.second.values()])
    return table.join(places.add_suffix(f"_{second_latent}"))


def vectors_of(fitted: spaces.Spaces, second_latent: str, chosen: Sequence[str]) -> dict[str, np.ndarray]:
    """The vectors (N, D) of the chosen rows in each latent; of all where none is chosen."""
    ids = list(chosen) or fitted.semantic.rows["id"].tolist()
    parts = {SEMANTIC: [fitted.semantic], second_latent: list(fitted.second.values())}
    vectors = {}
    for latent, held in parts.items():
        if held:
            place = pd.Index(np.concatenate([space.rows["id"] for space in held])).get_indexer(ids)
            vectors[latent] = np.concatenate([space.vectors for space in held])[place]
    return vectors


def selected(table: pd.DataFrame, chosen: Sequence[str]) -> pd.DataFrame:
    """The chosen rows of a table indexed by id, in the order they were chosen; all where none is."""
    return table.loc[list(chosen)] if chosen else table


def caption(method: geometry.Method, fitted: spaces.Spaces, second_latent: str) -> str:
    alone = len(fitted.second) == 1
    space_of = {SEMANTIC: fitted.semantic}
    space_of |= {second_latent if alone else rows.language_name(lang): s for lang, s in fitted.second.items()}
    each = f"The {second_latent} latent" if alone else f"Each {second_latent} latent"
    number = {"UMAP": "neighbours", "t-SNE": "perplexity"}.get(method.name)
    how = f"{method.name}, {number} {method.neighbours}, seed {method.seed}," if number else "PCA (no seed needed)"
    if read := {name: space.projection.read for name, space in space_of.items() if space.projection.read}:
        readings = "; ".join(f"{name}: {', '.join(texts)}" for name, texts in read.items())
        how = f"{method.axes[0]} to the right, {method.axes[1]} upwards, read by linear probes ({readings}),"
    elif not number:
        variance = {name: space.projection.variance for name, space in space_of.items()}
        how += f" shows {enumerated(variance, '.0%')} of the variance"
    trust = enumerated({name: spaces.trusted(space, method) for name, space in space_of.items()}, ".2f")
    return (
        f"{how} of {len(fitted.semantic.rows):,} unit-length vectors. "
        + f"Trustworthiness of 15 neighbours: {trust}. " * bool(trust)
        + f"{each} is a space of its own, fitted alone: compare within a panel, not across. " * bool(fitted.second)
        + "Distances between far groups are not meaningful."
    )


def enumerated(values: Mapping[str, float | None], form: str) -> str:
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items() if value is not None)
