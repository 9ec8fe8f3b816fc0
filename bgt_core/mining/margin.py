"""Margin scores of candidate translations, and the choice of pairs.

    vectors of two languages -> nearest neighbours both ways -> margin scores -> pairs, best first

Scores and retrieval are those of Artetxe and Schwenk (ACL 2019, "Margin-based Parallel Corpus Mining with Multilingual
Sentence Embeddings"): a cosine is scored relative to those of the nearest candidates, so that a
sentence near to everything scores low.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bgt_core.errors import check_choice, check_whole
from bgt_core.mining.neighbours import Report, Rows, SearchPlan, all_blocks, chunks, search, silent

MARGINS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {  # (cosine, mean over neighbours) -> margin
    "ratio": lambda cosine, mean: cosine / np.maximum(mean, 0.01),  # in a small text the mean may be about 0, or below
    "distance": lambda cosine, mean: cosine - mean,
    "absolute": lambda cosine, mean: cosine,
}


Neighbours = tuple[np.ndarray, np.ndarray]  # of each row: cosines, falling, and rows of the other side; (N, k) both


class Pairs(NamedTuple):
    """P candidates, each a row of the left and a row of the right side."""

    scores: np.ndarray  # (P,) float64
    left: np.ndarray  # (P,) int64
    right: np.ndarray  # (P,) int64

    def take(self, chosen: np.ndarray) -> Pairs:
        """Select some of them, by numbers or a mask."""
        return Pairs(self.scores[chosen], self.left[chosen], self.right[chosen])


def margin_pairs(
    left: Rows,
    right: Rows,
    plan: SearchPlan,
    *,
    k: int = 4,
    margin: str = "ratio",
    retrieval: str = "max",
    report: Report = silent,
) -> Pairs:
    """The translations among the rows of `left` (N, D) and of `right` (M, D), best first.

    `plan` gives the comparisons: `exact(left, right)` or `approximate(left, right)` of `neighbours`. The score of x and
    y is the margin ("ratio", "distance" or "absolute") between their cosine and the mean cosine of x's k nearest rows
    of `right` and y's k nearest rows of `left`. A row's candidate is the best of its k nearest: "forward" keeps those
    of `left`, "backward" those of `right`, "intersection" the pairs that are both; "max" takes both, best first, and
    uses each row once. Raises UsageError as `check`.
    """
    check(k, margin, retrieval)
    there = search(left, right, plan.forward, k, plan.assignments, report)
    back = search(right, left, plan.backward, k, plan.assignments, report)
    return pairs_of(there, back, margin=margin, retrieval=retrieval)


def pairs_of(there: Neighbours, back: Neighbours, *, margin: str = "ratio", retrieval: str = "max") -> Pairs:
    """Choose the pairs as `margin_pairs` does, from the results of both searches: each left row's nearest rows of
    `right`, cosines and rows (N, k), and each right row's nearest rows of `left` (M, k)."""
    (cosines, nearest), (back_cosines, back_nearest) = there, back
    means, back_means = mean_of(cosines, nearest), mean_of(back_cosines, back_nearest)
    scores, partner = best(margin, cosines, nearest, means, back_means)
    back_scores, back_partner = best(margin, back_cosines, back_nearest, back_means, means)
    forward = Pairs(scores, np.arange(len(scores)), partner)
    backward = Pairs(back_scores, back_partner, np.arange(len(back_scores)))
    pairs = RETRIEVALS[retrieval](forward, backward)
    pairs = pairs.take(np.isfinite(pairs.scores))  # a row without comparisons has no candidate
    return pairs.take(best_first(pairs))


def rescore(
    pairs: Pairs, left: Rows, right: Rows, *, k: int = 4, margin: str = "ratio", report: Report = silent
) -> Pairs:
    """Compute exact scores of the pairs, best first: their rows are compared with all others.

    Approximate search misses neighbours, which makes margins too high, most of all for unusual sentences. So a pair
    that reaches a threshold exactly also reached it before, and it is enough to rescore the kept pairs.
    """
    check(k, margin, "max")
    means = []
    for side, other, column in ((left, right, pairs.left), (right, left, pairs.right)):
        rows, number = np.unique(column, return_inverse=True)
        queries = Rows(side.vectors, side.chosen[rows])
        means.append(mean_of(*search(queries, other, all_blocks(queries, other), k, report=report))[number])
    cosines = [
        (left.read(pairs.left[chosen]) * right.read(pairs.right[chosen])).sum(1)
        for chosen in chunks(np.arange(len(pairs.scores)))
    ]
    scores = MARGINS[margin](np.concatenate([*cosines, np.zeros(0, np.float32)]), (means[0] + means[1]) / 2)
    rescored = Pairs(scores, pairs.left, pairs.right)
    return rescored.take(best_first(rescored))


def check(k: int, margin: str, retrieval: str) -> None:
    """Raise UsageError for a k that is not a whole number above 0, and for an unknown margin or retrieval."""
    check_whole(1, k=k)
    check_choice(MARGINS, margin=str(margin))
    check_choice(RETRIEVALS, retrieval=str(retrieval))


def mean_of(cosines: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """Mean cosine of each row's neighbours, without those that are -1: (N, k), (N, k) -> (N,)."""
    present = nearest >= 0
    return np.where(present, cosines, 0).sum(1) / np.maximum(present.sum(1), 1)


def best(
    margin: str, cosines: np.ndarray, nearest: np.ndarray, own: np.ndarray, other: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The margin score (N,) and the row (N,) of the best of each row's neighbours, both (N, k).

    `own` (N,) are the mean cosines of the rows' neighbours, `other` (M,) those of the other side's rows.
    """
    scores = MARGINS[margin](cosines, (own[:, None] + other[nearest]) / 2)  # (N, k)
    scores[nearest < 0] = -np.inf
    rank = scores.argmax(1)[:, None]
    return np.take_along_axis(scores, rank, 1)[:, 0], np.take_along_axis(nearest, rank, 1)[:, 0]


def best_first(pairs: Pairs) -> np.ndarray:
    """The order of pairs by falling score; ties are ordered by row."""
    return np.lexsort((pairs.right, pairs.left, -pairs.scores))


def intersection(forward: Pairs, backward: Pairs) -> Pairs:
    """The pairs that are candidates in both directions."""
    return forward.take(backward.left[forward.right] == forward.left)


def greedy_one_to_one(forward: Pairs, backward: Pairs) -> Pairs:
    """Go through both, best first, and keep a pair if neither of its rows has been used."""
    pairs = Pairs(*map(np.concatenate, zip(forward, backward, strict=True)))
    free_left, free_right = bytearray(b"\1" * len(forward.left)), bytearray(b"\1" * len(backward.right))
    kept: list[np.ndarray] = []
    for chosen in chunks(best_first(pairs)):
        keep = []
        for left, right in zip(pairs.left[chosen].tolist(), pairs.right[chosen].tolist(), strict=True):
            keep.append(free_left[left] and free_right[right])
            if keep[-1]:
                free_left[left] = free_right[right] = 0
        kept.append(chosen[np.array(keep, dtype=bool)])
    return pairs.take(np.concatenate(kept))


RETRIEVALS: dict[str, Callable[[Pairs, Pairs], Pairs]] = {
    "max": greedy_one_to_one,
    "intersection": intersection,
    "forward": lambda forward, backward: forward,
    "backward": lambda forward, backward: backward,
}
