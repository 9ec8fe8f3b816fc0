"""Bitext mining against known translations: precision, recall and F1 of what is kept from a score on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Found(NamedTuple):
    """Counts of pairs; counts of separate parts of a text add up."""

    correct: int
    kept: int
    known: int

    @property
    def precision(self) -> float:
        """Share of the kept pairs that are known; 0 where none is kept."""
        return self.correct / max(self.kept, 1)

    @property
    def recall(self) -> float:
        """Share of the known pairs that are kept."""
        return self.correct / self.known

    @property
    def f1(self) -> float:
        return 2 * self.correct / (self.kept + self.known)


def among(left: np.ndarray, right: np.ndarray, known_left: np.ndarray, known_right: np.ndarray) -> np.ndarray:
    """Which of the pairs of rows (P,), (P,) are among the known ones (G,), (G,): (P,) bool."""
    width = max(right.max(initial=0), known_right.max(initial=0)) + 1
    return np.isin(left * width + right, known_left * width + known_right)


def count(scores: np.ndarray, correct: np.ndarray, known: int, threshold: float = -np.inf) -> Found:
    """Of mined pairs with these scores (P,), correct or not (P,), those that score `threshold` or more."""
    kept = scores >= threshold
    return Found(int((kept & correct).sum()), int(kept.sum()), known)


def best_threshold(scores: np.ndarray, correct: np.ndarray, known: int) -> float:
    """The threshold of the best F1; halfway to the next lower score, so that it suits other pairs too.

    Infinite where no pair is correct: then it is best to keep none.
    """
    order = np.argsort(-scores, kind="stable")
    falling, hits = scores[order].astype(np.float64), correct[order].cumsum()
    last = np.append(falling[1:] < falling[:-1], True)[: len(falling)]  # a threshold can't part equal scores
    f1 = np.where(last, 2 * hits / (np.arange(1, len(falling) + 1) + known), 0)
    if not f1.any():
        return np.inf
    place = int(f1.argmax())
    below = falling[place + 1] if place + 1 < len(falling) else falling[place]
    return float((falling[place] + below) / 2)


def held_out(
    scores: np.ndarray, correct: np.ndarray, half: np.ndarray, known: tuple[int, int]
) -> tuple[Found, tuple[float, float]]:
    """Each half of the pairs (`half` (P,) is 0 or 1) at the best threshold of the other, counted together.

    `known` are the known pairs of half 0 and of half 1. Returns the counts, and the thresholds used on halves 0 and 1.
    """
    parts = [half == 0, half == 1]
    best = [best_threshold(scores[part], correct[part], size) for part, size in zip(parts, known, strict=True)]
    used = (best[1], best[0])
    counts = [count(scores[parts[i]], correct[parts[i]], known[i], used[i]) for i in (0, 1)]
    return Found(*map(sum, zip(*counts, strict=True))), used
