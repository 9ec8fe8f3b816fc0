"""Whether a search finds what it should: k answers that are equally near, but for rounding, share the hit."""

from __future__ import annotations

import numpy as np

from bgt_core.vectors.compare import BLOCK, ROUNDING, Similarity, cosine_similarity


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
