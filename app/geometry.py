"""Maths on latent vectors: maps to two dimensions, clusters, and what is near what in the full space."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, trustworthiness
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from bgt_core.vectors.compare import unit

AXES = 50  # principal axes that t-SNE and UMAP see; maps of them are at least as trustworthy as of all
ANGLE, STEPS = 0.8, 750  # of t-SNE: on these axes as trustworthy as by its defaults, 0.5 and 1,000, in half the time
PLACED_BY = 5  # nearest rows whose median position a new row takes on a map of t-SNE or UMAP
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


@threadpool_limits.wrap(limits=1)  # of OpenMP's, several that share busy cores wait for each other: 7 times as long
def fit(vectors: np.ndarray, method: Method) -> Projection:
    """A map of vectors (N, D), N >= 3, at unit length, so that it shows what cosine compares; the same input gives
    the same map."""
    units = unit(vectors)
    if method.name == "PCA":
        pca = PCA(2, svd_solver="covariance_eigh").fit(units)
        variance = float(pca.explained_variance_ratio_.sum())
        return Projection(pca.transform(units), lambda new: pca.transform(unit(new)), variance)
    neighbours = min(method.neighbours, len(vectors) - 1)
    if min(vectors.shape) > AXES:
        units = PCA(AXES, svd_solver="covariance_eigh").fit_transform(units)
    if method.name == "t-SNE":
        perplexity = min(neighbours, (len(vectors) - 1) / 3)
        settings = {"init": "pca", "angle": ANGLE, "max_iter": STEPS, "random_state": method.seed, "n_jobs": 1}
        xy = TSNE(2, perplexity=perplexity, **settings).fit_transform(units)
    else:
        xy = umap(units, neighbours, method.seed)
    return Projection(xy, lambda new: among_neighbours(vectors, xy, new), None)


def umap(points: np.ndarray, neighbours: int, seed: int) -> np.ndarray:
    """UMAP's map of points (N, K), from their exact neighbours: its own search is compiled for half a minute."""
    from umap import UMAP, umap_  # takes seconds to import: only on request

    for slow in (umap_.smooth_knn_dist, umap_.compute_membership_strengths):
        with suppress(AttributeError, RuntimeError):  # not to be compiled, or nowhere to keep it for other processes
            slow.enable_caching()
    distances, nearest_rows = NearestNeighbors(n_neighbors=neighbours, algorithm="brute").fit(points).kneighbors(points)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "precomputed_knn")  # `transform`, which we don't use, won't work
        reducer = UMAP(
            n_neighbors=neighbours, random_state=seed, n_jobs=1, precomputed_knn=(nearest_rows, distances)
        ).fit(points)
    return reducer.embedding_


def among_neighbours(vectors: np.ndarray, xy: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Where further rows (M, D) go on a map that has no transform: the median of their nearest rows by cosine, (M, 2).

    Neighbours in another part of the map then do not draw a row into the void between.
    """
    similarities = unit(new) @ unit(vectors).T
    nearest_rows = np.argsort(-similarities, axis=1, kind="stable")[:, :PLACED_BY]
    return np.median(xy[nearest_rows], axis=1)


def trust(vectors: np.ndarray, xy: np.ndarray) -> float | None:
    """Trustworthiness of a map (Venna and Kaski 2001): 1 where the 15 nearest of each point are also near by cosine.

    Of at most 1,000 rows, evenly spread; None for fewer than 31.
    """
    rows = np.linspace(0, len(vectors) - 1, min(len(vectors), TRUST_ROWS), dtype=int)
    if len(rows) <= 2 * TRUST_NEIGHBOURS:
        return None
    return float(trustworthiness(unit(vectors[rows]), xy[rows], n_neighbors=TRUST_NEIGHBOURS))


@threadpool_limits.wrap(limits=1)
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
