"""Erase labels from vectors by LEACE (Belrose et al., 2023, theorem 4.3): the least change, in mean square, after which
no linear probe does better than the shares of the labels."""

from __future__ import annotations

import numpy as np

TOLERANCE = 1e-6  # standard deviations, and singular values, below this share of the largest are rounding error


def leace(mean: np.ndarray, covariance: np.ndarray, cross: np.ndarray) -> tuple[np.ndarray, ...]:
    """Find what to subtract from vectors.

    Each unit is scaled to variance 1 first, which does not change the eraser: no axis of a small unit is lost.

    Args:
        mean: Of the vectors, (D,).
        covariance: Of the vectors, (D, D).
        cross: Covariance of the vectors with each label, divided by a root of the label's share, (D, K).

    Returns:
        `read` and `write`, (D, r) each: vector - (vector - mean) read write^T has no covariance with the labels. r is
        less than K, and 0 if there is no covariance beyond rounding. Third, (D,) bool: units that hold nothing but
        rounding error. It may tell the label, so set these units to their mean.
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
