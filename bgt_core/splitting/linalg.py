"""Matrices that whiten."""

from __future__ import annotations

import numpy as np

ROUNDING = 1e-10  # a variance below this share of the largest is none


def roots(variances: np.ndarray, axes: np.ndarray, shrinkage: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse square root of a covariance, and its square root.

    Args:
        variances: Its eigenvalues, in ascending order, (D,), as `numpy.linalg.eigh` gives them.
        axes: Its eigenvectors, in columns, (D, D).
        shrinkage: Weight of the mean variance times the identity, from 0 to 1, mixed into it (Ledoit and Wolf 2004).

    Returns:
        Two symmetric matrices (D, D). Axes without variance are 0 in both.
    """
    variances = (1 - shrinkage) * variances + shrinkage * variances.mean()
    kept = variances > ROUNDING * max(variances[-1], np.finfo(float).tiny)
    scales, axes = np.sqrt(variances[kept]), axes[:, kept]
    return (axes / scales) @ axes.T, (axes * scales) @ axes.T
