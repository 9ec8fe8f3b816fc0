"""Translation retrieval."""

from __future__ import annotations

import numpy as np
import pytest

from bgt_core.evaluation.retrieval import precision_at_1


def test_by_hand() -> None:
    queries = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.1]])
    answers = np.array([[9.0, 0.1], [0.1, 0.2], [0.2, 5.0], [-3.0, 0.0]])  # nearest: 0, 2, 1, 3
    assert precision_at_1(queries, answers) == 0.5


def test_perfect_and_scale_free() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 8))
    assert precision_at_1(vectors, vectors * np.arange(1, 51)[:, None]) == 1.0
    assert precision_at_1(vectors, np.roll(vectors, 1, axis=0)) == 0.0


def test_chance() -> None:
    left, right = np.random.default_rng(0).normal(size=(2, 1000, 4))
    assert precision_at_1(left, right) == pytest.approx(0.001, abs=0.004)


def test_vectors_of_zeros_find_nothing_but_the_first() -> None:
    assert precision_at_1(np.zeros((4, 3)), np.ones((4, 3))) == 0.25
