"""Confidence intervals of scores and differences, mostly by the bootstrap, which resamples test items.

A resample is stored as N weights, which count how often each of N items was drawn. A statistic is a function of the
weights of B resamples, (B, N), and of one value per system and item, (S, N). All S systems have the same resamples, so
their differences are paired. With weights of 1, (1, N), the statistic is computed on the original items.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple, TypeVar

import numpy as np

CHUNK = 100  # number of resamples that are drawn together
MAX_WEIGHTS = 2**20  # maximum number of weights (resamples x items) in memory at once
VARIANCE_EPS = 1e-12  # a variance below this share of the mean square counts as 0: it is rounding error

Key = TypeVar("Key")  # the name of a statistic


class ItemSample(NamedTuple):
    """A sample of N test items, from which the bootstrap draws resamples."""

    items: int
    key: tuple[int, ...] = ()  # appended to the seed, so that different samples are resampled independently


def resample(rng: np.random.Generator, items: int, resamples: int) -> np.ndarray:
    """Draw N items with replacement, B times, and count how often each item is drawn: (B, N) float64."""
    drawn = rng.integers(0, items, (resamples, items))
    drawn += items * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * items).reshape(resamples, items).astype(np.float64)


def bootstrap(
    statistic: Callable[[Sequence[np.ndarray]], Mapping[Key, np.ndarray]],
    samples: Sequence[ItemSample],
    *,
    resamples: int,
    seed: int,
) -> tuple[dict[Key, np.ndarray], dict[Key, np.ndarray]]:
    """Return two dicts: {name: statistic on the original items} and {name: its values on R resamples, (R, ...)}.

    `statistic` takes one array of weights (B, N) for each of `samples`, and returns {name: array (B, ...)}.
    """
    streams = [np.random.default_rng([seed, *sample.key]) for sample in samples]
    chunk = max(1, min(CHUNK, MAX_WEIGHTS // max(sample.items for sample in samples)))
    parts = []
    for start in range(0, resamples, chunk):
        count = min(chunk, resamples - start)
        drawn = [resample(rng, sample.items, count) for rng, sample in zip(streams, samples, strict=True)]
        parts.append(statistic(drawn))
    values = statistic([np.ones((1, sample.items)) for sample in samples])
    draws = {key: np.concatenate([part[key] for part in parts]) for key in values}
    return {key: value[0] for key, value in values.items()}, draws


def share(weights: np.ndarray, part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return 100 x the weighted sum of `part` / the weighted sum of `whole`: (B, N), (S, N), (S, N) -> (B, S)."""
    return 100 * (weights @ part.T) / (weights @ whole.T)


def pearson(weights: np.ndarray, systems: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Compute Pearson's r between a system's scores and gold scores in each resample; 0 if one of them is constant.

    Shapes: (B, N), (S, N), (N,) -> (B, S).
    """
    x, y = scaled(systems).T, scaled(gold)[:, None]  # (N, S), (N, 1)
    count = weights.sum(1, keepdims=True)  # (B, 1)
    mean_x, mean_y = weights @ x / count, weights @ y / count
    square_x, square_y = weights @ (x * x) / count, weights @ (y * y) / count
    var_x, var_y = square_x - mean_x**2, square_y - mean_y**2
    varied = (var_x > VARIANCE_EPS * square_x) & (var_y > VARIANCE_EPS * square_y)
    return ratio(weights @ (x * y) / count - mean_x * mean_y, var_x, var_y, varied)


def spearman(weights: np.ndarray, systems: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Compute Spearman's rho (Pearson's r of the ranks) in each resample: (B, N), (S, N), (N,) -> (B, S)."""
    middle = (weights.sum(1, keepdims=True) + 1) / 2  # the mean rank; ties do not change it
    y = ranks(weights, gold) - middle  # (B, N)
    weighted_y = weights * y
    var_y = np.einsum("bn,bn->b", weighted_y, y)
    correlations = []
    for system in systems:
        x = ranks(weights, system) - middle
        var_x = np.einsum("bn,bn->b", weights * x, x)
        correlations.append(ratio(np.einsum("bn,bn->b", weighted_y, x), var_x, var_y, (var_x > 0) & (var_y > 0)))
    return np.stack(correlations, 1)


def ranks(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Rank the items of each resample, from 1; equal values get their mean rank: (B, N), (N,) -> (B, N)."""
    order = np.argsort(values)
    ordered = values[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] > ordered[:-1]))  # (G,): where each run of equal values begins
    count = np.add.reduceat(weights.take(order, axis=1), starts, axis=1)  # (B, G)
    shared = count.cumsum(1) - count + (count + 1) / 2
    group = np.empty(len(values), dtype=np.intp)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(values))))
    return shared.take(group, axis=1)


def scaled(values: np.ndarray) -> np.ndarray:
    """Subtract the median of each row (..., N) and divide by the row's range, so that sums of squares lose no digits.

    Subtracting the mean would not work: with one outlier, all other values are far from the mean and close together.
    """
    spread = np.ptp(values, axis=-1, keepdims=True)
    return (values - np.median(values, axis=-1, keepdims=True)) / np.where(spread > 0, spread, 1)


def ratio(covariance: np.ndarray, first: np.ndarray, second: np.ndarray, varied: np.ndarray) -> np.ndarray:
    """Divide covariances by the square roots of the variances `first` and `second`; 0 where `varied` is False."""
    return np.where(varied, covariance / np.sqrt(np.where(varied, first * second, 1)), 0)


def interval(draws: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper ends of percentile intervals, (...) each, given B resampled statistics, (B, ...)."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def two_sided_p(difference: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Return the two-sided p-value of each difference (...), for the null hypothesis that the difference is 0.

    The difference is assumed to be normally distributed. Its standard error is the standard deviation of `draws` (B,
    ...), the differences in B resamples. A p-value that counts resamples could not be below 1 / B, which is too large
    for Holm's correction. If all resampled differences are equal, p is 1.
    """
    from scipy.special import ndtr  # slow to import

    error = draws.std(0, ddof=1)
    sure = error > VARIANCE_EPS
    return np.where(sure, 2 * ndtr(-np.abs(difference) / np.where(sure, error, 1)), 1.0)


def holm(p: np.ndarray) -> np.ndarray:
    """Adjust p-values (M,) by Holm's method (1979), which limits the probability of any false rejection."""
    order = np.argsort(p)
    steps = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(steps, 1)
    return adjusted


def wilson(right: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's (1927) interval of the fraction right / n; `right` may be a mean over seeds."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    p, scale = right / n, 1 + z * z / n
    middle = (p + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = middle - half, middle + half
    return (0.0 if right == 0 else low), (1.0 if right == n else high)  # exactly 0 or 1, without rounding error


# Tests of weighted sums of scores. A claim of a paper, such as "a is better than b", says that a weighted sum of scores
# is above 0. The variance of the sum has two parts. The first is the variance over resamples of the test items; all
# systems have the same resamples. The second is the variance over trainings: the variance of a system's scores about
# their mean, pooled over the systems with several seeds. A system with one seed is assumed to vary as much as the
# others. The sum divided by its standard error is tested by a t distribution. The degrees of freedom follow from the
# number of seeds (Welch and Satterthwaite), as if the first part of the variance were known exactly. If no system has
# several seeds, the second part is unknown and left out.

HOLDS, FAILS, NOT_SEPARABLE, NOT_RUN = "holds", "does not hold", "not separable", "not run"
ERROR_EPS = 1e-9  # a smaller standard error, of scores x 100, is only rounding error


class BootstrappedScore(NamedTuple):
    """A score of a system, for each training seed and bootstrap resample."""

    values: np.ndarray  # (K,), the score of each of K trainings with different seeds
    draws: np.ndarray  # (K, B), the score of each training in each resample of the test items


class ContrastEstimate(NamedTuple):
    """A weighted sum of scores, its interval, and a two-sided p-value for the null hypothesis that the sum is 0."""

    value: float
    low: float
    high: float
    p: float
    counts_seeds: bool  # whether the p-value includes the variance over trainings


def contrast(parts: Sequence[tuple[float, BootstrappedScore]], level: float) -> ContrastEstimate:
    """Estimate a weighted sum of scores, given (weight, score) pairs, with an interval of confidence `level`."""
    from scipy.special import stdtr, stdtrit  # slow to import; scipy.stats is slower

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
    half = stdtrit(freedom, (1 + level) / 2) * error
    p = 2 * stdtr(freedom, -abs(value) / error)
    return ContrastEstimate(float(value), float(value - half), float(value + half), float(p), bool(spare))


def verdict(value: float, p_holm: float, level: float) -> str:
    """Return whether the claim that a weighted sum of scores is above 0 "holds", given the sum and its p-value."""
    if p_holm >= 1 - level:
        return NOT_SEPARABLE
    return HOLDS if value > 0 else FAILS
