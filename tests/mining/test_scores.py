"""Precision, recall and thresholds of mined pairs, by hand and against a search of all thresholds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bgt_core.mining.scores import Counts, among, best_threshold, count, held_out

SCORES = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
CORRECT = np.array([True, True, False, True, False])


def test_by_hand() -> None:
    counts = count(SCORES, CORRECT, known=4)
    assert counts == Counts(correct=3, kept=5, known=4)
    assert (counts.precision, counts.recall, counts.f1) == (0.6, 0.75, pytest.approx(2 * 0.6 * 0.75 / 1.35))
    counts = count(SCORES, CORRECT, known=4, threshold=0.8)
    assert (counts.precision, counts.recall) == (1.0, 0.5)


def test_nothing_kept_scores_nothing() -> None:
    counts = count(SCORES, CORRECT, known=4, threshold=math.inf)
    assert (counts.precision, counts.recall, counts.f1) == (0.0, 0.0, 0.0)


def test_the_best_threshold_lies_between_scores() -> None:
    # F1 of the first 2 is 4 / 6, of the first 4 it is 6 / 8
    assert best_threshold(SCORES, CORRECT, known=4) == pytest.approx(0.55)
    assert best_threshold(SCORES, CORRECT, known=2) == pytest.approx(0.75)  # 4 / 4
    assert best_threshold(SCORES[:2], CORRECT[:2], known=2) == pytest.approx(0.8)  # all are kept


def test_the_best_threshold_beats_every_other() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.integers(0, 12, 40) / 10  # many are equal
        correct = rng.random(40) < scores
        best = best_threshold(scores, correct, known=30)
        tried = [count(scores, correct, 30, value).f1 for value in np.arange(-0.05, 1.3, 0.1)]
        assert count(scores, correct, 30, best).f1 == max(tried)


def test_order_does_not_matter() -> None:
    order = np.array([3, 0, 4, 2, 1])
    assert best_threshold(SCORES[order], CORRECT[order], 4) == best_threshold(SCORES, CORRECT, 4)


@pytest.mark.parametrize("scores", [SCORES, np.array([])])
def test_without_a_correct_pair_none_is_worth_keeping(scores: np.ndarray) -> None:
    assert best_threshold(scores, np.zeros(len(scores), dtype=bool), known=3) == math.inf


def test_each_half_is_judged_at_the_threshold_of_the_other() -> None:
    scores = np.array([0.9, 0.5, 0.3, 0.8, 0.4])
    correct = np.array([True, False, True, True, False])
    half = np.array([0, 0, 0, 1, 1])
    # half 0 is best with all three (4 / 5), kept from 0.3 on; half 1 with its first, from 0.6 on
    counts, used = held_out(scores, correct, half, known=(2, 1))
    assert used == (pytest.approx(0.6), pytest.approx(0.3))
    assert counts == Counts(correct=1 + 1, kept=1 + 2, known=3)


def test_known_pairs_are_recognised_whatever_their_order() -> None:
    left, right = np.array([0, 1, 2, 2]), np.array([5, 1, 0, 7])
    assert among(left, right, np.array([2, 0, 1]), np.array([7, 5, 0])).tolist() == [True, False, False, True]
    assert among(left[:0], right[:0], np.array([2]), np.array([7])).tolist() == []
