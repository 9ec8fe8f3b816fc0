"""Erase a property from vectors, to see what depends on it.

LEACE (`bgt_core.vectors.maps`) is the least change after which no linear probe does better than the shares of the
labels. INLP (Ravfogel et al., 2020) trains linear probes and projects onto the subspace that
they don't use, until they are at the majority. Removing any directions lowers accuracy, so each effect is compared with
that of as many random directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bgt_core.vectors.linear_probe import LinearProbe
from bgt_core.vectors.maps import TOLERANCE
from bgt_core.vectors.maps import leace as least_squares

MARGIN = 0.01  # INLP ends when dev accuracy is this close to that of the majority
MAX_ROUNDS = 50  # of INLP


@dataclass(frozen=True, eq=False)
class Eraser:
    """x -> x - (x - mean) read writeᵀ: the part that `read` (D, r) measures is subtracted along `write` (D, r)."""

    mean: np.ndarray  # (D,)
    read: np.ndarray
    write: np.ndarray
    gone: np.ndarray | None = None  # (D,), units that are set to their mean

    @property
    def rank(self) -> int:
        return self.read.shape[1]

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """(N, D) -> (N, D) of the same type."""
        erased = vectors - (vectors - self.mean) @ self.read @ self.write.T
        if self.gone is not None:
            erased[:, self.gone] = self.mean[self.gone]
        return erased.astype(vectors.dtype)


def leace(vectors: np.ndarray, labels: np.ndarray) -> Eraser:
    """The least-squares eraser of (N,) labels from (N, D) vectors; its rank is at most the number of labels minus 1."""
    mean = vectors.mean(0, dtype=np.float64)
    centred = vectors - mean
    one_hot = labels[:, None] == np.unique(labels)  # (N, K)
    cross = centred.T @ (one_hot / np.sqrt(one_hot.sum(0))) / np.sqrt(len(vectors))
    return Eraser(mean, *least_squares(mean, centred.T @ centred / len(vectors), cross))


def inlp(vectors: np.ndarray, labels: np.ndarray, dev: tuple[np.ndarray, np.ndarray]) -> Eraser:
    """Project out the directions of linear probes until the next probe is within a point of the majority on dev (N',
    D), (N',)."""
    mean = vectors.mean(0, dtype=np.float64)
    names, counts = np.unique(labels, return_counts=True)
    majority = float((dev[1] == names[counts.argmax()]).mean())
    basis = np.zeros((vectors.shape[1], 0))
    for _ in range(MAX_ROUNDS):
        eraser = Eraser(mean, basis, basis)
        erased, erased_dev = eraser(vectors), eraser(dev[0])
        probe = LinearProbe().fit(erased, labels, (erased_dev, dev[1]))
        if probe.score(erased_dev, dev[1]) <= majority + MARGIN:
            break
        directions = probe.layers_[0][0] / probe.scale_[:, None]
        # a common shift of all scores has no effect
        read = column_space(directions - directions.mean(1, keepdims=True))
        basis = column_space(np.hstack([basis, read]))
    return Eraser(mean, basis, basis)


def random_directions(vectors: np.ndarray, rank: int, seed: int) -> Eraser:
    """The control: project out `rank` random directions."""
    drawn = np.random.default_rng(seed).standard_normal((vectors.shape[1], rank))
    basis = np.linalg.qr(drawn)[0]
    return Eraser(vectors.mean(0, dtype=np.float64), basis, basis)


def column_space(matrix: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the columns, (D, K) -> (D, r)."""
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    return left[:, values > TOLERANCE * max(values.max(initial=0.0), np.finfo(float).tiny)]
