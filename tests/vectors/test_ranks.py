"""Hits of a search, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bgt_core.vectors import ranks
from bgt_core.vectors.compare import cosine_similarity
from bgt_core.vectors.ranks import found, hits


def test_answers_that_tie_share_a_hit() -> None:
    similarity = np.array([[0.9, 0.9 - 4e-7, 0.1], [0.5, 0.2, 0.5], [0.3, 0.3, 0.3 + 2e-6]])
    np.testing.assert_allclose(hits(similarity, np.arange(3)), [0.5, 0, 1])
    np.testing.assert_allclose(hits(similarity, np.array([1, 2, 2])), [0.5, 0.5, 1])


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, answers = np.random.default_rng(0).integers(-1, 2, (2, 50, 3))  # many tie
    whole, own = found(queries, answers), np.arange(50)[::-1]
    of_own = found(queries, answers, own)
    np.testing.assert_array_equal(whole, hits(cosine_similarity(queries, answers), np.arange(50)))
    assert set(whole) - {0.0, 1.0} and (of_own != whole).any()
    monkeypatch.setattr(ranks, "BLOCK", 7)
    np.testing.assert_array_equal(found(queries, answers), whole)
    np.testing.assert_array_equal(found(queries, answers, own), of_own)
