"""Test cosines of very large and very small numbers, similarities that tie, and hits of retrieval."""

import numpy as np
import pytest

from bgt_core.errors import DataError, UsageError
from bgt_core.vectors import compare
from bgt_core.vectors.compare import ROUNDING, above, cosine_similarity, cosines, found, hits, rounded, unit
from tests.close import FLOAT32, assert_close

RNG = np.random.default_rng(0)
LEFT, RIGHT = RNG.standard_normal((2, 6, 40))
EXACT = (LEFT / np.linalg.norm(LEFT, axis=1)[:, None]) @ (RIGHT / np.linalg.norm(RIGHT, axis=1)[:, None]).T


@pytest.mark.parametrize("scale", [1e-38, 1e-30, 1e-12, 1.0, 1e12, 1e30, 3e37])
def test_cosines_do_not_depend_on_the_size_of_the_numbers(scale: float) -> None:
    for left, right in ((scale, 1.0), (1.0, scale), (scale, scale)):
        sides = [np.float32(side * of) for side, of in ((LEFT, left), (RIGHT, right))]
        assert_close(cosine_similarity(*sides), EXACT, FLOAT32)
        assert_close(cosines(*sides), EXACT.diagonal(), FLOAT32)
    np.testing.assert_allclose(np.linalg.norm(unit(np.float32(LEFT * scale)), axis=1), 1, rtol=1e-6)


def test_each_row_has_a_scale_of_its_own_and_finer_types_keep_their_digits() -> None:
    scales = np.logspace(-300, 300, len(LEFT))[:, None]
    np.testing.assert_allclose(cosine_similarity(LEFT * scales, RIGHT), EXACT, rtol=1e-13)
    half = np.float16(100 * LEFT)  # the squares of these numbers overflow float16
    assert_close(cosine_similarity(half, RIGHT), EXACT, 2e-3)
    assert unit(half).dtype == np.float32


def test_vectors_that_cannot_be_compared_are_named() -> None:
    for function in (cosines, cosine_similarity):
        with pytest.raises(UsageError, match="left has vectors of 40 units, right of 7; expected those of one encoder"):
            function(LEFT, RIGHT[:, :7])
        with pytest.raises(DataError, match="right: of type NoneType; expected numbers"):
            function(LEFT, None)
        with pytest.raises(DataError, match="left: row 1 contains NaN"):
            function(LEFT * np.nan, RIGHT)


def test_answers_that_tie_share_a_hit() -> None:
    similarity = np.array([[0.9, 0.9 - 4e-7, 0.1], [0.5, 0.2, 0.5], [0.3, 0.3, 0.3 + 2e-6]])
    np.testing.assert_allclose(hits(similarity, np.arange(3)), [0.5, 0, 1])
    np.testing.assert_allclose(hits(similarity, np.array([1, 2, 2])), [0.5, 0.5, 1])


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, answers = np.random.default_rng(0).integers(-1, 2, (2, 50, 3))  # small integers, so many ties
    whole, own = found(queries, answers), np.arange(50)[::-1]
    of_own = found(queries, answers, own)
    np.testing.assert_array_equal(whole, hits(cosine_similarity(queries, answers), np.arange(50)))
    assert set(whole) - {0.0, 1.0} and (of_own != whole).any()
    monkeypatch.setattr(compare, "BLOCK", 7)
    np.testing.assert_array_equal(found(queries, answers), whole)
    np.testing.assert_array_equal(found(queries, answers, own), of_own)


@pytest.mark.parametrize("centre", [1.0, 0.0, -1.0, 1 / 3, 0.1234565, 0.9999995, 35.5])
@pytest.mark.parametrize("seed", range(5))
def test_values_that_differ_by_rounding_errors_are_equal(centre: float, seed: int) -> None:
    """Some centres are on the boundary of rounding, so the noise puts values on both sides of the boundary."""
    noise = np.random.default_rng(seed).uniform(-2e-7, 2e-7, 40)
    given = rounded(np.concatenate([centre + noise, [centre + 1e-5, centre - 1e-5]]))
    assert len(set(given[:40])) == 1 and given[40] > given[0] > given[41]
    assert abs(given[0] - centre) <= 2 * ROUNDING and given[0] == given[0].round(6)


def test_a_tie_of_two_counts_half() -> None:
    assert above(np.array([0.5, 0.5, 0.5, 0.5000009]), np.array([0.4, 0.6, 0.5, 0.5])).tolist() == [1, 0, 0.5, 0.5]
