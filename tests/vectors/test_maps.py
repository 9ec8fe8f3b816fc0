"""LEACE and the directions of factors equal solutions of the same least-squares problems by other methods."""

import numpy as np
import pytest

from bgt_core.errors import BgtError
from bgt_core.vectors.maps import directions, leace
from tests.close import assert_close


@pytest.mark.parametrize("scales", [np.ones(5), np.geomspace(1e-12, 1e12, 5)])
def test_leace_is_the_smallest_change_that_leaves_no_covariance(scales: np.ndarray) -> None:
    """If all scales are 1, LEACE is theorem 4.3 of its paper: I - S_xz (S_xz^T S_xx^-1 S_xz)^+ S_xz^T S_xx^-1."""
    rng = np.random.default_rng(0)
    vectors, labels = rng.standard_normal((500, 5)) @ rng.standard_normal((5, 5)), rng.integers(0, 3, 500)
    vectors += 2 * np.eye(5)[labels]
    one_hot = np.eye(3)[labels] - np.eye(3)[labels].mean(0)
    centred = vectors - vectors.mean(0)
    covariance, cross = centred.T @ centred / 500, centred.T @ one_hot / 500
    inverse = np.linalg.inv(covariance)
    expected = cross @ np.linalg.pinv(cross.T @ inverse @ cross, rcond=1e-9) @ cross.T @ inverse
    read, write, gone = leace(vectors.mean(0), covariance * scales * scales[:, None], cross * scales[:, None])
    assert read.shape == write.shape == (5, 2) and not gone.any()
    assert_close((write / scales[:, None]) @ (read * scales[:, None]).T, expected, 1e-9)


def test_leace_marks_a_unit_that_contains_only_rounding_error_afterwards() -> None:
    covariance = np.diag([1.0, 1e-6, 1e6, 0])
    assert leace(np.ones(4), covariance, np.array([[0], [1e-3], [0], [0]]))[2].tolist() == [False, True, False, False]


def test_directions_of_correlated_factors_are_found_and_move_vectors() -> None:
    """Vectors are factors (400, 2) @ patterns (2, 12) + noise; both factors correlate by about 0.7."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=400)
    factors, patterns = np.column_stack([first, first + rng.normal(size=400)]), rng.normal(size=(2, 12))
    vectors = factors @ patterns + 3 + 0.1 * rng.normal(size=(400, 12))
    fitted = directions(vectors, factors, ("one", "two"))
    assert fitted.patterns == pytest.approx(patterns, abs=0.03)
    assert fitted.names == ("one", "two") and min(fitted.read) > 0.99
    moved = fitted.move(vectors[:1], np.array([[0, 0], [2, 0], [2, -1]]))
    assert moved.shape == (3, 12) and moved.dtype == np.float32
    assert_close(moved[0], vectors[0])
    assert_close(moved[2] - moved[0], 2 * fitted.patterns[0] - fitted.patterns[1])


def test_directions_need_50_sentences_and_factors_that_vary() -> None:
    vectors = np.random.default_rng(2).normal(size=(60, 4))
    with pytest.raises(BgtError, match="10 sentences; to fit directions, give 50"):
        directions(vectors[:10], vectors[:10, :1], ("one",))
    with pytest.raises(BgtError, match="same 'two'"):
        directions(vectors, np.column_stack([vectors[:, 0], np.ones(60)]), ("one", "two"))
