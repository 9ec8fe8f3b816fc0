"""Sentences found on the maps: by their words, by what they mean, or by how they say it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from app import inspecting, rows, spaces, state, uploads
from app.address import BOUND
from app.verbatim import verbatim
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import BgtError

WORDS, MEANING, STYLE = "Words", "Meaning", "Style"
NEAREST = 20

Select = Callable[[Sequence[str]], None]  # makes the rows of these ids the selection


def box(loaded: state.Loaded, fitted: spaces.Spaces, select: Select, any_chosen: bool) -> None:
    """Asks for a text; what is found becomes the selection."""
    arguments = (loaded, fitted, select)
    text = st.text_input("Find in sentences", key="find", on_change=find, args=arguments, **BOUND).strip()
    ways = [WORDS, MEANING, *[STYLE] * bool(fitted.second)]
    way = st.segmented_control(
        "Find by", ways, default=WORDS, required=True, key="find_by", on_change=find, args=arguments
    )
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
        st.caption(f"Selected: the {NEAREST} nearest in the {latent_of(way, loaded)} latent, the nearest first.")


def find(loaded: state.Loaded, fitted: spaces.Spaces, select: Select) -> None:
    """What is asked for becomes the selection; nothing, where the model is busy."""
    text, way, table = st.session_state["find"].strip(), st.session_state["find_by"], fitted.semantic.rows
    if not text:
        select([])
    elif way == WORDS:
        select(rows.matching(table, text))
    else:
        lang = st.session_state.get("find_lang") or table["lang"].iloc[0]
        try:
            near = inspecting.closest(
                loaded, fitted, text[: uploads.MAX_CHARACTERS], lang, latent_of(way, loaded), NEAREST
            )
        except BgtError:
            near = table.head(0)
        select(near["id"].tolist())


def latent_of(way: str, loaded: state.Loaded) -> str:
    return SEMANTIC if way == MEANING else loaded.second_latent
