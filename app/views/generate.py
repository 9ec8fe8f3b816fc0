"""Can the meaning stay while the manner changes?"""

from __future__ import annotations

import json

import pandas as pd
import streamlit as st

import bgt_core
from app import rows, state
from bgt_core import BadInput

KEPT = 20  # results a session remembers


def page() -> None:
    loaded = state.model()
    st.title("Change the style, keep the meaning")
    st.markdown("How would one sentence be said in the manner of another?")
    with st.form("transfer"):
        left, right = st.columns(2)
        source = left.text_area("Source: its meaning, in any language", key="source", height=90, bind="query-params")
        style = right.text_area("Style: its manner", key="style", height=90, bind="query-params")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            langs, title = loaded.bgt.langs, "Language of Style and output"
            lang = st.segmented_control(
                title, langs, default=langs[0], required=True, format_func=rows.name, key="lang", bind="query-params"
            )
            st.space("stretch")
            asked = st.form_submit_button("Generate", type="primary", shortcut="ctrl+enter")
    with st.expander("How to search"):
        search, seed, length = settings()
    history = st.session_state.setdefault("history", [])
    if asked and not (source.strip() and style.strip()):
        st.warning("Type a sentence for its meaning and one for its manner.", icon=":material/edit:")
    elif asked:
        source, style = bounded("Source", source), bounded("Style", style)
        try:
            with st.spinner("Writing"):
                history.insert(0, state.transfer(loaded, source, style, lang, search, seed, length))
        except BadInput as error:
            st.error(str(error))
        del history[KEPT:]
    if history:
        result(history[0])
        earlier(history)


def bounded(title: str, text: str) -> str:
    """The text that is read, with a word to the user where it is not all of it."""
    if len(text) > state.MAX_CHARACTERS:
        st.warning(f"{title} is long: only its first {state.MAX_CHARACTERS} characters are read.")
    return text[: state.MAX_CHARACTERS]


def settings() -> tuple[bgt_core.Beam | bgt_core.Sample, int, int]:
    """The search, its seed, and the most pieces to write."""
    kinds = ["Beam", "Sample"]
    kind = st.segmented_control("Search", kinds, default="Beam", required=True, key="search", bind="query-params")
    left, middle, right = st.columns(3)
    length = right.slider("Longest output, in pieces", 5, 100, 60, key="length", bind="query-params")
    if kind == "Beam":
        size = left.slider("Beam size", 1, 8, 5, key="beam", bind="query-params", help="1 is greedy search.")
        return bgt_core.Beam(size), 0, length
    temperature = left.slider("Temperature", 0.1, 2.0, 0.7, 0.1, key="temperature", bind="query-params")
    top_p = middle.slider("Top p", 0.1, 1.0, 0.9, 0.05, key="top_p", bind="query-params")
    seed = st.number_input("Seed", 0, 2**31 - 1, 0, key="seed", bind="query-params", width=160)
    return bgt_core.Sample(temperature, top_p), seed, length


def result(found: dict) -> None:
    st.subheader("Output")
    st.code(found["output"] or "(nothing)", language=None, wrap_lines=True)
    meaning = "Meaning: cosine to output"
    st.dataframe(
        pd.DataFrame(found["measures"]).rename(columns={"sentence": "", "cosine": meaning, **rows.COUNTED}),
        hide_index=True,
        column_config={meaning: st.column_config.NumberColumn(format="%.2f")},
        placeholder="",
        alt="Measures of output, source and style: cosine in the semantic latent, length, punctuation",
    )
    st.caption("Done well, the output is nearer to Source in meaning, and follows Style in length and marks.")


def earlier(history: list[dict]) -> None:
    st.subheader("This session")
    shown = pd.DataFrame(history)[["output", "source", "style", "search", "seed"]].rename(columns=str.capitalize)
    st.dataframe(shown, hide_index=True, alt=f"The last {KEPT} results, newest first")
    lines = "".join(json.dumps(found, ensure_ascii=False) + "\n" for found in history)
    icon = ":material/download:"
    st.download_button("JSONL", lines, "bgt-transfers.jsonl", "application/jsonl", on_click="ignore", icon=icon)
