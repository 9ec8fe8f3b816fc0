"""What a page says about sentences on the maps: what is nearest to a typed one, and what sets a selection apart."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd
import streamlit as st

from app import geometry, rows, selections, spaces
from app.spaces import Space, Spaces
from app.state import Loaded
from bgt_core.contracts import SEMANTIC


def closest(loaded: Loaded, fitted: Spaces, text: str, lang: str, latent: str, count: int) -> pd.DataFrame:
    """The sentences of the maps nearest to a typed one: in the semantic latent those of any language, in the second
    those of its own."""
    space = fitted.semantic if latent == SEMANTIC else fitted.second[lang]
    return spaces.nearest_to(loaded, text, lang, latent, space.rows, space.vectors, count)


def described(loaded: Loaded, fitted: Spaces, chosen: Collection[str]) -> pd.DataFrame:
    """What sets the rows of these ids apart from all others."""
    ids = frozenset(chosen)
    parts = {SEMANTIC: fitted.semantic}
    parts |= {f"{loaded.second_latent}, {rows.language_name(lang)}": space for lang, space in fitted.second.items()}
    cosines = {}
    for name, space in parts.items():
        within = among(space.rows, ids)
        if within.any():
            cosines[name] = (
                geometry.mean_cosine(space.vectors[within]),
                _mean_cosine(space.digest, space.content, space),
            )
    table = fitted.semantic.rows
    return selections.described(table, among(table, ids), spaces.words_of(fitted.semantic), cosines)


def among(table: pd.DataFrame, ids: frozenset[str]) -> np.ndarray:
    """Which rows have these ids, (N,) bool; pandas takes ten times as long for a column of Arrow's strings."""
    return np.fromiter(map(ids.__contains__, table["id"].tolist()), bool, len(table))


@st.cache_data(max_entries=64, show_spinner=False)
def _mean_cosine(digest: str, content: str, _space: Space) -> float:
    return geometry.mean_cosine(_space.vectors)
