"""Translation retrieval: whose nearest neighbour in the other language is its translation?"""

from __future__ import annotations

import numpy as np


def precision_at_1(queries: np.ndarray, answers: np.ndarray) -> float:
    """Share of rows of queries (N, D) whose nearest row of answers (N, D), by cosine, is their own."""
    left = queries / np.maximum(np.linalg.norm(queries, axis=1, keepdims=True), 1e-12)
    right = answers / np.maximum(np.linalg.norm(answers, axis=1, keepdims=True), 1e-12)
    return float(((left @ right.T).argmax(1) == np.arange(len(left))).mean())
