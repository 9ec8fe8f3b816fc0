"""Maths on latent vectors: maps to two dimensions, clusters, and what is near what in the full space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, trustworthiness

from bgt_core.vectors.compare import unit

TSNE_NEIGHBOURS = 5  # whose mean position a new row takes on a map of t-SNE
TRUST_NEIGHBOURS, TRUST_ROWS = 15, 1_000


@dataclass(frozen=True)
class Method:
    """How vectors become a map; PCA reads neither number."""

    name: str = "PCA"
    neighbours: int = 15  # of t-SNE: its perplexity
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Projection:
    """A fitted map: `xy` (N, 2) of the rows it was fitted on, `project` for further ones, (M, D) -> (M, 2)."""

    xy: np.ndarray
    project: Callable[[np.ndarray], np.ndarray]
    variance: float | None  # the fraction that the map shows; only PCA has one


def fit(vectors: np.ndarray, method: Method) -> Projection:
    """A map of vectors (N, D), N >= 3, at unit length, so that it shows what cosine compares; the same input gives
    the same map."""
    if method.name == "PCA":
        pca = PCA(2, svd_solver="full").fit(unit(vectors))
        variance = float(pca.explained_variance_ratio_.sum())
        return Projection(pca.transform(unit(vectors)), lambda new: pca.transform(unit(new)), variance)
    neighbours = min(method.neighbours, len(vectors) - 1)
    if method.name == "t-SNE":
        perplexity = min(neighbours, (len(vectors) - 1) / 3)
        tsne = TSNE(2, perplexity=perplexity, init="pca", random_state=method.seed, n_jobs=1)
        xy = tsne.fit_transform(unit(vectors))
        return Projection(xy, lambda new: among_neighbours(vectors, xy, new), None)
    from umap import UMAP  # takes seconds to import, and longer to compile: only on request

    reducer = UMAP(n_neighbors=neighbours, metric="cosine", random_state=method.seed, n_jobs=1).fit(vectors)
    return Projection(reducer.embedding_, reducer.transform, None)


def among_neighbours(vectors: np.ndarray, xy: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Where further rows (M, D) go on a map that has no transform: the mean of their nearest rows by cosine, (M, 2)."""
    similarities = unit(new) @ unit(vectors).T
    nearest_rows = np.argsort(-similarities, axis=1, kind="stable")[:, :TSNE_NEIGHBOURS]
    return xy[nearest_rows].mean(1)


def trust(vectors: np.ndarray, xy: np.ndarray) -> float | None:
    """Trustworthiness of a map (Venna and Kaski 2001): 1 where the 15 nearest of each point are also near by cosine.

    Of at most 1,000 rows, evenly spread; None for fewer than 31.
    """
    rows = np.linspace(0, len(vectors) - 1, min(len(vectors), TRUST_ROWS), dtype=int)
    if len(rows) <= 2 * TRUST_NEIGHBOURS:
        return None
    return float(trustworthiness(unit(vectors[rows]), xy[rows], n_neighbors=TRUST_NEIGHBOURS))


def clusters(vectors: np.ndarray, fitted_on: np.ndarray, count: int) -> np.ndarray:
    """Which of `count` groups (k-means at unit length) each row (N, D) is in, 0 the largest; `fitted_on` (N,) bool."""
    means = KMeans(min(count, int(fitted_on.sum())), n_init=4, random_state=0).fit(unit(vectors[fitted_on]))
    order = np.argsort(-np.bincount(means.labels_), kind="stable")
    return np.argsort(order)[means.predict(unit(vectors))]


def nearest(similarities: np.ndarray, row: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` rows most similar to one of them, itself left out, and their similarities; `similarities` (N,)."""
    order = np.argsort(-similarities, kind="stable")
    order = order[order != row][:count]
    return order, similarities[order]


@dataclass(frozen=True)
class PairScores:
    """How well row i of one language finds row i of another, and what chance gives."""

    left_finds_right: float  # fraction of rows whose nearest row on the other side is their own
    right_finds_left: float
    chance: float
    translations: float  # mean similarity of row i with row i
    others: float  # mean similarity of row i with row i + 1


def pair_scores(similarities: np.ndarray) -> PairScores:
    """Scores of N translation pairs from the similarity of each left sentence (rows) to each right one, (N, N)."""
    own = np.arange(len(similarities))
    return PairScores(
        left_finds_right=float((similarities.argmax(1) == own).mean()),
        right_finds_left=float((similarities.argmax(0) == own).mean()),
        chance=1 / len(similarities),
        translations=float(similarities.diagonal().mean()),
        others=float(similarities[own, np.roll(own, -1)].mean()),
    )


def agreement(similarities: np.ndarray, values: Sequence[object]) -> tuple[float, float]:
    """Fraction of N rows whose nearest other row has the same value, and what chance gives; `similarities` (N, N)."""
    to_others = similarities - np.diag(np.full(len(similarities), np.inf))
    codes, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)[1:]
    same = float((codes[to_others.argmax(1)] == codes).mean())
    return same, float((counts * (counts - 1)).sum() / (len(codes) * (len(codes) - 1)))
