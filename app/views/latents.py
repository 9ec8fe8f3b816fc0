"""What does each latent see of the same sentences?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from app import charts, controls, geometry, rows, state

NEAREST = 10
COLUMNS = {"lang": "Language", "text": "Sentence", "translation": "Translation", **rows.COUNTED}


def page() -> None:
    loaded = state.model()
    st.title("Two latents")
    st.markdown("What does each latent see? Draw around points on one map: the same sentences light up on the other.")
    langs = loaded.bgt.langs
    if not set(rows.GRAMMAR_LANGS) <= set(langs):
        st.info(f"This page's sentences are English and French; this model reads {loaded.languages}.")
        return
    choice = controls.choose(rows.GRAMMAR_LANGS)
    table = pd.concat([state.built_in(choice.pairs), *st.session_state.get("own", [])], ignore_index=True)
    method, semantic, language = controls.maps(loaded, table, choice)
    explore(semantic, language, method, choice, langs)
    measured(semantic, language)


@st.fragment
def explore(
    semantic: state.Space,
    language: Mapping[str, state.Space],
    method: geometry.Method,
    choice: controls.Choice,
    langs: Sequence[str],
) -> None:
    """Both maps, what is selected on them, and the neighbours of one sentence; a selection reruns only this."""
    table = semantic.rows.set_index("id", drop=False)
    chosen = [row for row in st.session_state.get("chosen", []) if row in table.index]
    signs = {lang: f"{charts.GLYPHS[langs.index(lang)]} {rows.name(lang)}" for lang in language}
    panels = {
        "semantic": {"Semantic latent  " + "  ".join(signs.values()): semantic.rows},
        "language": {f"Language latent  {signs[lang]}": space.rows for lang, space in language.items()},
    }
    for column, (name, tables) in zip(st.columns(2), panels.items(), strict=True):
        lines = choice.lines and name == "semantic"
        column.plotly_chart(
            charts.latent_map(tables, choice.colour, langs, chosen=chosen, lines=lines, theme=state.theme()),
            key=f"{name}_map",
            on_select=partial(remember, f"{name}_map"),
            alt=f"Map of the {name} latent: {len(table)} sentences, {method.name}, coloured by "
            f"{rows.COLOURS[choice.colour].lower()}. The table below lists the same sentences.",
            config=charts.TOOLS,
        )
    st.caption(caption(method, semantic, language))
    title = f"{len(chosen)} selected sentences" if chosen else f"All {len(table)} sentences"
    with st.expander(title, expanded=bool(chosen)):
        if chosen:
            st.button("Clear the selection", on_click=st.session_state.pop, args=("chosen",))
        shown = table.loc[chosen] if chosen else table
        st.dataframe(shown[list(COLUMNS)].rename(columns=COLUMNS), hide_index=True, alt="The sentences on the maps")
    neighbours(table, semantic, language, chosen)


def remember(key: str) -> None:
    """What was drawn around becomes the selection of both maps."""
    points = st.session_state[key]["selection"]["points"]
    st.session_state["chosen"] = [point["customdata"][0] for point in points if "customdata" in point]


def caption(method: geometry.Method, semantic: state.Space, language: Mapping[str, state.Space]) -> str:
    how = f"UMAP, {method.neighbours} neighbours, seed {method.seed}"
    if method.name == "PCA":
        spaces = {"semantic": semantic} | {rows.name(lang): space for lang, space in language.items()}
        shares = ", ".join(f"{name} {space.share:.0%}" for name, space in spaces.items())
        how = f"PCA (no seed needed; variance shown: {shares})"
    return (
        f"{how} of {len(semantic.rows)} unit-length vectors. Each language latent is a space of its own, fitted alone: "
        "compare within a panel, not across. Distances between far groups are not meaningful."
    )


def neighbours(
    table: pd.DataFrame, semantic: state.Space, language: Mapping[str, state.Space], chosen: Sequence[str]
) -> None:
    st.subheader("Nearest sentences")
    at = table.index.get_loc(chosen[0]) if chosen else 0
    asked = st.selectbox("Of", table.index, at, format_func=table["text"].get, label_visibility="collapsed")
    lang = table.loc[asked, "lang"]
    sides = {"Semantic latent: any language": semantic, f"Language latent: {rows.name(lang)} only": language[lang]}
    for column, (title, space) in zip(st.columns(2), sides.items(), strict=True):
        column.markdown(f"**{title}**")
        column.dataframe(
            state.nearest(space, asked, NEAREST),
            hide_index=True,
            column_config={"Cosine": st.column_config.NumberColumn(format="%.2f", width="small")},
            alt=f"{title}: nearest sentences with their cosines",
        )


def measured(semantic: state.Space, language: Mapping[str, state.Space]) -> None:
    """What the maps suggest, in the full space."""
    st.subheader("Measured in the full space")
    left, right = st.columns(2, gap="large")
    left.markdown("**Does the nearest sentence translate it?**")
    left.table(
        state.pair_table(semantic, *rows.GRAMMAR_LANGS),
        border="horizontal",
        alt="Translation retrieval, P@1 both ways, and the mean cosine of translations, beside chance",
    )
    left.caption("P@1: the share whose nearest in the other language is their translation.")
    right.markdown("**Does the nearest sentence share its manner?**")
    right.table(
        state.agreements(semantic, language),
        border="horizontal",
        alt="Share of sentences whose nearest has the same final mark, length, punctuation: each latent, and chance",
    )
    right.caption("The share whose nearest in the same language has the same.")
