"""Decoding options, the progress of a search, and the button that stops it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

import bgt_core
from app.core import controls, writing
from app.core.address import BOUND


def settings() -> tuple[bgt_core.Beam | bgt_core.Sample, int, int]:
    """The search, its seed, and the maximum number of tokens."""
    kind = controls.choice("Search", ["Beam", "Sample"], "search")
    left, middle, right = st.columns(3)
    ngram = middle.slider(
        "Longest run of tokens that may not repeat",
        0,
        5,
        3,
        key="ngram",
        help="No run of this many tokens twice; 0: no limit.",
        **BOUND,
    )
    max_run = middle.slider(
        "Same token in a row, at most", 0, 3, 1, key="run", help="2 allows “very very”; 0: no limit.", **BOUND
    )
    max_length = right.slider("Longest output, in tokens", 5, 100, writing.MAX_LENGTH, key="length", **BOUND)
    if kind == "Beam":
        size = left.slider("Beam size", 1, 8, 8, key="beam", help="1 is greedy search.", **BOUND)
        return bgt_core.Beam(size, ngram, max_run), 0, max_length
    temperature = left.slider("Temperature", 0.1, 2.0, 0.7, 0.1, key="temperature", **BOUND)
    seed = left.number_input("Seed", 0, 2**31 - 1, 0, key="seed", width=160, **BOUND)
    top_p = middle.slider("Top p", 0.1, 1.0, 0.9, 0.05, key="top_p", **BOUND)
    return bgt_core.Sample(temperature, top_p, ngram, max_run), seed, max_length


@contextmanager
def progress() -> Iterator[writing.Report]:
    """Show the progress of generation, beside a button that stops it.

    Each report talks to the browser. If a button was pressed meanwhile, or the browser has left, Streamlit ends the
    script there, and with it the search.
    """
    slot = st.empty()
    with slot.container(horizontal=True, vertical_alignment="center"):
        message = st.empty()
        st.button("Stop", key="stop", icon=":material/stop:")

    def report(done: int) -> None:
        message.caption(f"Writing, token {done + 1}")

    try:
        yield report
    finally:
        slot.empty()


def stopped() -> bool:
    """Whether a press of Stop started this run; the search must then not start again."""
    return bool(st.session_state.get("stop"))
