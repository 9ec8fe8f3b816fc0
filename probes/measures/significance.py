"""Intervals of scores and tests of differences; an interval and its p-value use the same standard error.

The standard error of a mean has two parts. The first part is due to the choice of test items. It is estimated by a
bootstrap over whole groups of items, because versions of one sentence are not independent. All predictors are scored on
the same resamples, so that differences are paired. The second part is the variance of the scores of different seeds,
with Student's t, because there are few seeds. If each seed is tested on other items (such as folds), this variance
already contains the noise of these items. So the bootstrap adds only the noise of the items that all seeds share. By
chance, a few seeds may have similar scores. So their variance counts as at least the noise of the items not shared.

The degrees of freedom are the number of seeds minus 1, divided by the seeds' share of the variance. For this share, the
variance of the seeds counts as at least half the noise of their items. In simulations, the interval covers the true
mean in at least 95% of all cases, and in at least 93% of the cases in which the seeds have similar scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t

from bgt_core.evaluation.bootstrap import holm, resample
from bgt_core.evaluation.bootstrap import wilson as wilson
from probes.results.store import Difference

RESAMPLES = 2_000
MIN_RESAMPLES = 100  # with fewer resamples, the standard error is not reliable
MAX_WEIGHTS = 2**22  # maximum number of bootstrap weights in memory at once


@dataclass(frozen=True, eq=False)
class Runs:
    """Mean scores of a predictor (E encoder seeds, S probe seeds each) on the test items and B resamples of them."""

    points: np.ndarray  # (E, S)
    draws: np.ndarray  # (B, E, S)

    def __sub__(self, other: Runs) -> Runs:
        """Return the paired difference of two systems. A single encoder is compared with each encoder of the other
        system. Equal numbers of encoders are paired in order. Otherwise, the encoders of `other` are averaged."""
        if 1 != len(self.points) != len(other.points) != 1:
            other = Runs(other.points.mean(0, keepdims=True), other.draws.mean(1, keepdims=True))
        return Runs(self.points - other.points, self.draws - other.draws)

    @property
    def mean(self) -> float:
        return float(self.points.mean())

    def error(self) -> tuple[float, float]:
        """Return the standard error of the mean, for new seeds and new test items, and its degrees of freedom.

        If there are several encoders, the seeds are the encoder seeds, and scores are averaged over probe seeds. If
        there is one encoder, the seeds are the probe seeds.
        """
        noise = self.draws - self.points  # (B, E, S)
        axis = 2 if len(self.points) > 1 else 1
        scores, noise = self.points.mean(axis - 1).ravel(), noise.mean(axis)  # (n,), (B, n) for n seeds
        seeds, items = len(scores), noise.mean(1).var(ddof=1)
        if seeds == 1:
            return math.sqrt(items), math.inf
        between, own = scores.var(ddof=1) / seeds, noise.var(1, ddof=1).mean() / seeds  # own: noise of items not shared
        variance = max(0.0, items - own) + max(between, own)
        spread = max(between, own / 2)
        return math.sqrt(variance), (seeds - 1) * variance / spread if spread else math.inf

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of the mean."""
        error, freedom = self.error()
        half = float(t.ppf((1 + level) / 2, freedom)) * error
        return self.mean - half, self.mean + half

    def p(self) -> float:
        """Return the two-sided p-value for a mean of 0: the interval at confidence level 1 - p just touches 0."""
        error, freedom = self.error()
        return float(2 * t.sf(abs(self.mean) / error, freedom)) if error else float(self.mean == 0)


def bootstrap(
    scores: Sequence[np.ndarray], tested: np.ndarray, groups: Sequence[int], resamples: int = RESAMPLES, seed: int = 0
) -> list[Runs]:
    """Average several predictors' scores over the test items, and over bootstrap resamples that all of them share.

    `scores` contains one (E, S, N) array for each predictor; `tested` (S, N) marks the items on which the probe of each
    seed was tested. If a resample contains none of a seed's test items, the seed's mean over all its test items is
    used. A resample is a weight per group, so a matrix product of weights and group sums gives all resamples.
    """
    used = tested.any(0)
    names, group = np.unique(np.asarray(groups)[used], return_inverse=True)
    tested, scores = tested[:, used], [score[..., used] for score in scores]
    rows = np.concatenate([np.where(tested, score, 0.0).reshape(-1, tested.shape[1]) for score in scores])  # (R, N)
    sums, sizes = _by_group(rows, group), _by_group(tested.astype(float), group)  # (R, G), (S, G)
    rng = np.random.default_rng(seed)
    totals, counts = [sums.sum(1)[None]], [sizes.sum(1)[None]]  # row 0: the test items themselves; then the resamples
    for part in np.array_split(np.arange(resamples), 1 + resamples * len(names) // MAX_WEIGHTS):
        weights = resample(rng, len(names), len(part))
        totals.append(weights @ sums.T)
        counts.append(weights @ sizes.T)
    ends = np.cumsum([np.prod(score.shape[:2]) for score in scores])[:-1]
    count = np.concatenate(counts)[:, None]  # (1 + B, 1, S)
    runs = []
    for score, part in zip(scores, np.split(np.concatenate(totals), ends, axis=1), strict=True):
        right = part.reshape(-1, *score.shape[:2])  # (1 + B, E, S)
        points = right[0] / count[0]
        runs.append(Runs(points, np.where(count[1:] > 0, right[1:] / np.maximum(count[1:], 1), points)))
    return runs


def _by_group(rows: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Sum over the items of each group, (R, N) -> (R, G)."""
    order = np.argsort(group, kind="stable")
    return np.add.reduceat(rows[:, order], np.flatnonzero(np.diff(group[order], prepend=-1)), axis=1)


def difference(task: str, lang: str, names: tuple[str, str], paired: Runs) -> Difference:
    """Return the difference of two predictors in percentage points, given paired scores; the interval is cut at
    ±100."""
    low, high = (100 * min(1.0, max(-1.0, end)) for end in paired.interval())
    return Difference(task, lang, *names, 100 * paired.mean, low, high, paired.p())


def correct(differences: Sequence[Difference]) -> list[Difference]:
    """Add p-values with Holm's correction over all these differences."""
    adjusted = holm(np.array([gap.p for gap in differences]))
    return [replace(gap, adjusted_p=float(p)) for gap, p in zip(differences, adjusted, strict=True)]
