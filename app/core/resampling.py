"""A statistic of several systems, and in resamples of the items, which all systems share: differences are paired."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bgt_core.errors import DataError
from bgt_core.evaluation import bootstrap

RESAMPLES = 2_000

Statistic = Callable[[np.ndarray, np.ndarray], np.ndarray]  # weights (B, N), systems (S, N) -> (B, S)


def resampled(systems: np.ndarray, statistic: Statistic) -> tuple[np.ndarray, np.ndarray]:
    """A statistic of each system's N numbers, (S, N) -> (S,), and in each resample of the items, (B, S)."""
    items, rng, draws = systems.shape[1], np.random.default_rng(0), []
    at_once = max(1, min(100, 2_000_000 // items))  # resamples, to bound memory
    for start in range(0, RESAMPLES, at_once):
        draws.append(statistic(bootstrap.resample(rng, items, min(at_once, RESAMPLES - start)), systems))
    (value,) = statistic(np.ones((1, items)), systems)
    return value, np.concatenate(draws)


def correlation(gold: np.ndarray) -> Statistic:
    """Pearson's r with what people said; DataError for fewer than 3 pairs, or scores that are all the same."""
    if len(gold) < 3 or np.ptp(gold) == 0:
        raise DataError(f"{len(gold)} pairs with {len(set(gold))} different scores; a correlation needs 3 and 2.")
    return lambda weights, systems: bootstrap.pearson(weights, systems, gold)
