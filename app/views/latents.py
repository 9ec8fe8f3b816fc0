"""What does each latent see of the same sentences?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from app import controls, exports, geometry, rows, spaces, state
from app.charts import maps, theme
from app.views import interpolation
from bgt_core.contracts import LANGUAGE, SEMANTIC

NEAREST = 10
LISTED = 1_000  # rows of the table
OFFERED = 200  # sentences to choose one of
COLUMNS = {"lang": "Language", "text": "Sentence", "translation": "Translation", **rows.COUNTED}


def page() -> None:
    loaded = state.model()
    st.title("Two latents")
    st.markdown("What does each latent see? Draw around points on one map: the same sentences light up on the other.")
    if not loaded.manner:
        st.caption("This model has one latent, and no language latents to hold it against.")
    choice = controls.choose(loaded.bgt.langs, loaded.manner)
    if choice is None:
        return
    shown = loaded.digest, choice.corpus
    if st.session_state.setdefault("chosen_of", shown) != shown:  # other sentences: the old selection means nothing
        forget()
        st.session_state["chosen_of"] = shown
    corpus = spaces.sentences(choice.corpus, choice.pairs)
    pairs, different = len(corpus) // 2, corpus["text"].nunique()
    if pairs < 3 or different < 3:
        st.info(f"A map needs 3 pairs and 3 different sentences; {choice.corpus.file} has {pairs} and {different}.")
        return
    if len(corpus) < 2 * choice.pairs:
        st.caption(f"There are {len(corpus) // 2:,} pairs; all are shown.")
    elif choice.corpus.file:
        st.caption(f"Shown: the first {choice.pairs:,} pairs of {choice.corpus.file.name}.")
    table = pd.concat([corpus, *controls.own_rows(choice.corpus.langs)], ignore_index=True)
    if "chosen" not in st.session_state and (wanted := st.query_params.get("find", "").strip()):  # somebody's link
        st.session_state["chosen"] = rows.matching(table, wanted)
    method, *found = controls.maps(loaded, table, choice)
    semantic, language = spaces.coloured(*found, choice.colour)
    above = st.container()
    stops = interpolation.form(loaded, semantic.rows, choice.corpus.langs) if loaded.manner else None
    with above:
        explore(loaded, semantic, language, method, choice, interpolation.paths(stops, semantic, language, method))
    measured(semantic, language, choice.corpus.langs, loaded.short)


def forget() -> None:
    """Nothing is selected, found or walked."""
    st.session_state.update(chosen=[], find="")
    st.session_state.pop("walked", None)


@st.fragment
def explore(
    loaded: state.Loaded,
    semantic: spaces.Space,
    language: Mapping[str, spaces.Space],
    method: geometry.Method,
    choice: controls.Choice,
    paths: Mapping[str, object],
) -> None:
    """Both maps, what is selected on them, and the neighbours of one sentence; a selection reruns only this."""
    langs = choice.corpus.langs
    table = semantic.rows.set_index("id", drop=False)
    known = frozenset(table["id"].tolist())
    chosen = [row for row in st.session_state.get("chosen", []) if row in known]
    signs = {lang: f"{theme.of(theme.GLYPHS, langs.index(lang))} {rows.name(lang)}" for lang in language}
    panels = {
        SEMANTIC: {"Semantic latent  " + "  ".join(signs.values()): semantic.rows},
        LANGUAGE: {f"Language latent  {signs[lang]}": space.rows for lang, space in language.items()},
    }
    ways = {
        SEMANTIC: dict.fromkeys(panels[SEMANTIC], paths.get(SEMANTIC)),
        LANGUAGE: {title: paths.get(lang) for title, lang in zip(panels[LANGUAGE], language, strict=True)},
    }
    names = [name for name in panels if choice.shown in ("Both", name.capitalize())]
    figures = {
        name: partial(
            maps.latent_map,
            panels[name],
            choice.colour,
            langs,
            chosen=chosen,
            lines=choice.lines and name == SEMANTIC,
            paths={title: stops for title, stops in ways[name].items() if stops is not None},
            drawn=choice.drawn,
            theme=state.theme(),
        )
        for name in names
    }
    for column, name in zip(st.columns(len(names)), names, strict=True):
        column.plotly_chart(
            figures[name](),
            key=f"{name}_map",
            on_select=partial(remember, f"{name}_map"),
            alt=f"Map of the {name} latent: {len(table)} sentences, {method.name}, coloured by "
            f"{rows.COLOURS[choice.colour].lower()}. The table below lists the same sentences.",
            config=theme.tools(f"bgt-{name}-{loaded.short}"),
        )
    st.caption(caption(method, semantic, language))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Find in sentences", key="find", on_change=find, args=(semantic.rows,), width=260, bind="query-params"
        )
        if chosen:
            st.button("Clear the selection", on_click=forget)
        for name in names:
            file = f"bgt-{name}-map-{loaded.short}-seed{method.seed}"
            space_rows = semantic.rows if name == SEMANTIC else pd.concat([space.rows for space in language.values()])
            with st.container(key=f"out_{name}", width="content"):
                exports.offer(file, picked(space_rows, chosen), figures[name], title=f"Export {name}")
    title = f"{len(chosen):,} selected sentences" if chosen else f"All {len(table):,} sentences"
    with st.expander(title, expanded=bool(chosen)):
        listed = picked(table, chosen).head(LISTED)
        if len(listed) < (len(chosen) or len(table)):
            st.caption(f"The first {LISTED:,}; the export holds them all.")
        st.dataframe(listed[list(COLUMNS)].rename(columns=COLUMNS), hide_index=True, alt="The sentences on the maps")
    neighbours(table, semantic, language, chosen)


def picked(table: pd.DataFrame, chosen: Sequence[str]) -> pd.DataFrame:
    """The chosen rows, in the order they were chosen; all where none is."""
    return table.set_index("id", drop=False).loc[list(chosen)] if chosen else table


def remember(key: str) -> None:
    """What was drawn around becomes the selection of both maps."""
    points = st.session_state[key]["selection"]["points"]
    found = (point.get("customdata") for point in points)
    st.session_state["chosen"] = [row for row in found if isinstance(row, str)]  # a stop of a way has a number


def find(table: pd.DataFrame) -> None:
    """What contains the words becomes the selection."""
    wanted = st.session_state["find"].strip()
    st.session_state["chosen"] = rows.matching(table, wanted) if wanted else []


def caption(method: geometry.Method, semantic: spaces.Space, language: Mapping[str, spaces.Space]) -> str:
    named = {"semantic": semantic} | {rows.name(lang): space for lang, space in language.items()}
    number = {"UMAP": "neighbours", "t-SNE": "perplexity"}.get(method.name)
    how = f"{method.name}, {number} {method.neighbours}, seed {method.seed}," if number else "PCA (no seed needed)"
    if not number:
        how += f" shows {listed({name: space.fit.share for name, space in named.items()}, '.0%')} of the variance"
    kept = {name: spaces.trusted(space, method) for name, space in named.items()}
    trust = listed({name: value for name, value in kept.items() if value is not None}, ".2f")
    return (
        f"{how} of {len(semantic.rows):,} unit-length vectors. "
        + f"Trustworthiness of 15 neighbours: {trust}. " * bool(trust)
        + "Each language latent is a space of its own, fitted alone: compare within a panel, not across. Distances "
        "between far groups are not meaningful."
    )


def listed(values: Mapping[str, float], form: str) -> str:
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def neighbours(
    table: pd.DataFrame, semantic: spaces.Space, language: Mapping[str, spaces.Space], chosen: Sequence[str]
) -> None:
    st.subheader("Nearest sentences")
    offered = list(chosen[:OFFERED]) or table.index[:OFFERED].tolist()
    asked = st.selectbox("Of", offered, format_func=table["text"].get, label_visibility="collapsed")
    lang = table.loc[asked, "lang"]
    sides = {"Semantic latent: any language": semantic}
    if lang in language:
        sides[f"Language latent: {rows.name(lang)} only"] = language[lang]
    for column, (title, space) in zip(st.columns(len(sides)), sides.items(), strict=True):
        column.markdown(f"**{title}**")
        column.dataframe(
            spaces.nearest(space, asked, NEAREST),
            hide_index=True,
            column_config={"Cosine": st.column_config.NumberColumn(format="%.2f", width="small")},
            alt=f"{title}: nearest sentences with their cosines",
        )


def measured(semantic: spaces.Space, language: Mapping[str, spaces.Space], langs: Sequence[str], name: str) -> None:
    """What the maps suggest, in the full space."""
    st.subheader("Measured in the full space")
    left, right = st.columns(2, gap="large")
    left.markdown("**Does the nearest sentence translate it?**")
    found = spaces.pair_table(semantic, *langs)
    left.table(
        found,
        border="horizontal",
        alt="Translation retrieval, P@1 both ways, and the mean cosine of translations, beside chance",
    )
    left.caption(f"P@1: the share whose nearest is their translation, of up to {spaces.MEASURED:,} pairs.")
    if not language:
        exports.offer(f"bgt-measures-{name}", found.reset_index(names="Measure"), latex=found, title="Export measures")
        return
    right.markdown("**Does the nearest sentence share its manner?**")
    shared = spaces.agreements(semantic, language, list(rows.COUNTED))
    right.table(
        shared,
        border="horizontal",
        alt="Share of sentences whose nearest has the same final mark, length, punctuation: each latent, and chance",
    )
    right.caption("The share whose nearest in the same language has the same.")
    table = pd.concat([found, shared]).reset_index(names="Measure")
    exports.offer(f"bgt-measures-{name}", table, latex=table.fillna(""), title="Export measures")
