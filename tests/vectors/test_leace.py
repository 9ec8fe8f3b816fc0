"""LEACE from moments, against least squares solved another way."""

from __future__ import annotations

import numpy as np
import pytest

from bgt_core.vectors.leace import leace
from tests.close import assert_close


@pytest.mark.parametrize("scales", [np.ones(5), np.geomspace(1e-12, 1e12, 5)])
def test_what_is_subtracted_is_the_least_that_leaves_no_covariance(scales: np.ndarray) -> None:
    """The map of theorem 4.3 by pseudo-inverses, I - S_xz (S_xz^T S_xx^-1 S_xz)^+ S_xz^T S_xx^-1, on equal scales."""
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


def test_nothing_is_erased_where_labels_covary_with_nothing_but_rounding_error() -> None:
    read, write, gone = leace(np.zeros(3), np.eye(3), 1e-16 * np.ones((3, 2)))
    assert read.shape == write.shape == (3, 0) and not gone.any()


def test_a_unit_of_which_nothing_is_left_is_named() -> None:
    covariance = np.diag([1.0, 1e-6, 1e6, 0])
    assert leace(np.ones(4), covariance, np.array([[0], [1e-3], [0], [0]]))[2].tolist() == [False, True, False, False]
