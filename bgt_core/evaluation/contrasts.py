"""Test whether a sum of scores is more than chance, given the variance of pairs and of trainings.

A score of a system is the mean over its K seeds. The variance of a sum of scores has two parts: that of resampling the
pairs (paired: all systems meet the same resamples), and that of training again (the spread of seeds about their means,
pooled over the systems with several seeds; a system with one seed is assumed to vary like the others). By Welch and
Satterthwaite the sum over its error follows a t distribution, with degrees of freedom from the seeds; the first part
counts as known. If no system has several seeds, the second part is unknown and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

HOLDS, FAILS, NOT_SEPARABLE, NOT_RUN = "holds", "does not hold", "not separable", "not run"
ERROR_EPS = 1e-9  # a smaller standard error, in points of 100, is rounding


class BootstrappedScore(NamedTuple):
    """One measure of one system."""

    values: np.ndarray  # (K,), one per seed
    draws: np.ndarray  # (K, B), in each resample of the pairs


class ContrastEstimate(NamedTuple):
    """A weighted sum of scores, with its interval and the two-sided p that it is 0."""

    value: float
    low: float
    high: float
    p: float
    counts_seeds: bool  # whether p includes the variance of trainings


def contrast(parts: Sequence[tuple[float, BootstrappedScore]], level: float) -> ContrastEstimate:
    """Sum weight x score over (weight, score) parts; its interval covers the true value with probability `level`."""
    value = sum(weight * score.values.mean() for weight, score in parts)
    draws = np.sum([weight * score.draws.mean(0) for weight, score in parts], axis=0)  # (B,)
    pairs = draws.var(ddof=1)
    spare = sum(len(score.values) - 1 for _, score in parts)
    trainings = 0.0
    if spare:
        spread = sum(((score.values - score.values.mean()) ** 2).sum() for _, score in parts) / spare
        trainings = spread * sum(weight**2 / len(score.values) for weight, score in parts)
    error = np.sqrt(pairs + trainings)
    if error < ERROR_EPS:
        return ContrastEstimate(float(value), float(value), float(value), 1.0, bool(spare))
    freedom = (pairs + trainings) ** 2 / (trainings**2 / spare) if trainings else np.inf
    half = student.ppf((1 + level) / 2, freedom) * error
    p = 2 * student.sf(abs(value) / error, freedom)
    return ContrastEstimate(float(value), float(value - half), float(value + half), float(p), bool(spare))


def verdict(value: float, p_holm: float, level: float) -> str:
    """The verdict on the claim that the sum is above 0."""
    if p_holm >= 1 - level:
        return NOT_SEPARABLE
    return HOLDS if value > 0 else FAILS
