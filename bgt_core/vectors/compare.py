"""Compare rows of vectors by cosine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bgt_core.errors import UsageError

BLOCK = 1_024  # queries compared with all answers at once
DECIMALS = 6  # of a similarity: float32 rounding is up to 2e-7, and differs between batches
ROUNDING = 10.0**-DECIMALS  # similarities that differ by less count as equal

Similarity = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (N, D), (M, D) -> (N, M)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows (N, D) scaled to length 1; a zero row stays zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.finfo(np.float32).tiny)


def check_paired(left: np.ndarray, right: np.ndarray) -> None:
    """Raise UsageError unless both sides have the same shape, one row for each."""
    if left.shape != right.shape:
        text = f"has shape {left.shape}, right {right.shape}; expected the same number of vectors."
        raise UsageError(text, parameter="left")


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Cosine of row i of left (N, D) and row i of right (N, D), 0 for a zero vector: (N,).

    Raises UsageError for sides of different shapes.
    """
    check_paired(left, right)
    return (unit(left) * unit(right)).sum(-1)


def cosine_similarity(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Cosine of each row of left (N, D) with each row of right (M, D), 0 for a zero vector: (N, M)."""
    return unit(left) @ unit(right).T


def nearest(queries: np.ndarray, answers: np.ndarray, similarity: Similarity = cosine_similarity) -> np.ndarray:
    """The row of answers (M, D) most similar to each row of queries (N, D), the first if several tie: (N,) int."""
    first = [np.zeros(0, dtype=np.intp)]
    for start in range(0, len(queries), BLOCK):
        block = similarity(queries[start : start + BLOCK], answers)
        first.append((block > block.max(1, keepdims=True) - ROUNDING).argmax(1))
    return np.concatenate(first)


class ComparesByCosine:
    """The similarities of an encoder whose vectors are compared by cosine; a base class for such encoders."""

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare each row of left (N, D) with each row of right (M, D): (N, M)."""
        return cosine_similarity(left, right)

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare row i of left (N, D) with row i of right (N, D): (N,)."""
        return cosines(left, right)
