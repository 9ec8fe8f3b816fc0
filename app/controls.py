"""What a user sets on the maps: which sentences, which projection, sentences of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from app import geometry, rows, state


@dataclass(frozen=True)
class Choice:
    """What the controls above the maps say."""

    colour: str  # a key of rows.COLOURS
    pairs: int
    method: str
    lines: bool


def choose(langs: Sequence[str]) -> Choice:
    """The row of controls; all but the user's sentences live in the address, for a link to keep."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = list(rows.COLOURS)
        colour = st.selectbox(
            "Colour", names, format_func=rows.COLOURS.get, key="colour", bind="query-params", width=190
        )
        pairs = st.selectbox("Translation pairs", [100, 300, 1000], 1, key="pairs", bind="query-params", width=150)
        kinds = ["PCA", "UMAP"]
        kind = st.segmented_control("Map", kinds, default="PCA", required=True, key="map", bind="query-params")
        lines = st.toggle("Join translations", True, key="lines", bind="query-params")
        with st.popover("Add sentences", icon=":material/add:"):
            add(langs)
    return Choice(colour, pairs, kind, lines)


def add(langs: Sequence[str]) -> None:
    """The user's own sentences, drawn as stars."""
    with st.form("add", border=False, clear_on_submit=True):
        lines = st.text_area(f"Your sentences, one a line, up to {rows.MAX_OWN}", height=140)
        lang = st.segmented_control("Their language", langs, default=langs[0], required=True, format_func=rows.name)
        asked = st.form_submit_button("Draw as stars", type="primary", shortcut="ctrl+enter")
    own = st.session_state.setdefault("own", [])
    if asked:
        more, over = rows.typed(lines, lang, sum(map(len, own)))
        own += [more] if len(more) else []
        if over:
            st.warning(f"{over} lines are over the limit of {rows.MAX_OWN} and were left out.")
    if own and st.button(f"Remove all {sum(map(len, own))}"):
        own.clear()
        st.rerun()


def maps(
    loaded: state.Loaded, table: pd.DataFrame, choice: Choice
) -> tuple[geometry.Method, state.Space, dict[str, state.Space]]:
    """The method, the semantic space, each language's own; UMAP once it was asked for, until then PCA."""
    pca = geometry.Method()
    if choice.method == "PCA":
        return pca, *state.spaces(loaded, table, pca)
    with st.form("umap", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        neighbours = st.slider("Neighbours", 5, 50, 15, width=220)
        seed = st.number_input("Seed", 0, 9999, 0, width=120)
        asked = st.form_submit_button("Compute UMAP", type="primary")
    method = geometry.Method("UMAP", neighbours, seed)
    if asked:
        with st.status("Computing the maps; the first time takes about half a minute") as box:
            found = state.spaces(loaded, table, method)
            box.update(label="UMAP is ready", state="complete")
        st.session_state["umap_of"] = choice.pairs, method
        return method, *found
    if st.session_state.get("umap_of") == (choice.pairs, method):
        return method, *state.spaces(loaded, table, method)
    st.caption("Shown until you press the button: PCA.")
    return pca, *state.spaces(loaded, table, pca)
