"""What maps suggest, measured in the full space: do translations find each other, do neighbours share their style?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from app import geometry, rows
from app.spaces import MAX_SCORED, Space, Spaces
from app.state import Loaded
from bgt_core.contracts import SEMANTIC


def pair_table(loaded: Loaded, semantic: Space, left: str, right: str) -> pd.DataFrame:
    """How well translations find each other in the semantic latent, and whether a probe can still identify the
    language; beside chance."""
    left_name, right_name = rows.language_name(left), rows.language_name(right)
    scores, (accuracy, low, high) = _pair_scores(semantic.digest, left, right, semantic, loaded)
    table = {
        f"{left_name} finds its {right_name}": [f"{scores.left_finds_right:.0%}", f"{scores.chance:.1%}"],
        f"{right_name} finds its {left_name}": [f"{scores.right_finds_left:.0%}", f"{scores.chance:.1%}"],
        "Mean cosine of translations": [f"{scores.translations:.2f}", f"{scores.others:.2f}"],
        "Language identified by a probe": [f"{accuracy:.0%} ({low:.0%} to {high:.0%})", "50%"],
    }
    return pd.DataFrame.from_dict(table, orient="index", columns=["Semantic", "Chance"])


@st.cache_data(max_entries=64, show_spinner=False)
def _pair_scores(
    digest: str, left: str, right: str, _semantic: Space, _loaded: Loaded
) -> tuple[geometry.PairScores, tuple[float, float, float]]:
    from probes.measures.language import language_probe_accuracy  # with sklearn: a second to import

    left_vectors, right_vectors = _semantic.of(left), _semantic.of(right)
    similarities = _loaded.encoder.similarity(left_vectors, right_vectors)
    return geometry.pair_scores(similarities), language_probe_accuracy(left_vectors, right_vectors)


def agreements(loaded: Loaded, spaces: Spaces, columns: Sequence[str]) -> pd.DataFrame:
    """How often a sentence's nearest in its own language shares what is counted, in each latent and by chance:
    means over the languages, as percentages."""
    table = {}
    for column in columns:
        fractions = np.mean(
            [
                _agreement(spaces.semantic.digest, lang, column, spaces.semantic, own, loaded)
                for lang, own in spaces.second.items()
            ],
            0,
        )
        table[rows.COUNTED[column]] = [f"{fraction:.0%}" for fraction in fractions]
    latents = [latent.capitalize() for latent in (SEMANTIC, loaded.second_latent)]
    return pd.DataFrame.from_dict(table, orient="index", columns=[*latents, "Chance"])


@st.cache_data(max_entries=64, show_spinner=False)
def _agreement(
    digest: str, lang: str, column: str, _semantic: Space, _own: Space, _loaded: Loaded
) -> tuple[float, float, float]:
    values = _own.rows.loc[_own.given, column].tolist()[:MAX_SCORED]
    vectors = [space.of(lang) for space in (_semantic, _own)]
    (semantic, chance), (second, _) = (
        geometry.agreement(_loaded.encoder.similarity(part, part), values) for part in vectors
    )
    return semantic, second, chance
