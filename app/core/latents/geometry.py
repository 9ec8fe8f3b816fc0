"""Map vectors to two or three dimensions, and measure how trustworthy such maps are."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from bgt_core.vectors.arrays import unit

AXES = 50  # number of principal components given to t-SNE and UMAP; more do not improve their maps
ANGLE, STEPS = 0.8, 750  # with these, t-SNE is as trustworthy as with its defaults (0.5, 1,000), in half the time
WIDE = 2_048  # for vectors of at least this size, such as bags of words, PCA is faster without the covariance matrix
BLOCK = 4_096  # number of rows scaled at a time, because a copy of all rows would double the memory
PLACED_BY = 5  # a new row on a t-SNE or UMAP map is placed at the median of this many nearest rows
REACHED_IN = 20  # iterations after which a moved vector has reached its new place on a map
TRUST_NEIGHBOURS, TRUST_ROWS = 15, 1_000
COSINE, EUCLIDEAN = "Cosine", "Euclidean"
# Metric -> function that scales rows (N, D) so that the Euclidean distances of the scaled rows follow the metric.
SCALED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    COSINE: unit,
    EUCLIDEAN: partial(np.asarray, dtype=float),  # float32 cannot contain the squares of 1e30 and 1e-30
}
# All rows count as equal if their variance / mean square is below this value, which rounding alone can reach.
ROUNDING = {COSINE: 1e-13, EUCLIDEAN: 0.0}
FLOAT32 = np.finfo(np.float32).min, np.finfo(np.float32).max  # smallest and largest number that models accept
LEAST = 5  # minimum number of different points for t-SNE and UMAP; fewer points are mapped by PCA
APART = 3e-7  # points closer than this fraction of their length count as equal; rounding errors are smaller
FINEST = 1e-14  # points closer than this fraction of the largest coordinate also count as equal


@dataclass(frozen=True)
class Method:
    """A method of projection to `dims` dimensions and its settings. PCA uses neither `neighbours` nor `seed`."""

    name: str = "PCA"
    neighbours: int = 15  # number of neighbours for UMAP, perplexity for t-SNE
    seed: int = 0
    # For the method "Chosen axes": the names of all axes; for an axis between two sentences, these and their language.
    axes: tuple[str, ...] = field(default=("Longer", "Question"), repr=False)
    ends: tuple[str, str, str] = field(default=("", "", ""), repr=False)
    metric: str = COSINE  # the metric, a key of SCALED
    dims: int = field(default=2, repr=False)  # 2 or 3, the dimensions of the map


@dataclass(frozen=True, eq=False)
class Projection:
    """A map of vectors to K = 2 or 3 dimensions, fitted to rows of vectors."""

    xy: np.ndarray  # (N, K), the coordinates of the fitted rows
    project: Callable[[np.ndarray], np.ndarray]  # maps new rows, (M, D) -> (M, K)
    variance: float | None  # the fraction of the variance that K principal components explain; None for other maps
    axes: np.ndarray | None = None  # (D, K), the unit vectors of the axes if the map is linear
    read: tuple[str, ...] = ()  # a text about each axis: how well its probe predicts held-out sentences, for example
    metric: str = COSINE
    neighbours: float | None = None  # number of neighbours used; None if unknown, or if the method uses none


@threadpool_limits.wrap(limits=1)  # on busy cores, OpenMP threads wait for each other and take 7 times as long
def fit(vectors: np.ndarray, method: Method) -> Projection:
    """Project vectors (N, D) as the method says. Equal inputs give equal maps, and equal vectors have the same place.
    PCA replaces t-SNE and UMAP for fewer than `LEAST` different points, because their native code may crash."""
    plane = principal_axes(vectors, method.dims, method.metric)
    pca = Projection(plane.project(vectors), plane.project, plane.variance, plane.axes, metric=method.metric)
    if method.name == "PCA" or plane.variance == 0:
        return pca
    if min(vectors.shape) > AXES:
        points = principal_axes(vectors, AXES, method.metric).project(vectors)
    else:
        points = SCALED[method.metric](vectors)
    if method.metric == EUCLIDEAN:  # t-SNE and UMAP use float32, which is coarse far from the origin
        points = points - np.median(points, 0)  # unlike the mean, the median is not changed by a few long rows
        points /= np.abs(points).max()
    first, place = different(points, APART if method.metric == COSINE else FINEST)
    if len(first) < LEAST:
        return pca
    if method.name == "t-SNE":
        from sklearn.manifold import TSNE

        used = min(method.neighbours, (len(first) - 1) / 3)
        wide = np.pad(points[first], ((0, 0), (0, max(0, method.dims - points.shape[1]))))  # t-SNE starts from these
        settings = {"init": "pca", "angle": ANGLE, "max_iter": STEPS, "random_state": method.seed, "n_jobs": 1}
        xy = TSNE(method.dims, perplexity=used, **settings).fit_transform(wide)
    else:
        used = min(method.neighbours, len(first) - 1)
        xy = umap(points[first], int(used), method.seed, method.dims)
    return replace(placed(vectors, xy[place], method.metric), neighbours=used)


def different(points: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices (K,) of the points (N, D) that equal no earlier point, and for each of the N points, which of
    these K points it equals (N,). Points are equal if their distance is at most `least` or `APART` x their length. They
    then project to neighbours on a random line, so each point is compared only with the next point on such a line."""
    order = np.argsort(points @ np.random.default_rng(0).normal(size=points.shape[1]))
    lengths = np.linalg.norm(points[order[1:]], axis=1)
    apart = np.linalg.norm(np.diff(points[order], axis=0), axis=1) > np.maximum(APART * lengths, least)
    group = np.empty(len(points), int)
    group[order] = np.cumsum([0, *apart])
    earliest = np.full(len(points), len(points))
    np.minimum.at(earliest, group, np.arange(len(points)))
    return np.unique(earliest[group], return_inverse=True)


def placed(vectors: np.ndarray, xy: np.ndarray, metric: str = COSINE) -> Projection:
    """Return a map on which vectors (N, D) have the given coordinates `xy` (N, K). A new row gets the median
    coordinates of its nearest rows; the mean could be in the empty space between two parts of the map."""

    def among_neighbours(new: np.ndarray) -> np.ndarray:
        rows = SCALED[metric](vectors)
        nearness = SCALED[metric](new) @ rows.T - (rows**2).sum(1) / 2  # falls as the distance grows
        nearest_rows = np.argsort(-nearness, axis=1, kind="stable")[:, :PLACED_BY]
        return np.median(xy[nearest_rows], axis=1)

    return Projection(xy, among_neighbours, None, metric=metric)


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The mean (D,) of vectors scaled by `SCALED`, and their K leading principal axes (D, K)."""

    mean: np.ndarray
    axes: np.ndarray
    variance: float  # the fraction of the variance that these axes explain
    metric: str

    def project(self, vectors: np.ndarray) -> np.ndarray:
        """Return the coordinates of rows (M, D) on the axes, (M, K)."""
        scaled = SCALED[self.metric]
        blocks = [scaled(vectors[start : start + BLOCK]) - self.mean for start in range(0, len(vectors), BLOCK)]
        return np.concatenate([block @ self.axes for block in blocks])


def principal_axes(vectors: np.ndarray, count: int, metric: str = COSINE) -> PrincipalAxes:
    """Compute `count` leading principal axes of vectors (N, D) scaled by `SCALED`. Their largest entry is positive."""
    scaled = SCALED[metric]
    if vectors.shape[1] > WIDE:
        from sklearn.decomposition import PCA

        rows = scaled(vectors)
        least, origin = least_variance(float(np.square(rows).sum(1).mean()), metric), rows[0].copy()
        rows = rows - origin
        if float(rows.var(0).sum()) < least:
            return PrincipalAxes(origin, np.zeros((rows.shape[1], count), np.float32), 0.0, metric)
        pca = PCA(count, svd_solver="arpack" if len(rows) > count else "full", random_state=0).fit(rows)
        return PrincipalAxes(origin + pca.mean_, pca.components_.T, float(pca.explained_variance_ratio_.sum()), metric)
    total, products, squares = np.zeros(vectors.shape[1]), np.zeros((vectors.shape[1],) * 2), 0.0
    origin = scaled(vectors[:1])[0]  # the origin is subtracted, because products of large numbers lose digits
    for start in range(0, len(vectors), BLOCK):
        rows = scaled(vectors[start : start + BLOCK])
        squares += float(np.square(rows).sum())
        block = rows - origin
        total += block.sum(0)
        products += block.T @ block
    mean = total / len(vectors)
    values, axes = np.linalg.eigh(products / len(vectors) - np.outer(mean, mean))
    least = least_variance(squares / len(vectors), metric)
    if values.sum() < least:
        values, axes = np.zeros_like(values), np.zeros_like(axes)
    leading = np.pad(axes, ((0, 0), (max(0, count - len(axes)), 0)))[:, ::-1][:, :count]
    leading = leading * np.sign(leading[np.abs(leading).argmax(0), range(count)])
    fraction = float(values[-count:].sum() / max(values.sum(), least))
    return PrincipalAxes((origin + mean).astype(origin.dtype), leading.astype(np.float32), fraction, metric)


def least_variance(mean_square: float, metric: str) -> float:
    """Return the total variance below which rows of this mean square differ only by rounding."""
    return max(ROUNDING[metric] * mean_square, float(np.finfo(float).tiny))


def umap(points: np.ndarray, neighbours: int, seed: int, dims: int) -> np.ndarray:
    """Map points (N, K) by UMAP with exact neighbours. UMAP's own neighbour search takes half a minute to compile."""
    from sklearn.neighbors import NearestNeighbors
    from umap import UMAP, umap_

    for slow in (umap_.smooth_knn_dist, umap_.compute_membership_strengths):
        with suppress(AttributeError, RuntimeError):  # raised if numba can't compile code, or can't cache it
            slow.enable_caching()
    distances, nearest_rows = NearestNeighbors(n_neighbors=neighbours, algorithm="brute").fit(points).kneighbors(points)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "precomputed_knn")  # UMAP warns that `transform`, unused here, fails
        known = {"precomputed_knn": (nearest_rows, distances)}
        reducer = UMAP(neighbours, dims, random_state=seed, n_jobs=1, **known).fit(points)
    return reducer.embedding_


def moved(projection: Projection, vectors: np.ndarray, vector: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Change a vector (D,) so that its place on the map of vectors (N, D) is `xy` (K,). On a linear map, the vector
    moves along the map's axes. On other maps, it becomes the mean of the vectors nearest to `xy`. For the cosine
    metric, its length does not change, so that it cannot reach every place on a linear map."""
    scaled = SCALED[projection.metric]
    start = scaled(vector[None])[0]
    lengths = [np.linalg.norm(each.astype(float)) for each in (vector, start)]  # float32 overflows at 1e30 squared
    length = float(lengths[0] / lengths[1]) if vector.any() else 1.0  # ratio of lengths without and with scaling
    if projection.axes is None:
        nearest_rows = np.argsort(((projection.xy - xy) ** 2).sum(1), kind="stable")[:PLACED_BY]
        return np.clip(length * scaled(vectors[nearest_rows].mean(0, dtype=float, keepdims=True))[0], *FLOAT32)
    for _ in range(REACHED_IN):  # with the cosine metric, rescaling moves the vector away from `xy` after each step
        step = projection.axes @ (xy - projection.project(start[None])[0])
        start = scaled(start[None] + step)[0]
    return np.clip(length * start.astype(float), *FLOAT32)


def trust(vectors: np.ndarray, xy: np.ndarray, metric: str = COSINE) -> float | None:
    """Return the trustworthiness of a map (Venna and Kaski 2001) from at most 1,000 rows; None for fewer than 31 rows.
    It is 1 if the 15 nearest neighbours of each point on the map are also its nearest neighbours in vector space."""
    from sklearn.manifold import trustworthiness

    rows = np.linspace(0, len(vectors) - 1, min(len(vectors), TRUST_ROWS), dtype=int)
    if len(rows) <= 2 * TRUST_NEIGHBOURS:
        return None
    return float(trustworthiness(SCALED[metric](vectors[rows]), xy[rows], n_neighbors=TRUST_NEIGHBOURS))
