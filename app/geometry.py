"""Maths on latent vectors: maps to two dimensions, neighbours, and what is near what in the full space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA

from bgt_core.evaluation.retrieval import precision_at_1
from bgt_core.vectors import cosines, unit


@dataclass(frozen=True)
class Method:
    """How vectors become a map; PCA reads neither number."""

    name: str = "PCA"
    neighbours: int = 15
    seed: int = 0


@dataclass(frozen=True)
class Projection:
    """A fitted map: `xy` (N, 2) of the rows it was fitted on, `place` for further ones, (M, D) -> (M, 2)."""

    xy: np.ndarray
    place: Callable[[np.ndarray], np.ndarray]
    share: float | None  # of the variance that the map shows; UMAP has none


def fit(vectors: np.ndarray, method: Method) -> Projection:
    """A map of vectors (N, D), N >= 3, at unit length, so that it shows what cosine compares; the same input gives
    the same map."""
    if method.name == "PCA":
        pca = PCA(2, svd_solver="full").fit(unit(vectors))
        share = float(pca.explained_variance_ratio_.sum())
        return Projection(pca.transform(unit(vectors)), lambda new: pca.transform(unit(new)), share)
    from umap import UMAP  # seconds to import, more to compile: only when somebody asks

    reducer = UMAP(
        n_neighbors=min(method.neighbours, len(vectors) - 1), metric="cosine", random_state=method.seed, n_jobs=1
    ).fit(vectors)
    return Projection(reducer.embedding_, reducer.transform, None)


def nearest(vectors: np.ndarray, row: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` rows of (N, D) nearest to one of them by cosine, itself left out, and their cosines."""
    near = unit(vectors) @ unit(vectors[row])
    order = np.argsort(-near, kind="stable")
    order = order[order != row][:count]
    return order, near[order]


@dataclass(frozen=True)
class PairScores:
    """How well row i of one language finds row i of another, and what chance gives."""

    there: float  # share of rows whose nearest row on the other side is their own
    back: float
    chance: float
    translations: float  # mean cosine of row i with row i
    others: float  # mean cosine of row i with row i + 1


def pair_scores(left: np.ndarray, right: np.ndarray) -> PairScores:
    """Scores of N translation pairs, (N, D) and (N, D), in the full space."""
    return PairScores(
        there=precision_at_1(left, right),
        back=precision_at_1(right, left),
        chance=1 / len(left),
        translations=float(cosines(left, right).mean()),
        others=float(cosines(left, np.roll(right, -1, axis=0)).mean()),
    )


def agreement(vectors: np.ndarray, values: Sequence[object]) -> tuple[float, float]:
    """Share of rows (N, D) whose nearest other row, by cosine, has the same value; and what chance gives."""
    near = unit(vectors) @ unit(vectors).T
    np.fill_diagonal(near, -np.inf)
    codes, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)[1:]
    found = float((codes[near.argmax(1)] == codes).mean())
    return found, float((counts * (counts - 1)).sum() / (len(codes) * (len(codes) - 1)))
