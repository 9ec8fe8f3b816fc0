"""Several models on the same sentences: a score of each, and its difference from the first one's, paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import streamlit as st

from app.core import corpora, state
from app.core.resampling import Statistic, correlation, resampled
from app.core.results import gather, task_names
from app.core.results.gather import Key
from app.core.results.listing import language_names
from app.core.startup import ParallelText
from app.core.state import Loaded
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import DataError
from bgt_core.evaluation import bootstrap, retrieval
from bgt_core.vectors.compare import unit
from probes.result import Difference
from probes.results.compare import gap

NEIGHBOURS = 10
MAX_PAIRS = 1_000  # that are searched: all against all is quadratic


def languages(models: Sequence[Loaded]) -> list[str]:
    """Those that all of them read."""
    return [lang for lang in models[0].langs if all(lang in model.langs for model in models)]


def paired(systems: Mapping[str, np.ndarray], statistic: Statistic) -> pd.DataFrame:
    """A statistic of each system's N numbers, and its difference from the first's, with 95% intervals.

    All meet the same resamples of the items. Columns model, value, low, high, and of all but the first difference,
    difference_low, difference_high.
    """
    numbers = np.stack([np.asarray(row, float) for row in systems.values()])  # (S, N)
    value, draws = resampled(numbers, statistic)
    low, high = bootstrap.interval(draws, 0.95)
    difference_low, difference_high = bootstrap.interval(draws - draws[:, :1], 0.95)
    table = pd.DataFrame({"model": list(systems), "value": value, "low": low, "high": high})
    ends = {"difference": value - value[0], "difference_low": difference_low, "difference_high": difference_high}
    table = table.assign(**ends)
    table.loc[0, list(ends)] = np.nan
    return table


def correlations(similarities: Mapping[str, np.ndarray], gold: np.ndarray) -> pd.DataFrame:
    """Pearson's r x 100 with what people said; DataError for fewer than 3 pairs, or scores that are all the same."""
    statistic = correlation(gold)
    return paired(similarities, lambda weights, systems: 100 * statistic(weights, systems))


def shares(hits: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """The mean of each system's N numbers, in percent."""
    return paired(hits, lambda weights, systems: 100 * (weights @ systems.T) / weights.sum(1, keepdims=True))


def similarities(models: Sequence[Loaded], pairs: pd.DataFrame, langs: tuple[str, str]) -> dict[str, np.ndarray]:
    """By model, how alike it finds the two sides of each pair (left, right) in meaning, (N,)."""
    scores = {}
    for model in models:
        left, right = (
            state.embed(model, pairs[side].tolist(), lang, SEMANTIC)
            for side, lang in zip(("left", "right"), langs, strict=True)
        )
        scores[model.title] = model.encoder.similarity_pairwise(left, right).astype(float)
    return scores


def translations_found(
    models: Sequence[Loaded], text: ParallelText, langs: tuple[str, str]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """By model, whether each pair's left sentence finds its right one, and the right one its left, (N,) bool each."""
    table = corpora.sentences(text, MAX_PAIRS)
    left, right = (tuple(table.loc[table["lang"] == lang, "text"]) for lang in langs)
    found = [_found(model.digest, state.content([*left, *right]), langs, left, right, model) for model in models]
    names = [model.title for model in models]
    forward, backward = (dict(zip(names, way, strict=True)) for way in zip(*found, strict=True))
    return forward, backward


@st.cache_data(max_entries=32, show_spinner="Looking for translations")
def _found(
    digest: str, content: str, langs: tuple[str, str], _left: Sequence[str], _right: Sequence[str], _model: Loaded
) -> tuple[np.ndarray, np.ndarray]:
    left, right = (
        retrieval.embed_distinct(_model.encoder, side, lang) for side, lang in zip((_left, _right), langs, strict=True)
    )
    return retrieval.hits_of(left, right, _model.encoder.similarity)


def same_neighbours(first: np.ndarray, second: np.ndarray) -> float:
    """The share of each row's 10 nearest rows by cosine that both matrices (N, D), (N, E) have in common."""
    near = [nearest_rows(vectors, min(NEIGHBOURS, len(vectors) - 1)) for vectors in (first, second)]
    return float(np.mean([len(set(one) & set(two)) / len(one) for one, two in zip(*near, strict=True)]))


def nearest_rows(vectors: np.ndarray, count: int) -> np.ndarray:
    """Which rows are nearest to each by cosine, itself left out: (N, D) -> (N, count)."""
    cosines = unit(vectors) @ unit(vectors).T
    np.fill_diagonal(cosines, -np.inf)
    return np.argpartition(-cosines, count - 1, axis=1)[:, :count]


def probe_differences(results: gather.ResultTables, first: str, second: str, latent: str) -> pd.DataFrame:
    """The accuracy of a latent of the second model minus the first's, in points, in each task that both were probed in
    on the same sentences. `interval` is "paired" if the predictions for each sentence were kept, else "unpaired"."""
    scores = results.scores[results.scores["latent"] == latent]
    keys = ["lang", "task", "items", "run"]
    sides = [scores[scores["model"] == name].drop_duplicates(keys) for name in (first, second)]
    both = sides[0].merge(sides[1], on=keys, suffixes=("", "_second"))
    rows = []
    for row in both.itertuples():
        measured = predicted_gap(results.items, row.task, row.lang, (first, second), latent)
        if measured is None:
            points = 100 * (row.accuracy_second - row.accuracy)
            halves = [(row.ci_high - row.ci_low) / 2, (row.ci_high_second - row.ci_low_second) / 2]
            half = 100 * float(np.hypot(*halves))
            interval = (points, points - half, points + half, "unpaired")
        else:
            interval = (measured.points, measured.ci_low, measured.ci_high, "paired")
        names = language_names(row.lang), task_names.title(row.task)
        rows.append((*names, 100 * row.accuracy, 100 * row.accuracy_second, *interval))
    return pd.DataFrame(rows, columns=["lang", "task", "first", "second", "points", "low", "high", "interval"])


def predicted_gap(
    items: Mapping[Key, pa.Table], task: str, lang: str, models: tuple[str, str], latent: str
) -> Difference | None:
    """The second model minus the first; None where predictions of the same sentences were not kept."""
    tables = [next((rows for key, rows in items.items() if key[:3] == (model, task, lang)), None) for model in models]
    first, second = tables
    if first is None or second is None:
        return None
    try:
        return gap(second, latent, first, latent, task=task, lang=lang)
    except DataError:  # other sentences
        return None
