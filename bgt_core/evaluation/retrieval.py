"""Translation retrieval: whose nearest neighbour in the other language is its translation?"""

from __future__ import annotations

import numpy as np

from bgt_core.vectors import unit


def precision_at_1(queries: np.ndarray, answers: np.ndarray) -> float:
    """Share of rows of queries (N, D) whose nearest row of answers (N, D), by cosine, is their own."""
    nearest = (unit(queries) @ unit(answers).T).argmax(1)
    return float((nearest == np.arange(len(queries))).mean())
