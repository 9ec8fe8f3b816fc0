"""Rows of vectors, compared."""

from __future__ import annotations

import numpy as np


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows (N, D) scaled to length 1; a zero row stays zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.finfo(np.float32).tiny)


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Cosine of each row of left (N, D) with the same row of right (N, D): (N,)."""
    return (unit(left) * unit(right)).sum(-1)


class Cosine:
    """Cosines, as `contracts.Similarity`; those of a zero vector are 0."""

    def pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """(N, D), (N, D) -> (N,)."""
        return cosines(left, right)

    def matrix(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """(N, D), (M, D) -> (N, M)."""
        return unit(left) @ unit(right).T


COSINE = Cosine()
