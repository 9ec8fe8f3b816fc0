"""How sure a score is, what of its spread comes from seeds, and whether two scores differ.

Test items are drawn again as whole groups (versions of one sentence are not independent), all predictors in the same
resamples, so differences are paired. Seeds are few, and a bootstrap of three values knows only three: their 95%
interval would hold the truth about three times in four. So the part of the spread that seeds add to what test items
explain is estimated, and drawn from Student's t. Probe seeds and encoder seeds are kept apart until the last sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from scipy.stats import binomtest

from bgt_core.evaluation.bootstrap import holm, interval, resample
from probes.result import Difference

RESAMPLES = 2_000
AT_ONCE = 2**22  # weights held in memory at once


def wilson(right: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of the fraction right / n; `right` may be a mean over seeds."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    p, scale = right / n, 1 + z * z / n
    middle = (p + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = middle - half, middle + half
    return (0.0 if right == 0 else low), (1.0 if right == n else high)  # exact where rounding would miss


@dataclass(frozen=True)
class Runs:
    """Scores of E encoder seeds with S probe seeds each, and of their resamples."""

    points: np.ndarray  # (E, S)
    draws: np.ndarray  # (B, E, S), test items drawn again

    def __sub__(self, other: Runs) -> Runs:
        """The paired difference; one encoder stands against several as itself each time."""
        return Runs(self.points - other.points, self.draws - other.draws)

    @property
    def mean(self) -> float:
        return float(self.points.mean())

    def spread(self) -> tuple[float, float]:
        """Standard deviations over probe seeds and over encoder seeds that test items don't explain; 0 for one seed."""
        encoders, probes = self.points.shape
        noise = self.draws - self.points
        probe = encoder = 0.0
        if probes > 1:
            found = self.points.var(1, ddof=1).mean() - noise.var(2, ddof=1).mean()
            probe = max(0.0, float(found))
        if encoders > 1:
            found = self.points.mean(1).var(ddof=1) - noise.mean(2).var(1, ddof=1).mean() - probe / probes
            encoder = max(0.0, float(found))
        return math.sqrt(probe), math.sqrt(encoder)

    def interval(self, level: float = 0.95, seed: int = 0) -> tuple[float, float]:
        """Of the mean, were encoder, probe and test items drawn anew."""
        encoders, probes = self.points.shape
        rng = np.random.default_rng(seed)
        probe, encoder = self.spread()
        draws = self.draws.mean((1, 2))
        for error, free in (
            (probe / math.sqrt(encoders * probes), encoders * (probes - 1)),
            (encoder / math.sqrt(encoders), encoders - 1),
        ):
            if error > 0:
                draws = draws + error * rng.standard_t(free, len(draws))
        low, high = interval(draws, level)
        return float(low), float(high)


def bootstrap(
    scores: Sequence[np.ndarray], tested: np.ndarray, groups: Sequence[int], resamples: int = RESAMPLES, seed: int = 0
) -> list[Runs]:
    """Means over test items and their resamples, for several predictors in the same resamples.

    `scores` holds one (E, S, N) array a predictor, of any numbers; `tested` (S, N) says which items each probe seed
    was tested on; in a resample with none of those it keeps its mean. Weights of groups times sums over groups is one
    product, so that 2,000 resamples of 10,000 items take a second.
    """
    names, place = np.unique(np.asarray(groups), return_inverse=True)
    rows = np.concatenate([np.where(tested, found, 0.0).reshape(-1, tested.shape[1]) for found in scores])  # (R, N)
    sums, sizes = _by_group(rows, place), _by_group(tested.astype(float), place)  # (R, G), (S, G)
    rng = np.random.default_rng(seed)
    drawn, counts = [sums.sum(1)[None]], [sizes.sum(1)[None]]  # the items as they are, then resamples
    for part in np.array_split(np.arange(resamples), 1 + resamples * len(names) // AT_ONCE):
        weights = resample(rng, len(names), len(part))
        drawn.append(weights @ sums.T)
        counts.append(weights @ sizes.T)
    ends = np.cumsum([np.prod(found.shape[:2]) for found in scores])[:-1]
    count = np.concatenate(counts)[:, None]  # (1 + B, 1, S)
    found = []
    for score, part in zip(scores, np.split(np.concatenate(drawn), ends, axis=1), strict=True):
        sums = part.reshape(-1, *score.shape[:2])  # (1 + B, E, S)
        points = sums[0] / count[0]
        found.append(Runs(points, np.where(count[1:] > 0, sums[1:] / np.maximum(count[1:], 1), points)))
    return found


def _by_group(rows: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Sums over the items of each group, (R, N) -> (R, G)."""
    order = np.argsort(place, kind="stable")
    return np.add.reduceat(rows[:, order], np.flatnonzero(np.diff(place[order], prepend=-1)), axis=1)


def mcnemar(first: np.ndarray, second: np.ndarray) -> float:
    """Exact two-sided p that both are right equally often; (N,) booleans on the same items."""
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)


def correct(differences: Sequence[Difference]) -> list[Difference]:
    """A table of differences with Holm's adjusted p in each: below alpha, all together err with probability alpha."""
    if not differences:
        return []
    adjusted = holm(np.array([difference.mcnemar_p for difference in differences]))
    return [replace(difference, holm_p=float(p)) for difference, p in zip(differences, adjusted, strict=True)]
