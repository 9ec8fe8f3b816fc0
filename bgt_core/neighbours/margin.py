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
from bgt_core.neighbours.search import Report, Rows, SearchPlan, all_blocks, chunks, search, silent

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


# Evaluate bitext mining against known translations: precision, recall and F1 of the pairs above a threshold.


class Counts(NamedTuple):
    """Counts of pairs; counts of separate parts of a text add up."""

    correct: int
    kept: int
    known: int

    @property
    def precision(self) -> float:
        """Share of the kept pairs that are known; 0 if none is kept."""
        return self.correct / max(self.kept, 1)

    @property
    def recall(self) -> float:
        """Share of the known pairs that are kept."""
        return self.correct / self.known

    @property
    def f1(self) -> float:
        return 2 * self.correct / (self.kept + self.known)


def among(left: np.ndarray, right: np.ndarray, known_left: np.ndarray, known_right: np.ndarray) -> np.ndarray:
    """Which pairs of rows (P,), (P,) are among the known ones (G,), (G,): (P,) bool."""
    width = max(right.max(initial=0), known_right.max(initial=0)) + 1
    return np.isin(left * width + right, known_left * width + known_right)


def count(scores: np.ndarray, correct: np.ndarray, known: int, threshold: float = -np.inf) -> Counts:
    """Count mined pairs with scores (P,), correct or not (P,), that score `threshold` or more."""
    kept = scores >= threshold
    return Counts(int((kept & correct).sum()), int(kept.sum()), known)


def best_threshold(scores: np.ndarray, correct: np.ndarray, known: int) -> float:
    """The threshold of the best F1; halfway to the next lower score, so that it fits other pairs too.

    Infinite if no pair is correct: then it is best to keep none.
    """
    order = np.argsort(-scores, kind="stable")
    falling, hits = scores[order].astype(np.float64), correct[order].cumsum()
    last = np.append(falling[1:] < falling[:-1], True)[: len(falling)]  # a threshold can't separate equal scores
    f1 = np.where(last, 2 * hits / (np.arange(1, len(falling) + 1) + known), 0)
    if not f1.any():
        return np.inf
    best = int(f1.argmax())
    below = falling[best + 1] if best + 1 < len(falling) else falling[best]
    return float((falling[best] + below) / 2)


class Kept(NamedTuple):
    """The pairs kept by one rule."""

    rule: str  # "all", "threshold", "best threshold" or "best of the other half"
    thresholds: tuple[float, ...]
    counts: Counts


def at_thresholds(pairs: Pairs, left: np.ndarray, right: np.ndarray, threshold: float = -np.inf) -> list[Kept]:
    """Compare mined pairs with known ones, rows (G,) and (G,): all pairs, those above `threshold`, and those above the
    best threshold, on all pairs and held out (the halves are even and odd rows of the left side)."""
    correct, known = among(pairs.left, pairs.right, left, right), len(left)
    odd = int((left % 2).sum())
    best = best_threshold(pairs.scores, correct, known)
    apart, used = held_out(pairs.scores, correct, pairs.left % 2, (known - odd, odd))
    own = [Kept("threshold", (threshold,), count(pairs.scores, correct, known, threshold))]
    return [
        Kept("all", (), count(pairs.scores, correct, known)),
        *(own if threshold > -np.inf else []),
        Kept("best threshold", (best,), count(pairs.scores, correct, known, best)),
        Kept("best of the other half", used, apart),
    ]


def held_out(
    scores: np.ndarray, correct: np.ndarray, half: np.ndarray, known: tuple[int, int]
) -> tuple[Counts, tuple[float, float]]:
    """Each half of the pairs (`half` (P,) is 0 or 1) at the best threshold of the other, counted together.

    `known` are the known pairs of half 0 and of half 1. Returns the counts, and the thresholds used on halves 0 and 1.
    """
    parts = [half == 0, half == 1]
    best = [best_threshold(scores[part], correct[part], size) for part, size in zip(parts, known, strict=True)]
    used = (best[1], best[0])
    counts = [count(scores[parts[i]], correct[parts[i]], known[i], used[i]) for i in (0, 1)]
    return Counts(*map(sum, zip(*counts, strict=True))), used
