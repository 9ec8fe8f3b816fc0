"""Nearest neighbours by cosine between two sets of vectors of any size, exact or approximate, by FAISS.

Both are one search over different cells. A cell is rows that ask and rows that they are compared with: one matrix
product, so that the work runs at that speed, and in blocks, so that vectors may lie on disk. Exact search compares
everything with everything. Approximate search is an inverted file (k-means cuts the vectors into lists, and a row asks
those nearest to it) taken list by list instead of row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from bgt_core.errors import DataError, NotFound, UsageError

try:
    import faiss
except ImportError:
    raise NotFound('Nearest neighbours need FAISS: pip install "bgt[mine]"') from None

BLOCK = 16_384  # rows of a side in memory at once
POINTS = 16  # rows a list that k-means sees; 64 are no better
ITERATIONS = 5  # of k-means; 10 are no better
HOMES = 2  # lists that hold a row: for the same recall, a second one saves three quarters of the lists to ask
SAMPLE = 500  # rows a side whose exact neighbours say how many lists to ask

Cell = tuple[np.ndarray, np.ndarray]  # rows that ask, rows they are compared with
Report = Callable[[int, int], None]  # gets the cells done, and all of them


def silent(done: int, total: int) -> None:
    """No report."""


@dataclass(frozen=True)
class Rows:
    """N rows of an array that may be mapped from a file; they are read in blocks, scaled to length 1."""

    vectors: np.ndarray  # (M, D) of any float type
    chosen: np.ndarray  # (N,) which of them

    def __len__(self) -> int:
        return len(self.chosen)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """(len(rows), D) float32; a row of zeros stays zero."""
        block = np.ascontiguousarray(self.vectors[self.chosen[rows]], dtype=np.float32)
        faiss.normalize_L2(block)
        return block


@dataclass(frozen=True)
class Plan:
    """What is compared with what, both ways."""

    forward: list[Cell]  # the left side asks
    backward: list[Cell]  # the right side asks
    homes: int = 1  # cells of one direction that the same two rows can meet in
    lists: int = 1
    asked: int = 1  # lists, by each row
    recall: float = 1.0  # share of nearest neighbours that are compared; measured on a sample

    def __str__(self) -> str:
        if self.lists == 1:
            return "exact"
        reached = f"{100 * self.recall:.1f}% of sampled nearest neighbours in them"
        return f"approximate, {self.asked} of {self.lists} lists asked, {reached}"


def exact(left: Rows, right: Rows) -> Plan:
    """Everything is compared with everything. Raises BgtError for vectors of different widths."""
    comparable(left, right)
    return Plan(everything(left, right), everything(right, left))


def approximate(left: Rows, right: Rows, recall: float = 0.95, seed: int = 0) -> Plan:
    """A row is in the lists nearest to it, HOMES of them, and is compared with the other side's rows in as many lists
    as it takes for the share `recall` of nearest neighbours, measured both ways on a sample.

    Too few rows to cut are compared exactly. Holds 4 * (lists asked + HOMES) bytes a row, and no copy of the vectors.
    Raises BgtError for vectors of different widths.
    """
    comparable(left, right)
    sides, ways, rng = (left, right), ((left, right), (right, left)), np.random.default_rng(seed)
    # The work is (lists + asked * HOMES * rows / lists) * rows: least where lists grow with the root of the rows.
    lists = min(int(8 * (len(left) * len(right)) ** 0.25), 2 * min(map(len, sides)) // POINTS)
    if lists < HOMES:
        return exact(left, right)
    seen = [np.sort(rng.permutation(len(side))[: POINTS * lists // 2]) for side in sides]
    means = faiss.Kmeans(
        left.vectors.shape[1], lists, niter=ITERATIONS, spherical=True, seed=seed, min_points_per_centroid=1
    )
    means.train(np.concatenate([side.read(rows) for side, rows in zip(sides, seen, strict=True)]))

    ranks = np.concatenate(
        [ranks_of_nearest(*way, means, np.sort(rng.permutation(len(way[0]))[:SAMPLE])) for way in ways]
    )
    asked = max(HOMES, 1 + int(np.quantile(ranks, recall, method="higher")))
    nearest = [nearest_lists(side, means.index, asked) for side in sides]
    held = [by_list(found[:, :HOMES].copy(), lists) for found in nearest]
    asking = [by_list(found, lists) for found in nearest]
    forward, backward = pair_up(asking[0], held[1]), pair_up(asking[1], held[0])
    return Plan(forward, backward, HOMES, lists, asked, recall=float((ranks < asked).mean()))


def planner(index: str, recall: float) -> Callable[[Rows, Rows], Plan]:
    """ "exact", or "approximate" with that recall. Raises BgtError for another name, or a share beyond 0 to 1."""
    plans = {"exact": exact, "approximate": partial(approximate, recall=recall)}
    if index not in plans:
        raise UsageError(f"There is no index '{index}'; choose from {', '.join(plans)}.")
    if not 0 < recall <= 1:
        raise UsageError(f"recall {recall}: expected a share above 0 and up to 1, as in 0.95.")
    return plans[index]


def search(
    asking: Rows, held: Rows, cells: Sequence[Cell], k: int, homes: int = 1, report: Report = silent
) -> tuple[np.ndarray, np.ndarray]:
    """Each asking row's k nearest of those it is compared with: cosines (N, k), falling, and rows of `held` (N, k).

    Where it is compared with fewer than k, the rest is -1. The same two rows may meet in `homes` of the cells. Holds
    about 30 * k * homes bytes an asking row.
    """
    heap = faiss.ResultHeap(len(asking), k * homes, keep_max=True)
    for done, (queries, candidates) in enumerate(cells):
        report(done, len(cells))
        cosines, found = faiss.knn(
            asking.read(queries), held.read(candidates), min(k, len(candidates)), faiss.METRIC_INNER_PRODUCT
        )
        heap.add_result_subset(queries, cosines, candidates[found])
    heap.finalize()
    report(len(cells), len(cells))
    again = np.zeros(heap.I.shape, dtype=bool)  # (N, k * homes)
    for place in range(1, k * homes):
        again[:, place] = (heap.I[:, :place] == heap.I[:, place : place + 1]).any(1)
    first = np.argsort(again, axis=1, kind="stable")[:, :k]  # those met before go last
    found = np.where(again, -1, heap.I)
    return np.take_along_axis(heap.D, first, 1), np.take_along_axis(found, first, 1)


def comparable(left: Rows, right: Rows) -> None:
    widths = [side.vectors.shape[1] for side in (left, right)]
    if widths[0] != widths[1]:
        raise DataError(f"Vectors of {widths[0]} and {widths[1]} units can't be compared; embed both with one model.")


def ranks_of_nearest(asking: Rows, held: Rows, means: faiss.Kmeans, sample: np.ndarray) -> np.ndarray:
    """How many lists each sampled row would ask before one that holds its exact nearest neighbour: (len(sample),)."""
    some = Rows(asking.vectors, asking.chosen[sample])
    _, nearest = search(some, held, everything(some, held), 1)  # (S, 1)
    home = nearest_lists(Rows(held.vectors, held.chosen[nearest[:, 0]]), means.index, HOMES)  # (S, HOMES)
    to_lists = asking.read(sample) @ means.centroids.T  # (S, lists)
    return (to_lists > np.take_along_axis(to_lists, home, 1).max(1, keepdims=True)).sum(1)


def nearest_lists(side: Rows, centres: faiss.Index, count: int) -> np.ndarray:
    """The lists nearest to each row, nearest first: (N, count) int32."""
    found = np.empty((len(side), count), dtype=np.int32)
    for rows in blocks(np.arange(len(side))):
        found[rows] = centres.search(side.read(rows), count)[1]
    return found


def by_list(found: np.ndarray, lists: int) -> list[np.ndarray]:
    """The lists of each row, (N, count) -> the rows of each list. Sorts in place."""
    ends = faiss.matrix_bucket_sort_inplace(found, lists)
    return np.split(found.ravel(), ends[1:-1])


def pair_up(asking: Sequence[np.ndarray], held: Sequence[np.ndarray]) -> list[Cell]:
    """List by list, in blocks."""
    both = zip(asking, held, strict=True)
    return [cell for queries, candidates in both for cell in product(blocks(queries), blocks(candidates))]


def everything(asking: Rows, held: Rows) -> list[Cell]:
    return list(product(blocks(np.arange(len(asking))), blocks(np.arange(len(held)))))


def blocks(rows: np.ndarray) -> list[np.ndarray]:
    return [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
