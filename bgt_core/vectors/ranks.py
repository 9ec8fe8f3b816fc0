"""Where a row's own partner is among the answers that a search finds."""

from __future__ import annotations

import numpy as np

from bgt_core.vectors.compare import ROUNDING


def found(similarity: np.ndarray, own: np.ndarray | None = None) -> np.ndarray:
    """Whether a query's own answer is the most similar one; of k that tie but for rounding, it is one in k.

    Args:
        similarity: Of queries and answers, (N, M).
        own: The answer of each query, (N,); by default the one of the same row.

    Returns:
        1, 1/k or 0 for each query, (N,).
    """
    first = similarity > similarity.max(1, keepdims=True) - ROUNDING
    own = np.arange(len(first)) if own is None else own
    return first[np.arange(len(first)), own] / first.sum(1)
