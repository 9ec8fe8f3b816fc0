"""Hits of a search, by hand."""

from __future__ import annotations

import numpy as np

from bgt_core.vectors.ranks import found


def test_answers_that_tie_share_a_hit() -> None:
    similarity = np.array([[0.9, 0.9 - 4e-7, 0.1], [0.5, 0.2, 0.5], [0.3, 0.3, 0.3 + 2e-6]])
    np.testing.assert_allclose(found(similarity), [0.5, 0, 1])
    np.testing.assert_allclose(found(similarity, np.array([1, 2, 2])), [0.5, 0.5, 1])
    np.testing.assert_allclose(found(np.zeros((4, 4), np.float32)), [0.25] * 4)
