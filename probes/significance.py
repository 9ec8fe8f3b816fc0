"""How sure a score is: Wilson's interval, a paired bootstrap over groups, McNemar's exact test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from scipy.stats import binomtest

from bgt_core.evaluation.bootstrap import resample

RESAMPLES = 2_000


def wilson(right: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of the fraction right / n."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    p, scale = right / n, 1 + z * z / n
    middle = (p + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = middle - half, middle + half
    return (0.0 if right == 0 else low), (1.0 if right == n else high)  # exact where rounding would miss


def paired_bootstrap(
    first: np.ndarray, second: np.ndarray, groups: Sequence[int], level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Percentile interval of mean(first) - mean(second), both (N,) of 0 and 1 on the same items.

    Whole groups are drawn again, because versions of one sentence are not independent.
    """
    _, place = np.unique(np.asarray(groups), return_inverse=True)
    gain = np.bincount(place, weights=first.astype(float) - second.astype(float))  # (G,)
    size = np.bincount(place)  # (G,)
    rng, means = np.random.default_rng(seed), []
    for _ in range(RESAMPLES // 100):  # a hundred at once, to bound memory
        weights = resample(rng, len(gain), 100)  # (100, G)
        means.append((weights @ gain) / (weights @ size))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def mcnemar(first: np.ndarray, second: np.ndarray) -> float:
    """Exact two-sided p that both are right equally often; (N,) booleans on the same items."""
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)
