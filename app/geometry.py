"""Maths on latent vectors: maps to two dimensions, neighbours, and what is near what in the full space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, trustworthiness

from bgt_core.evaluation.retrieval import precision_at_1
from bgt_core.vectors.compare import cosines, unit
from probes.classifiers.classifier import LinearProbe
from probes.measures.measure import fit as probed
from probes.measures.significance import wilson

AMID = 5  # neighbours that place a row on a map of t-SNE
NEAR, TRUSTED = 15, 1_000  # neighbours and rows that trustworthiness is taken of
FOLDS = 5


@dataclass(frozen=True)
class Method:
    """How vectors become a map; PCA reads neither number."""

    name: str = "PCA"
    neighbours: int = 15  # of t-SNE: its perplexity
    seed: int = 0


@dataclass(frozen=True)
class Projection:
    """A fitted map: `xy` (N, 2) of the rows it was fitted on, `place` for further ones, (M, D) -> (M, 2)."""

    xy: np.ndarray
    place: Callable[[np.ndarray], np.ndarray]
    share: float | None  # of the variance that the map shows; only PCA has one


def fit(vectors: np.ndarray, method: Method) -> Projection:
    """A map of vectors (N, D), N >= 3, at unit length, so that it shows what cosine compares; the same input gives
    the same map."""
    if method.name == "PCA":
        pca = PCA(2, svd_solver="full").fit(unit(vectors))
        share = float(pca.explained_variance_ratio_.sum())
        return Projection(pca.transform(unit(vectors)), lambda new: pca.transform(unit(new)), share)
    few = min(method.neighbours, len(vectors) - 1)
    if method.name == "t-SNE":
        perplexity = min(few, (len(vectors) - 1) / 3)
        tsne = TSNE(2, perplexity=perplexity, init="pca", random_state=method.seed, n_jobs=1)
        xy = tsne.fit_transform(unit(vectors))
        return Projection(xy, lambda new: between(vectors, xy, new), None)
    from umap import UMAP  # seconds to import, more to compile: only when somebody asks

    reducer = UMAP(n_neighbors=few, metric="cosine", random_state=method.seed, n_jobs=1).fit(vectors)
    return Projection(reducer.embedding_, reducer.transform, None)


def between(vectors: np.ndarray, xy: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Where further rows (M, D) go on a map that cannot be asked: amid their nearest rows of it by cosine, (M, 2)."""
    near = unit(new) @ unit(vectors).T
    rows = np.argsort(-near, axis=1, kind="stable")[:, :AMID]
    return xy[rows].mean(1)


def trust(vectors: np.ndarray, xy: np.ndarray) -> float | None:
    """Trustworthiness of a map (Venna and Kaski 2001): 1 where the 15 nearest of each point are also near by cosine.

    Of at most 1,000 rows, evenly spread; None for fewer than 31.
    """
    rows = np.linspace(0, len(vectors) - 1, min(len(vectors), TRUSTED), dtype=int)
    if len(rows) <= 2 * NEAR:
        return None
    return float(trustworthiness(unit(vectors[rows]), xy[rows], n_neighbors=NEAR))


def clusters(vectors: np.ndarray, fitted_on: np.ndarray, count: int) -> np.ndarray:
    """Which of `count` groups (k-means at unit length) each row (N, D) is in, 0 the largest; `fitted_on` (N,) bool."""
    means = KMeans(min(count, int(fitted_on.sum())), n_init=4, random_state=0).fit(unit(vectors[fitted_on]))
    order = np.argsort(-np.bincount(means.labels_), kind="stable")
    return np.argsort(order)[means.predict(unit(vectors))]


def language_probe_accuracy(left: np.ndarray, right: np.ndarray) -> tuple[float, float, float]:
    """How often a linear probe tells two languages apart on held-out pairs (N, D), (N, D), and its 95% interval."""
    part = np.tile(np.arange(len(left)) % FOLDS, 2)  # a sentence and its translation are in the same
    vectors, labels = np.concatenate([left, right]), np.repeat([0, 1], len(left))
    train, dev, test = part > 1, part == 1, part == 0
    probe, _ = probed(LinearProbe(), vectors, labels, train, dev)
    right_ones = probe.predict(vectors[test]) == labels[test]
    return float(right_ones.mean()), *wilson(right_ones.sum(), len(right_ones))


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
