"""Several models on the same sentences: a score of each, and its difference from the first one's, paired."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from app.core import corpora, state
from app.core.startup import ParallelText
from app.core.state import Loaded
from bgt_core.contracts import SEMANTIC
from bgt_core.evaluation.systems import System, disagreement
from bgt_core.evaluation.tasks.retrieval import embed_distinct, hits_of
from bgt_core.vectors.compare import unit

NEIGHBOURS = 10
SIDES = ("first", "second")  # of two models
MAX_PAIRS = 1_000  # searched; all against all is quadratic


def similarities(models: Sequence[Loaded], pairs: pd.DataFrame, langs: tuple[str, str]) -> dict[str, np.ndarray]:
    """By model, the similarity in meaning of the two sides of each pair (left, right), (N,)."""
    scores = {}
    for model in models:
        left, right = (
            state.embed(model, pairs[side].tolist(), lang, SEMANTIC)
            for side, lang in zip(("left", "right"), langs, strict=True)
        )
        scores[model.title] = model.encoder.similarity_pairwise(left, right).astype(float)
    return scores


def disagreements(models: Sequence[Loaded], text: ParallelText) -> tuple[pd.DataFrame, list[str]]:
    """The pairs of a text by how much two models disagree, the most first, and the languages of both sides.

    Columns left, right, and for each side of `SIDES` its similarity and its rank in percent; gap, of the ranks.
    """
    (left, right, *_), langs = corpora.columns_of(text, MAX_PAIRS)
    encoders = {side: model.encoder for side, model in zip(SIDES, models, strict=True)}
    made = disagreement(encoders, left, right, (langs[0], langs[1]))
    numbers = {f"{side} rank": 100 * ranks for side, ranks in zip(SIDES, made.ranks.T, strict=True)}
    numbers |= dict(zip(SIDES, made.similarities.T, strict=True))
    table = pd.DataFrame({"left": left, "right": right, **numbers, "gap": 100 * made.gaps})
    return table.iloc[made.order], langs


def translations_found(
    models: Sequence[Loaded], text: ParallelText, langs: tuple[str, str]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """By model, whether each pair's left sentence finds its right one, and the right one its left, (N,) `hits` each."""
    table = corpora.sentences(text, MAX_PAIRS)
    left, right = (tuple(table.loc[table["lang"] == lang, "text"]) for lang in langs)
    hits = [_found(model.digest, state.content([*left, *right]), langs, left, right, model) for model in models]
    names = [model.title for model in models]
    forward, backward = (dict(zip(names, way, strict=True)) for way in zip(*hits, strict=True))
    return forward, backward


@st.cache_data(max_entries=32, show_spinner="Looking for translations")
def _found(
    digest: str, content: str, langs: tuple[str, str], _left: Sequence[str], _right: Sequence[str], _model: Loaded
) -> tuple[np.ndarray, np.ndarray]:
    system = System(_model.title, _model.encoder)
    left, right = (embed_distinct(system, side, lang) for side, lang in zip((_left, _right), langs, strict=True))
    return hits_of(left, right, _model.encoder.similarity)


def same_neighbours(first: np.ndarray, second: np.ndarray) -> float:
    """The share of each row's 10 nearest rows by cosine that both matrices (N, D), (N, E) have in common."""
    count, near = min(NEIGHBOURS, len(first) - 1), []
    for vectors in (first, second):
        cosines = unit(vectors) @ unit(vectors).T
        np.fill_diagonal(cosines, -np.inf)  # without itself
        near.append(np.argpartition(-cosines, count - 1, axis=1)[:, :count])
    return float(np.mean([len(set(one) & set(two)) / count for one, two in zip(*near, strict=True)]))
