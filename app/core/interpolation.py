"""Interpolation between two sentences: the form, and the generated steps. Two pages have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from app.core import controls, state, writing
from app.core.address import BOUND
from app.core.markdown import problem, verbatim, written
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.errors import BgtError

STEPS = 9


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Sentences generated at each step from one to another, and the latents that moved, (steps, D) each."""

    model: str  # its digest
    start: str
    end: str
    lang: str
    table: pd.DataFrame
    latents: Mapping[str, np.ndarray]


def form(
    loaded: state.Loaded, ends: Sequence[str], langs: Sequence[str], at_once: bool = False
) -> Interpolation | None:
    """Show the form for two sentences, at first `ends`, and the last interpolation; `at_once` makes one without a
    button press."""
    st.subheader("Between two sentences")
    if loaded.cannot_write:
        st.info(loaded.cannot_write, icon=":material/edit_off:")
        return None
    st.markdown("Move through a latent in a straight line, and generate a sentence at every step.")
    with st.form("way"):
        left, right = st.columns(2)
        most = writing.MAX_CHARACTERS
        start = left.text_input("From", ends[0], key="start", max_chars=most, **BOUND)
        end = right.text_input("To", ends[1], key="end", max_chars=most, **BOUND)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            moves = what_moves(loaded.second_latent)
            moved = controls.choice("Move", list(moves), "move")
            lang = controls.language("Language of both", langs, "way_lang")
            st.space("stretch")
            submitted = st.form_submit_button("Interpolate", type="primary")
    walk = st.session_state.get("walked")
    walk = walk if walk and walk.model == loaded.digest and walk.lang in langs else None
    if submitted or (at_once and walk is None):
        try:
            with st.spinner("Writing"):
                table_of_steps, latents = writing.interpolate(loaded, start, end, lang, moves[moved], STEPS)
        except BgtError as error:
            problem(error)
            return None
        walk = st.session_state["walked"] = Interpolation(loaded.digest, start, end, lang, table_of_steps, latents)
    if walk:
        follow(walk)
    return walk


def what_moves(second_latent: str) -> dict[str, tuple[str, ...]]:
    """The choices of what moves, and the latents of each."""
    names = ("Meaning", "Style") if second_latent == LANGUAGE else (SEMANTIC.capitalize(), second_latent.capitalize())
    return {names[0]: (SEMANTIC,), names[1]: (second_latent,), "Both": (SEMANTIC, second_latent)}


@st.fragment
def follow(walk: Interpolation) -> None:
    """Show a slider along the steps; moving it computes nothing new."""
    texts = walk.table["text"].tolist()
    step = st.slider(
        f"Step of {len(texts)}, from “{verbatim(short(walk.start))}” to “{verbatim(short(walk.end))}”",
        1,
        len(texts),
        opening(texts),
    )
    row = walk.table.iloc[step - 1]
    written(row["text"])
    if len(set(texts)) == 1:
        st.caption("The model writes the same sentence at every step.")
    st.caption(f"Meaning: cosine {row['to_start']:z.2f} to the first sentence, {row['to_end']:z.2f} to the last.")
    with st.expander("Every step"):
        titles = {"step": "Step", "to_start": "Cosine to the first", "to_end": "To the last", "text": "Generated"}
        two = st.column_config.NumberColumn(format="%.2f")
        st.dataframe(
            walk.table[list(titles)].rename(columns=titles),
            hide_index=True,
            column_config={titles["to_start"]: two, titles["to_end"]: two},
            alt="The sentence generated at every step, with its cosine to both ends",
        )


def opening(texts: Sequence[str]) -> int:
    """The step to open on, counted from 1: of those that differ from the first step, and if possible from the last, the
    one nearest to the middle; the middle if none differs."""
    middle = len(texts) // 2
    moved = [at for at, text in enumerate(texts) if text != texts[0]]
    between = [at for at in moved if texts[at] != texts[-1]]
    return 1 + min(between or moved or [middle], key=lambda at: abs(at - middle))


def short(text: str) -> str:
    return text if len(text) <= 28 else text[:27].rstrip() + "…"
