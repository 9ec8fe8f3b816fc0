"""The dragged star: the model generates a sentence from its new place."""

from __future__ import annotations

import numpy as np
import streamlit as st

from app.core import rows, state, writing
from app.core.latents import geometry, spaces
from app.core.markdown import problem
from app.maps import component
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import BgtError


def movable(loaded: state.Loaded, fitted: spaces.Spaces, row: str | None) -> list[str]:
    """The latents on whose maps the star of a row can be dragged: those that the model generates from."""
    if row is None or loaded.cannot_write or row not in set(fitted.semantic.rows["id"]):
        return []
    return [SEMANTIC, loaded.second_latent]


def move(fitted: spaces.Spaces, method: geometry.Method) -> None:
    """Remember where the star was dragged, and on which map."""
    event = component.event("moved")
    if event.get("key") == fitted.semantic.content:
        st.session_state["moved"] = event | {"of": (fitted.semantic.digest, method)}


def forget() -> None:
    """Put the star back."""
    st.session_state.pop("moved", None)


def answered() -> float:
    """The time, by the browser's clock, at which the star was dragged to the place of its current sentence."""
    return st.session_state.get("moved", {}).get("at", 0)


def show(loaded: state.Loaded, fitted: spaces.Spaces, method: geometry.Method, row: str | None, lang: str) -> None:
    """Explain that the star can be dragged; after a drag, show the text generated before and after."""
    if row is None or not movable(loaded, fitted, row):
        return
    moved = st.session_state.get("moved")
    if moved is None or (moved["id"], *moved["of"]) != (row, fitted.semantic.digest, method):
        st.caption("Drag the star: the model generates a sentence at its new place.")
        return
    space_of = {SEMANTIC: fitted.semantic, loaded.second_latent: fitted.second[lang]}
    latents = {latent: spaces.vector(space, row) for latent, space in space_of.items()}
    latent = moved["map"]
    space, place = space_of[latent], np.array([moved["x"], moved["y"]])
    goal = geometry.moved(space.projection, space.vectors[space.given], latents[latent], place)
    try:
        before = written(loaded, latents, lang)
        after = written(loaded, latents | {latent: goal}, lang)
    except BgtError as error:
        problem(error)
        return
    st.markdown(f"**The {latent} latent, moved**")
    st.caption("Generated from its own latents")
    st.code(before or "(nothing)", language=None, wrap_lines=True)
    st.caption("Generated at the star")
    st.code(after or "(nothing)", language=None, wrap_lines=True)
    counts = {text: rows.words(text) for text in (before, after)}
    st.caption(f"Before {counts[before]} words, now {counts[after]}.")


@st.cache_data(max_entries=256, show_spinner=False, hash_funcs=state.BY_DIGEST)
def written(loaded: state.Loaded, latents: dict[str, np.ndarray], lang: str) -> str:
    """Generate the sentence for both latents, {latent: (D,)}."""
    semantic, second = (latents[latent][None].astype(np.float32) for latent in (SEMANTIC, loaded.second_latent))
    (text,) = writing.write(loaded, semantic, second, lang)
    return text
