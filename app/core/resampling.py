"""Scores of several systems on the same items, with intervals and differences, by the library's own `compare`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import ItemSample, pearson
from bgt_core.evaluation.comparison import Result, Statistic, compare


class ItemsKey(NamedTuple):
    """A single score."""

    score: str
    items: int


def compared(
    systems: Mapping[str, np.ndarray], score: Callable[[np.ndarray, np.ndarray], np.ndarray], name: str
) -> Result:
    """A score of each system's N numbers: weights (B, N), systems (S, N) -> (B, S)."""
    numbers = np.stack([np.asarray(row, float) for row in systems.values()])
    items = numbers.shape[1]
    statistic = Statistic(
        systems=list(systems),
        scores=lambda weights: {ItemsKey(name, items): score(weights[0], numbers)},
        samples=[ItemSample(items)],
    )
    return compare(statistic)


def correlations(similarities: Mapping[str, np.ndarray], gold: np.ndarray) -> Result:
    """Pearson's r x 100 with people's scores; DataError for fewer than 3 pairs, or for scores that are all the same."""
    if len(gold) < 3 or np.ptp(gold) == 0:
        raise DataError(f"{len(gold)} pairs with {len(set(gold))} different scores; give 3 pairs and 2 scores or more.")
    return compared(similarities, lambda weights, systems: 100 * pearson(weights, systems, gold), "Pearson x 100")


def shares(hits: Mapping[str, np.ndarray]) -> Result:
    """The mean of each system's N numbers, in percent."""
    return compared(
        hits, lambda weights, systems: 100 * (weights @ systems.T) / weights.sum(1, keepdims=True), "share, %"
    )
