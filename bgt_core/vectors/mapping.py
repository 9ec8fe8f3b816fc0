"""Vectors of one encoder in the place of another's: an affine map, by least squares from sentences that both embed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.linear_model import RidgeCV

from bgt_core.errors import DataError

LEAST = 10  # sentences
PENALTIES = np.logspace(-6, 2, 9)  # of the squared weights, as shares of a unit's mean variance times the sentences


def least_squares_map(vectors: np.ndarray, onto: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Map the vectors of one encoder onto those of another.

    A ridge penalty, chosen by leaving each sentence out in turn, makes 1,000 sentences enough for any width.
    Chen, Xu and Bjerva (2025, ALGEN, arXiv 2502.11308) give a decoder the vectors of another encoder in this way.

    Args:
        vectors: One encoder's vectors of N sentences, (N, D).
        onto: The other's vectors of the same sentences, (N, E).

    Returns:
        A function from vectors of the first encoder, (M, D), to vectors in the place of the second's, (M, E) float32.

    Raises:
        DataError: Different numbers of vectors, fewer than ten, or vectors that are all the same.
    """
    if len(vectors) != len(onto) or len(vectors) < LEAST:
        raise DataError(
            f"{len(vectors)} and {len(onto)} vectors; a map needs vectors of the same {LEAST} sentences or more."
        )
    scale = vectors.var(0, dtype=np.float64).mean() * len(vectors)
    if not scale > 0:
        raise DataError(f"All {len(vectors)} vectors to map from are the same; a map needs different ones.")
    ridge = RidgeCV(alphas=PENALTIES * scale).fit(vectors.astype(np.float64), onto.astype(np.float64))
    return lambda given: ridge.predict(given.astype(np.float64)).astype(np.float32)
