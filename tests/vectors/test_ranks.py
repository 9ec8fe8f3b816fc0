"""Equal similarities tie whatever their last bits, and share the hits of a search; all others keep their order."""

from __future__ import annotations

import numpy as np
import pytest

from bgt_core.vectors import ranks
from bgt_core.vectors.compare import ROUNDING, cosine_similarity
from bgt_core.vectors.ranks import above, found, hits, rounded


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


@pytest.mark.parametrize("centre", [1.0, 0.0, -1.0, 1 / 3, 0.1234565, 0.9999995, 35.5])
@pytest.mark.parametrize("seed", range(5))
def test_values_that_differ_by_rounding_errors_are_equal(centre: float, seed: int) -> None:
    """Also around an edge of rounding, and among others."""
    noise = np.random.default_rng(seed).uniform(-2e-7, 2e-7, 40)
    given = rounded(np.concatenate([centre + noise, [centre + 1e-5, centre - 1e-5]]))
    assert len(set(given[:40])) == 1 and given[40] > given[0] > given[41]
    assert abs(given[0] - centre) <= 2 * ROUNDING and given[0] == given[0].round(6)


def test_dense_values_keep_their_order() -> None:
    values = np.random.default_rng(0).uniform(0, 0.01, 100_000)  # ten in each millionth
    once = rounded(values)
    assert (np.diff(once[values.argsort()]) >= 0).all() and len(set(once)) > 9_000
    np.testing.assert_array_equal(rounded(once), once)
    assert rounded(np.zeros(0)).shape == (0,)


def test_a_tie_of_two_counts_half() -> None:
    assert above(np.array([0.5, 0.5, 0.5, 0.5000009]), np.array([0.4, 0.6, 0.5, 0.5])).tolist() == [1, 0, 0.5, 0.5]
