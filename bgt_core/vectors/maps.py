"""Linear maps of vectors: erase labels (LEACE), map one encoder to another, or change one property of a sentence."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import RidgeCV

from bgt_core.errors import DataError

TOLERANCE = 1e-6  # standard deviations and singular values below this share of the largest one are rounding error


def leace(mean: np.ndarray, covariance: np.ndarray, cross: np.ndarray) -> tuple[np.ndarray, ...]:
    """Fit the LEACE map (Belrose et al., 2023, theorem 4.3): the smallest change, in mean square, that erases labels.

    After the change, no linear probe predicts labels better than their frequencies do. Units are first scaled to
    variance 1, which does not change the result, but prevents that units with little variance count as rounding error.

    Args:
        mean: Mean of the vectors, (D,).
        covariance: Covariance of the vectors, (D, D).
        cross: Covariance of the vectors with each label, divided by the square root of its frequency, (D, K).

    Returns:
        `read` and `write`, (D, r) each: vector - (vector - mean) read write^T has no covariance with the labels. r is
        less than K, and 0 if the covariance is 0 up to rounding. The third, (D,) bool, marks units that contain only
        rounding error after the change. This may reveal the label, so set these units to their mean.
    """
    variances = covariance.diagonal()
    units = np.sqrt(variances)
    units = np.where(units <= TOLERANCE**2 * np.abs(mean), 1, units)  # constant, except for rounding
    values, axes = np.linalg.eigh(covariance / units / units[:, None])
    kept = values > TOLERANCE**2 * max(values[-1], np.finfo(float).tiny)
    axes, scale = axes[:, kept], np.sqrt(values[kept])
    left, correlations, _ = np.linalg.svd((axes / scale).T @ (cross / units[:, None]), full_matrices=False)
    basis = left[:, correlations > TOLERANCE]  # (kept, r)
    read, write = (axes / scale) @ basis / units[:, None], (axes * scale) @ basis * units[:, None]
    return read, write, variances - np.square(write).sum(1) < TOLERANCE**2 * variances


LEAST = 10  # minimum number of sentences for `least_squares_map`
PENALTIES = np.logspace(-6, 2, 9)  # ridge penalties, relative to the mean variance of units times the sentences


def least_squares_map(vectors: np.ndarray, onto: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Fit an affine map from the vectors of one encoder to those of another by ridge regression.

    The penalty with the smallest leave-one-out error is used, so that 1,000 sentences suffice for any width. Chen, Xu
    and Bjerva (2025, ALGEN, arXiv 2502.11308) use such a map to decode the vectors of another encoder.

    Args:
        vectors: One encoder's vectors of N sentences, (N, D).
        onto: The other encoder's vectors of the same sentences, (N, E).

    Returns:
        A function that maps vectors of the first encoder, (M, D), to vectors of the second, (M, E) float32.

    Raises:
        DataError: The numbers of vectors differ or are below ten, or all vectors are the same.
    """
    if len(vectors) != len(onto) or len(vectors) < LEAST:
        raise DataError(
            f"{len(vectors)} and {len(onto)} vectors; a map needs vectors of the same {LEAST} sentences or more."
        )
    scale = vectors.var(0, dtype=np.float64).mean() * len(vectors)
    if not scale > 0:
        raise DataError(f"All {len(vectors)} vectors to map from are the same; a map needs different ones.")
    ridge = RidgeCV(alphas=PENALTIES * scale).fit(vectors.astype(np.float64), onto.astype(np.float64))
    return lambda given: ridge.predict(given.astype(np.float64)).astype(np.float32)


HELD_OUT = 5  # every fifth sentence is a test sentence
MIN_SENTENCES = 50


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions in a latent that change K factors of a sentence, such as its length or its number of marks."""

    names: tuple[str, ...]
    patterns: np.ndarray  # (K, D), the change of the vector per unit of the factor, such as one more word
    read: tuple[float, ...]  # correlation of each factor with its linear prediction on held-out sentences

    def move(self, vectors: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Move vectors (N, D) by steps (N, K) in units of the factors: (N, D) float32."""
        return (vectors + steps @ self.patterns).astype(np.float32)


def directions(vectors: np.ndarray, factors: np.ndarray, names: tuple[str, ...]) -> Directions:
    """Fit the directions of K factors to vectors (N, D) and factors (N, K) of N sentences.

    Every fifth sentence is held out to test the predictions. Raises DataError for fewer than 50 sentences or a factor
    that is constant.
    """
    if len(vectors) < MIN_SENTENCES:
        raise DataError(f"{len(vectors)} sentences; directions need {MIN_SENTENCES} or more.")
    factors = np.asarray(factors, dtype=float)
    if len(flat := np.flatnonzero(np.ptp(factors, axis=0) == 0)):
        raise DataError(f"Every sentence has the same '{names[flat[0]]}'; a direction needs different ones.")
    test = np.arange(len(vectors)) % HELD_OUT == 0
    ones = np.ones((len(vectors), 1))
    explained, *_ = np.linalg.lstsq(np.hstack([factors, ones]), vectors, rcond=None)
    readout, *_ = np.linalg.lstsq(np.hstack([vectors, ones])[~test], factors[~test], rcond=None)
    predicted = np.hstack([vectors, ones])[test] @ readout  # (N test, K)
    read = tuple(float(np.corrcoef(predicted[:, factor], factors[test, factor])[0, 1]) for factor in range(len(names)))
    return Directions(names, explained[:-1], read)
