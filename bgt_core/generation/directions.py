"""Directions in a latent that change one property of a sentence: longer, more marks, a question.

    vectors (N, D), factors (N, K) -> one direction per factor (K, D), and how well it can be read from other sentences

A direction is the pattern of its factor: the change of the vector for one more unit while the other factors stay
(least squares of vectors on factors). A probe's own weights tell how to read a factor, not how to change it: they also
compensate for disturbances of the reading (Haufe et al. 2014, "On the interpretation of weight vectors of linear
models").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bgt_core.errors import DataError

HELD_OUT = 5  # every fifth sentence is a test sentence
MIN_SENTENCES = 50


@dataclass(frozen=True, eq=False)
class Directions:
    """The effect of each of K factors on a vector, and how well it can be read from one."""

    names: tuple[str, ...]
    patterns: np.ndarray  # (K, D), for one unit of the factor: a word, a mark, a question instead of a statement
    read: tuple[float, ...]  # correlation of factor and linear readout on held-out sentences

    def move(self, vectors: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Vectors (N, D) moved by steps (N, K), in units of the factors: (N, D) float32."""
        return (vectors + steps @ self.patterns).astype(np.float32)


def directions(vectors: np.ndarray, factors: np.ndarray, names: tuple[str, ...]) -> Directions:
    """Fit on four fifths of N sentences, test the readout on the rest; DataError for under 50, or a constant factor."""
    if len(vectors) < MIN_SENTENCES:
        raise DataError(f"{len(vectors)} sentences; directions need {MIN_SENTENCES} or more.")
    factors = np.asarray(factors, dtype=float)
    if len(flat := np.flatnonzero(np.ptp(factors, axis=0) == 0)):
        raise DataError(f"Every sentence has the same '{names[flat[0]]}'; a direction needs different ones.")
    test = np.arange(len(vectors)) % HELD_OUT == 0
    ones = np.ones((len(vectors), 1))
    explained, *_ = np.linalg.lstsq(np.hstack([factors, ones]), vectors, rcond=None)
    readout, *_ = np.linalg.lstsq(np.hstack([vectors, ones])[~test], factors[~test], rcond=None)
    predicted = np.hstack([vectors, ones])[test] @ readout  # (N test, K)
    read = tuple(float(np.corrcoef(predicted[:, factor], factors[test, factor])[0, 1]) for factor in range(len(names)))
    return Directions(names, explained[:-1], read)
