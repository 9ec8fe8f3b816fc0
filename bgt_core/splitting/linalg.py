"""Matrices that whiten."""

from __future__ import annotations

import numpy as np

ROUNDING = 1e-10  # a variance below this share of the largest is none


def roots(covariance: np.ndarray, shrinkage: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse square root of a covariance, and its square root.

    Args:
        covariance: (D, D).
        shrinkage: Weight of the mean variance times the identity, from 0 to 1, mixed into it (Ledoit and Wolf 2004).

    Returns:
        Two symmetric matrices (D, D). Axes without variance are 0 in both.
    """
    width = len(covariance)
    mixed = (1 - shrinkage) * covariance + shrinkage * np.trace(covariance) / width * np.eye(width)
    variances, axes = np.linalg.eigh(mixed)
    kept = variances > ROUNDING * max(variances[-1], np.finfo(float).tiny)
    scales, axes = np.sqrt(variances[kept]), axes[:, kept]
    return (axes / scales) @ axes.T, (axes * scales) @ axes.T
