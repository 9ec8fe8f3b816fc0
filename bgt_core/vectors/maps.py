"""Fit linear maps of sentence vectors: LEACE, which erases labels, and directions that change a property."""

from dataclasses import dataclass

import numpy as np

from bgt_core.errors import DataError

TOLERANCE = 1e-6  # standard deviations and singular values below this share of the largest are rounding errors


def leace(mean: np.ndarray, covariance: np.ndarray, cross: np.ndarray) -> tuple[np.ndarray, ...]:
    """Fit the LEACE map (Belrose et al., 2023, theorem 4.3): the smallest change, in mean square, that erases labels.

    After the change, no linear probe predicts labels better than their frequencies do. Units are first scaled to
    variance 1. This does not change the result, but without it, units with little variance would count as rounding
    errors.

    Args:
        mean: Mean of the vectors, (D,).
        covariance: Covariance of the vectors, (D, D).
        cross: Covariance of the vectors with each label, divided by the square root of the label's frequency, (D, K).

    Returns:
        `read` and `write`, (D, r) each: vector - (vector - mean) read write^T has no covariance with the labels. r is
        less than K, and 0 if `cross` is 0 up to rounding. The third array, (D,) bool, marks units that contain
        only rounding errors after the change. The errors may reveal the label, so set these units to their mean.
    """
    variances = covariance.diagonal()
    units = np.sqrt(variances)
    units = np.where(units <= TOLERANCE**2 * np.abs(mean), 1, units)  # constant units are not scaled
    values, axes = np.linalg.eigh(covariance / units / units[:, None])
    kept = values > TOLERANCE**2 * max(values[-1], np.finfo(float).tiny)
    axes, scale = axes[:, kept], np.sqrt(values[kept])
    left, correlations, _ = np.linalg.svd((axes / scale).T @ (cross / units[:, None]), full_matrices=False)
    basis = left[:, correlations > TOLERANCE]  # (kept, r)
    read, write = (axes / scale) @ basis / units[:, None], (axes * scale) @ basis * units[:, None]
    return read, write, variances - np.square(write).sum(1) < TOLERANCE**2 * variances


HELD_OUT = 5  # every fifth sentence is a test sentence
MIN_SENTENCES = 50


@dataclass(frozen=True, eq=False)
class Directions:
    """Linear directions in a latent space that change K factors of a sentence, such as its length."""

    names: tuple[str, ...]
    patterns: np.ndarray  # (K, D), change of the vector if a factor grows by 1, such as by one word
    read: tuple[float, ...]  # correlation of each factor with its linear prediction on held-out sentences

    def move(self, vectors: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Change factors of sentences: move vectors (N, D) by steps (N, K), in units of the factors; (N, D) float32."""
        return (vectors + steps @ self.patterns).astype(np.float32)


def directions(vectors: np.ndarray, factors: np.ndarray, names: tuple[str, ...]) -> Directions:
    """Fit linear directions that change K factors, given vectors (N, D) and factors (N, K) of N sentences.

    Every fifth sentence is held out to test the predictions. Raises DataError for fewer than 50 sentences, or if a
    factor is constant.
    """
    if len(vectors) < MIN_SENTENCES:
        raise DataError(f"{len(vectors)} sentences; to fit directions, give {MIN_SENTENCES} or more.")
    factors = np.asarray(factors, dtype=float)
    if len(flat := np.flatnonzero(np.ptp(factors, axis=0) == 0)):
        raise DataError(f"Every sentence has the same '{names[flat[0]]}'; expected sentences that differ in it.")
    test = np.arange(len(vectors)) % HELD_OUT == 0
    ones = np.ones((len(vectors), 1))
    explained, *_ = np.linalg.lstsq(np.hstack([factors, ones]), vectors, rcond=None)
    readout, *_ = np.linalg.lstsq(np.hstack([vectors, ones])[~test], factors[~test], rcond=None)
    predicted = np.hstack([vectors, ones])[test] @ readout  # (test sentences, K)
    read = tuple(float(np.corrcoef(predicted[:, factor], factors[test, factor])[0, 1]) for factor in range(len(names)))
    return Directions(names, explained[:-1], read)
