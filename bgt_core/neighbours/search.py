"""Find nearest neighbours by cosine between two sets of vectors of any size, by exact or approximate search in FAISS.

Both searches work in blocks. A block is a set of queries and a set of candidates, which are compared in one matrix
product. Only the vectors of one block are in memory; the others can stay on disk. Exact search compares all pairs.

Approximate search uses what FAISS calls an inverted file. K-means divides the vectors into `nlist` lists, and each
query is compared only with the vectors in the `nprobe` nearest lists: it "probes" these lists. This module processes
one list after the other. In contrast, `faiss.IndexIVFFlat` keeps a copy of all vectors in memory, and processes one
query after the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from bgt_core.contracts import silent
from bgt_core.errors import DataError, NotFound
from bgt_core.vectors.arrays import binary_scaled

BLOCK = 16_384  # maximum number of queries, and of candidates, in a block
POINTS = 16  # number of training vectors per cluster of k-means; 64 give no better lists
ITERATIONS = 5  # number of iterations of k-means; 10 give no better lists
ASSIGNMENTS = 2  # number of lists that contain each row; with 2 instead of 1, a quarter of the probed lists suffices
SAMPLE = 500  # number of rows of each set whose exact neighbours determine the number of lists to probe

Block = tuple[np.ndarray, np.ndarray]  # row numbers of queries, and of candidates to compare with these queries
Report = Callable[[int, int], None]  # called with the number of finished blocks, and the number of all blocks


def load_faiss() -> Any:
    """Import FAISS. If it is absent, raise NotFound, which names the command that installs it."""
    try:
        import faiss
    except ImportError:
        raise NotFound('Nearest neighbours need FAISS: pip install "bgt[mine]"') from None
    return faiss


@dataclass(frozen=True, eq=False)
class Rows:
    """Selected rows of an array of vectors, which may be memory-mapped. `read` loads some rows, scaled to length 1."""

    vectors: np.ndarray  # (M, D) of any float type
    chosen: np.ndarray  # (N,) row numbers in `vectors`

    def __len__(self) -> int:
        return len(self.chosen)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Read rows and scale them to length 1, (len(rows), D) float32; a row of zeros stays zero."""
        block = np.ascontiguousarray(binary_scaled(self.vectors[self.chosen[rows]].astype(np.float32, copy=False)))
        load_faiss().normalize_L2(block)  # scales the rows in place, in float32
        return block


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """The blocks of two sets of vectors to compare in each direction, and the settings by which they were chosen."""

    forward: list[Block]  # blocks whose queries are rows of the left set
    backward: list[Block]  # blocks whose queries are rows of the right set
    assignments: int = 1  # number of lists that contain each row, and maximum number of comparisons of two rows
    nlist: int = 1  # number of lists; 1 for an exact search
    nprobe: int = 1  # number of lists with which a row is compared
    recall: float = 1.0  # share of the nearest neighbours that are found, measured on a sample

    def __str__(self) -> str:
        if self.nlist == 1:
            return "exact"
        reached = f"{100 * self.recall:.1f}% of sampled nearest neighbours in them"
        return f"approximate, {self.nprobe} of {self.nlist} lists probed, {reached}"


@dataclass(frozen=True, eq=False)
class Lists:
    """The lists (k-means clusters) of an approximate search.

    Each row is in the `ASSIGNMENTS` lists nearest to it. A query is compared with the rows of its `nprobe` lists.
    """

    centroids: np.ndarray  # (nlist, D) float32
    nprobe: int
    recall: float  # share of the nearest neighbours that are in the probed lists, measured on a sample

    def nearest(self, side: Rows, count: int) -> np.ndarray:
        """Return the indices of the `count` lists nearest to each row, nearest first: (N, count) int32."""
        index = load_faiss().IndexFlatIP(self.centroids.shape[1])
        index.add(self.centroids)
        lists = np.empty((len(side), count), dtype=np.int32)
        for rows in chunks(np.arange(len(side))):
            lists[rows] = index.search(side.read(rows), count)[1]
        return lists

    def invert(self, lists: np.ndarray) -> list[np.ndarray]:
        """Convert the list indices of each row, (N, count), to the row numbers of each list. `lists` is overwritten."""
        if lists.size <= len(self.centroids):  # FAISS's function below needs more entries than lists
            order = np.argsort(lists, axis=None, kind="stable")
            ends = np.searchsorted(lists.ravel()[order], np.arange(1, len(self.centroids)))
            return np.split((order // lists.shape[1]).astype(lists.dtype), ends)
        ends = load_faiss().matrix_bucket_sort_inplace(lists, len(self.centroids))
        return np.split(lists.ravel(), ends[1:-1])


def exact(left: Rows, right: Rows) -> SearchPlan:
    """Plan an exact search, which compares all pairs of rows. Raises DataError if the vectors differ in width."""
    check_widths(left, right)
    return SearchPlan(all_blocks(left, right), all_blocks(right, left))


def approximate(left: Rows, right: Rows, recall: float = 0.95, seed: int = 0) -> SearchPlan:
    """Plan an approximate search, which compares a row only with the rows of the other set in the nearest lists.

    The number of lists to probe is chosen so that the share `recall` of the nearest neighbours is found in a sample. If
    there are too few rows for lists, all pairs are compared. The plan needs 4 * (nprobe + ASSIGNMENTS) bytes per row.
    Raises DataError if the vectors differ in width.
    """
    if list_count(left, right) < ASSIGNMENTS:
        return exact(left, right)
    lists = learn_lists(left, right, recall, seed)
    nearest = [lists.nearest(side, lists.nprobe) for side in (left, right)]
    held = [lists.invert(each[:, :ASSIGNMENTS].copy()) for each in nearest]
    probing = [lists.invert(each) for each in nearest]
    forward, backward = pair_up(probing[0], held[1]), pair_up(probing[1], held[0])
    return SearchPlan(forward, backward, ASSIGNMENTS, len(lists.centroids), lists.nprobe, lists.recall)


def list_count(left: Rows, right: Rows) -> int:
    """Return the number of lists: proportional to the square root of the number of rows, to save comparisons."""
    return min(int(8 * (len(left) * len(right)) ** 0.25), 2 * min(len(left), len(right)) // POINTS)


def learn_lists(left: Rows, right: Rows, recall: float = 0.95, seed: int = 0) -> Lists:
    """Learn lists by k-means on a sample of both sets, and choose how many lists a row must probe to reach `recall`.

    Raises DataError if the vectors differ in width, or if a set has fewer than POINTS rows.
    """
    check_widths(left, right)
    nlist, rng = list_count(left, right), np.random.default_rng(seed)
    if nlist < ASSIGNMENTS:
        raise DataError(f"{len(left):,} x {len(right):,} rows are too few for an approximate search: use exact search.")
    samples = [side.read(np.sort(rng.permutation(len(side))[: POINTS * nlist // 2])) for side in (left, right)]
    means = load_faiss().Kmeans(
        left.vectors.shape[1], nlist, niter=ITERATIONS, spherical=True, seed=seed, min_points_per_centroid=1
    )
    means.train(np.concatenate(samples))
    lists = Lists(means.centroids, ASSIGNMENTS, 1.0)
    ranks = np.concatenate(
        [
            ranks_of_nearest(queries, candidates, lists, np.sort(rng.permutation(len(queries))[:SAMPLE]))
            for queries, candidates in ((left, right), (right, left))
        ]
    )
    nprobe = max(ASSIGNMENTS, 1 + int(np.quantile(ranks, recall, method="higher")))
    return Lists(means.centroids, nprobe, float((ranks < nprobe).mean()))


def search(
    queries: Rows, candidates: Rows, blocks: Sequence[Block], k: int, assignments: int = 1, report: Report = silent
) -> tuple[np.ndarray, np.ndarray]:
    """Find each query's k nearest candidates: their cosines (N, k), descending, and their row numbers (N, k).

    If a query was compared with fewer than k candidates, the remaining row numbers are -1. The same two rows may be
    compared in up to `assignments` blocks. The search needs about 30 * k * assignments bytes per query.
    """
    faiss = load_faiss()
    heap = faiss.ResultHeap(len(queries), k * assignments, keep_max=True)
    for done, (asking, held) in enumerate(blocks):
        report(done, len(blocks))
        cosines, nearest = faiss.knn(
            queries.read(asking), candidates.read(held), min(k, len(held)), faiss.METRIC_INNER_PRODUCT
        )
        heap.add_result_subset(asking, cosines, held[nearest])
    heap.finalize()
    report(len(blocks), len(blocks))
    again = np.zeros(heap.I.shape, dtype=bool)  # (N, k * assignments)
    for rank in range(1, k * assignments):
        again[:, rank] = (heap.I[:, :rank] == heap.I[:, rank : rank + 1]).any(1)
    first = np.argsort(again, axis=1, kind="stable")[:, :k]  # repeated neighbours are sorted to the end
    rows = np.where(again, -1, heap.I)
    return np.take_along_axis(heap.D, first, 1), np.take_along_axis(rows, first, 1)


def check_widths(left: Rows, right: Rows) -> None:
    """Raise DataError if the two sets have vectors of different widths."""
    widths = [side.vectors.shape[1] for side in (left, right)]
    if widths[0] != widths[1]:
        raise DataError(f"Vectors of {widths[0]} and {widths[1]} units can't be compared; use the same model for both.")


def ranks_of_nearest(queries: Rows, candidates: Rows, lists: Lists, sample: np.ndarray) -> np.ndarray:
    """For each of S sampled queries, count the lists nearer than all lists with the query's nearest neighbour."""
    sampled = Rows(queries.vectors, queries.chosen[sample])
    _, nearest = search(sampled, candidates, all_blocks(sampled, candidates), 1)  # (S, 1)
    neighbours = Rows(candidates.vectors, candidates.chosen[nearest[:, 0]])
    assigned = lists.nearest(neighbours, ASSIGNMENTS)  # (S, ASSIGNMENTS)
    to_lists = queries.read(sample) @ lists.centroids.T  # (S, nlist)
    return (to_lists > np.take_along_axis(to_lists, assigned, 1).max(1, keepdims=True)).sum(1)


def pair_up(probing: Sequence[np.ndarray], held: Sequence[np.ndarray]) -> list[Block]:
    """Return the blocks of an approximate search: for each list, the queries that probe it and the candidates in it."""
    lists = zip(probing, held, strict=True)
    return [block for queries, candidates in lists for block in product(chunks(queries), chunks(candidates))]


def all_blocks(queries: Rows, candidates: Rows) -> list[Block]:
    """Return the blocks of an exact search, which compare all queries with all candidates."""
    return list(product(chunks(np.arange(len(queries))), chunks(np.arange(len(candidates)))))


def chunks(rows: np.ndarray) -> list[np.ndarray]:
    """Split row numbers into parts of at most `BLOCK` rows."""
    return [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
