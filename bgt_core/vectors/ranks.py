"""The one rule for ties: similarities that differ by less than a millionth are equal.

Equal ones count half where two are compared, and 1/k where k answers are the nearest.
"""

from __future__ import annotations

import numpy as np

from bgt_core.vectors.compare import BLOCK, DECIMALS, ROUNDING, Similarity, cosine_similarity


def rounded(similarities: np.ndarray) -> np.ndarray:
    """Round similarities to six decimals before they are ranked or compared with a threshold, so that equal ones tie.

    Rounding alone would part values on both sides of an edge, as 0.1234564999 and 0.1234565001. Therefore values that
    differ by less than a millionth from the next ones are first set to the lowest of them; a wider run of such values
    is cut every millionth, so that dense values keep their order.

    Args:
        similarities: Numbers (N,), usually cosines.

    Returns:
        The rounded numbers, (N,) float64.
    """
    values, place = np.unique(np.asarray(similarities, np.float64), return_inverse=True)  # rising
    first = np.diff(values, prepend=-np.inf) >= ROUNDING  # of each run
    lowest = values[first][first.cumsum() - 1]
    steps = np.floor((values - lowest) / ROUNDING + 1e-3)  # rounded values, whole steps apart, stay as they are
    return (lowest + ROUNDING * steps).round(DECIMALS)[place]


def above(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """For each of two similarities (N,), (N,): 1 if the first is higher, 0 if it is lower, 0.5 for a tie: (N,)."""
    gains = np.asarray(first, np.float64) - second
    return np.where(np.abs(gains) < ROUNDING, 0.5, gains > 0)


def hits(similarity: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Whether the most similar answer is a query's own.

    Args:
        similarity: Of queries and answers, (N, M).
        own: The answer of each query, (N,).

    Returns:
        For each query 1, 0, or 1/k if its own is one of k that are most similar, (N,).
    """
    first = similarity > similarity.max(1, keepdims=True) - ROUNDING
    return first[np.arange(len(own)), own] / first.sum(1)


def found(
    queries: np.ndarray,
    answers: np.ndarray,
    own: np.ndarray | None = None,
    similarity: Similarity = cosine_similarity,
) -> np.ndarray:
    """The `hits` of vectors, (N, D) and (M, D), compared block by block; a query's own is by default the same row."""
    own = np.arange(len(queries)) if own is None else own
    blocks = [slice(start, start + BLOCK) for start in range(0, len(queries), BLOCK)]
    return np.concatenate([np.zeros(0), *(hits(similarity(queries[rows], answers), own[rows]) for rows in blocks)])
