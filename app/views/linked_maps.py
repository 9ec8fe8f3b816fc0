"""The maps of all latents, and what is selected on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from app import controls, exports, geometry, rows, spaces, state
from app.address import BOUND
from app.charts import maps, theme
from app.views import neighbours
from bgt_core.contracts import SEMANTIC

MAX_LISTED = 1_000  # rows of the table
MAP_HEIGHT = 260  # pixels of each language's map
COLUMNS = {"lang": "Language", "text": "Sentence", "translation": "Translation", **rows.COUNTED}
SINGLE = {name: title for name, title in COLUMNS.items() if name not in ("lang", "translation")}  # of one language


def forget() -> None:
    """Nothing is selected, searched for or interpolated."""
    st.session_state.update(chosen=[], find="")
    st.session_state.pop("walked", None)


@st.fragment
def explore(
    loaded: state.Loaded,
    fitted: spaces.Spaces,
    method: geometry.Method,
    choice: controls.Choice,
    paths: Mapping[str, np.ndarray],
) -> None:
    """All maps, and what is below them; a selection reruns only this."""
    table = fitted.semantic.rows.set_index("id", drop=False)
    ids = frozenset(table["id"].tolist())
    chosen = [row for row in st.session_state.get("chosen", []) if row in ids]
    figures = {
        name: figure
        for name, figure in map_figures(fitted, loaded.second_latent, choice, chosen, paths).items()
        if choice.panels in (controls.BOTH, name.capitalize())
    }
    for column, (name, figure) in zip(st.columns(len(figures)), figures.items(), strict=True):
        column.plotly_chart(
            figure(),
            key=f"{name}_map",
            on_select=partial(remember, f"{name}_map"),
            alt=f"Map of the {name} latent: {len(table)} sentences, {method.name}, coloured by "
            f"{rows.COLOURS[choice.colour].lower()}. The table below lists the same sentences.",
            config=theme.tools(f"bgt-{name}-{loaded.short}"),
        )
    st.caption(caption(method, fitted, loaded.second_latent))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Find in sentences", key="find", on_change=find, args=(fitted.semantic.rows,), width=260, **BOUND)
        if chosen:
            st.button("Clear the selection", on_click=forget)
        for name, figure in figures.items():
            with st.container(key=f"out_{name}", width="content"):
                exports.offer(
                    f"bgt-{name}-map-{loaded.short}-seed{method.seed}",
                    selected(rows_of(fitted, name), chosen),
                    figure,
                    title=f"Export {name}",
                    caption=f"{loaded.title}, weights {loaded.short}. {caption(method, fitted, loaded.second_latent)}",
                    vectors=partial(vectors_of, fitted, name, chosen),
                )
    title = f"{len(chosen):,} selected sentences" if chosen else f"All {len(table):,} sentences"
    with st.expander(title, expanded=bool(chosen)):
        listed = selected(table, chosen).head(MAX_LISTED)
        if len(listed) < (len(chosen) or len(table)):
            st.caption(f"The first {MAX_LISTED:,}; the export holds them all.")
        columns = COLUMNS if len(choice.text.langs) > 1 else SINGLE
        st.dataframe(listed[list(columns)].rename(columns=columns), hide_index=True, alt="The sentences on the maps")
    neighbours.nearest(loaded, table, fitted, chosen)


def map_figures(
    fitted: spaces.Spaces,
    second_latent: str,
    choice: controls.Choice,
    chosen: Sequence[str],
    paths: Mapping[str, np.ndarray],
) -> dict[str, partial]:
    """How to draw the map of each latent, by its name; `paths` are by "semantic" or language."""
    langs = choice.text.langs
    name = rows.language_name if len(langs) <= 3 else str  # more names would not fit
    signs = {lang: f"{theme.cycled(theme.GLYPHS, langs.index(lang))} {name(lang)}" for lang in fitted.second}
    title_of = {SEMANTIC: "Semantic latent  " + "  ".join(signs.values())}
    title_of |= {lang: f"{rows.latent_title(second_latent)}  {sign}" for lang, sign in signs.items()}
    panels = {
        SEMANTIC: {title_of[SEMANTIC]: fitted.semantic.rows},
        second_latent: {title_of[lang]: space.rows for lang, space in fitted.second.items()},
    }
    return {
        name: partial(
            maps.latent_map,
            tables,
            choice.colour,
            langs,
            chosen=chosen,
            lines=choice.lines and name == SEMANTIC,
            paths={title_of[key]: steps for key, steps in paths.items()},
            svg=choice.svg,
            theme=state.theme(),
            height=MAP_HEIGHT * max(2, len(fitted.second)),
        )
        for name, tables in panels.items()
        if tables
    }


def rows_of(fitted: spaces.Spaces, name: str) -> pd.DataFrame:
    """The rows of the map of that latent."""
    return fitted.semantic.rows if name == SEMANTIC else pd.concat([space.rows for space in fitted.second.values()])


def vectors_of(fitted: spaces.Spaces, name: str, chosen: Sequence[str]) -> dict[str, np.ndarray]:
    """The vectors (N, D) of the chosen rows of the map of that latent; of all where none is chosen."""
    parts = [fitted.semantic] if name == SEMANTIC else list(fitted.second.values())
    vectors = np.concatenate([space.vectors for space in parts])
    ids = pd.Index(np.concatenate([space.rows["id"] for space in parts]))
    return {name: vectors[ids.get_indexer(list(chosen))] if chosen else vectors}


def selected(table: pd.DataFrame, chosen: Sequence[str]) -> pd.DataFrame:
    """The chosen rows, in the order they were chosen; all where none is."""
    return table.set_index("id", drop=False).loc[list(chosen)] if chosen else table


def remember(key: str) -> None:
    """What was drawn around becomes the selection of all maps."""
    points = st.session_state[key]["selection"]["points"]
    ids = (point.get("customdata") for point in points)
    st.session_state["chosen"] = [row for row in ids if isinstance(row, str)]  # a step of a path has a number


def find(table: pd.DataFrame) -> None:
    """What contains the words becomes the selection."""
    text = st.session_state["find"].strip()
    st.session_state["chosen"] = rows.matching(table, text) if text else []


def caption(method: geometry.Method, fitted: spaces.Spaces, second_latent: str) -> str:
    alone = len(fitted.second) == 1
    space_of = {SEMANTIC: fitted.semantic}
    space_of |= {second_latent if alone else rows.language_name(lang): s for lang, s in fitted.second.items()}
    each = f"The {second_latent} latent" if alone else f"Each {second_latent} latent"
    number = {"UMAP": "neighbours", "t-SNE": "perplexity"}.get(method.name)
    how = f"{method.name}, {number} {method.neighbours}, seed {method.seed}," if number else "PCA (no seed needed)"
    if not number:
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
