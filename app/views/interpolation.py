"""What lies between two sentences? A part of the page of the two latents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from app import geometry, rows, spaces, state, writing
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.errors import BgtError

STOPS = 9
MOVES = {"Meaning": (SEMANTIC,), "Manner": (LANGUAGE,), "Both": (SEMANTIC, LANGUAGE)}
OFFERED = 50


@dataclass(frozen=True)
class Way:
    """Sentences written along the way from one to another, and the latents that moved, (stops, D) each."""

    of: tuple[str, ...]  # what was asked for, of which model
    lang: str
    table: pd.DataFrame
    latents: Mapping[str, np.ndarray]


def form(loaded: state.Loaded, table: pd.DataFrame, langs: Sequence[str]) -> Way | None:
    """Asks for two sentences, and shows what was written between them last."""
    st.subheader("From one sentence to another")
    st.markdown("Move through a latent in a straight line, and write down what is there at every stop.")
    chosen = table.loc[table["id"].isin(st.session_state.get("chosen", [])[:2]), "text"]
    first, second, *_ = listed = list(dict.fromkeys(table["text"].head(OFFERED)))
    offered = list(dict.fromkeys([*chosen, *listed]))
    how = {"accept_new_options": True, "help": "Choose one, or type your own.", "bind": "query-params"}
    with st.form("way"):
        left, right = st.columns(2)
        start = left.selectbox("From", offered, offered.index(first), key="start", **how)
        end = right.selectbox("To", offered, offered.index(second), key="end", **how)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            what = st.segmented_control(
                "Move", list(MOVES), default="Meaning", required=True, key="move", bind="query-params"
            )
            lang = st.segmented_control(
                "Language of both", langs, default=langs[0], required=True, format_func=rows.name, key="way_lang",
                bind="query-params",
            )  # fmt: skip
            st.space("stretch")
            asked = st.form_submit_button("Write the way", type="primary")
    if asked:
        start, end = (text[: writing.MAX_CHARACTERS] for text in (start, end))
        try:
            with st.spinner("Writing"):
                written, latents = writing.way(loaded, start, end, lang, MOVES[what], STOPS)
        except BgtError as error:
            st.error(str(error))
            return None
        st.session_state["walked"] = Way((loaded.digest, start, end), lang, written, latents)
    found = st.session_state.get("walked")
    if found is None or found.of[0] != loaded.digest:
        return None
    follow(found)
    return found


@st.fragment
def follow(found: Way) -> None:
    """A slider along the way; moving it computes nothing."""
    _, start, end = found.of
    stop = st.slider(f"Stop, from “{short(start)}” to “{short(end)}”", 1, len(found.table), 1 + len(found.table) // 2)
    here = found.table.iloc[stop - 1]
    st.code(here["text"] or "(nothing)", language=None, wrap_lines=True)
    st.caption(f"Meaning: cosine {here['to_start']:.2f} to the first sentence, {here['to_end']:.2f} to the last.")
    with st.expander("Every stop"):
        named = {"stop": "Stop", "text": "Written there", "to_start": "Cosine to the first", "to_end": "To the last"}
        two = st.column_config.NumberColumn(format="%.2f")
        st.dataframe(
            found.table.rename(columns=named),
            hide_index=True,
            column_config={named["to_start"]: two, named["to_end"]: two},
            alt="What is written at every stop, with its cosine to both ends",
        )


def short(text: str) -> str:
    return text if len(text) <= 28 else text[:27].rstrip() + "…"


def paths(
    way: Way | None, semantic: spaces.Space, language: Mapping[str, spaces.Space], method: geometry.Method
) -> dict[str, np.ndarray]:
    """The stops on the maps, (stops, 2): under "semantic", and under the language whose latent moved."""
    if way is None:
        return {}
    found = {}
    for latent, vectors in way.latents.items():
        space = semantic if latent == SEMANTIC else language[way.lang]
        name = SEMANTIC if latent == SEMANTIC else way.lang
        found[name] = spaces.placed(space, method, vectors)
    return found
