"""Evaluate bitext mining against known translations: precision, recall and F1 of the pairs above a threshold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bgt_core.mining.margin import Pairs


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
