"""Directions are found where they were put."""

from __future__ import annotations

import numpy as np
import pytest

from bgt_core.errors import BgtError
from bgt_core.generation.directions import directions
from tests.close import assert_close


@pytest.fixture
def planted() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors (400, 12) = factors (400, 2) @ patterns (2, 12) + noise; the factors go together, r about 0.7."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=400)
    factors = np.column_stack([first, first + rng.normal(size=400)])
    patterns = rng.normal(size=(2, 12))
    return factors @ patterns + 3 + 0.1 * rng.normal(size=(400, 12)), factors, patterns


def test_each_pattern_is_found_though_the_factors_go_together(planted: tuple) -> None:
    vectors, factors, patterns = planted
    fitted = directions(vectors, factors, ("one", "two"))
    assert fitted.patterns == pytest.approx(patterns, abs=0.03)
    assert fitted.names == ("one", "two") and min(fitted.read) > 0.99


def test_moving_adds_units_of_a_factor(planted: tuple) -> None:
    vectors, factors, _ = planted
    fitted = directions(vectors, factors, ("one", "two"))
    moved = fitted.move(vectors[:1], np.array([[0, 0], [2, 0], [2, -1]]))
    assert moved.shape == (3, 12) and moved.dtype == np.float32
    assert_close(moved[0], vectors[0])
    assert_close(moved[2] - moved[0], 2 * fitted.patterns[0] - fitted.patterns[1])


def test_a_factor_that_is_not_there_is_not_read() -> None:
    rng = np.random.default_rng(1)
    fitted = directions(rng.normal(size=(600, 8)), rng.normal(size=(600, 1)), ("nothing",))
    assert abs(fitted.read[0]) < 0.25  # four standard errors of r over 120 held-out sentences are 0.37


def test_bad_input_is_named() -> None:
    vectors = np.random.default_rng(2).normal(size=(60, 4))
    with pytest.raises(BgtError, match="10 sentences; directions need 50"):
        directions(vectors[:10], vectors[:10, :1], ("one",))
    with pytest.raises(BgtError, match="same 'two'"):
        directions(vectors, np.column_stack([vectors[:, 0], np.ones(60)]), ("one", "two"))
