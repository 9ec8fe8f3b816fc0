"""A map from one encoder's vectors to another's: exact where one exists, and the best of its kind elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from bgt_core.errors import DataError
from bgt_core.vectors.mapping import least_squares_map
from tests.close import assert_close


def test_an_affine_map_is_found_from_few_sentences() -> None:
    draw = np.random.default_rng(0)
    weight, shift = draw.normal(size=(12, 5)), draw.normal(size=5)
    vectors, unseen = draw.normal(size=(40, 12)), draw.normal(size=(7, 12))
    onto = least_squares_map(vectors, vectors @ weight + shift)
    mapped = onto(unseen)
    assert mapped.shape == (7, 5) and mapped.dtype == np.float32
    assert_close(mapped, unseen @ weight + shift, 1e-4)  # a small penalty stays


def test_fewer_sentences_than_units_still_predict() -> None:
    """The penalty is that of the smallest error on sentences left out, computed here one by one."""
    draw = np.random.default_rng(1)
    weight = draw.normal(size=(60, 3))
    vectors, unseen = (draw.normal(size=(count, 60)) for count in (50, 200))
    noisy = vectors @ weight + 4 * draw.normal(size=(50, 3))
    onto = least_squares_map(vectors, noisy)

    def ridge(rows: np.ndarray, values: np.ndarray, penalty: float, given: np.ndarray) -> np.ndarray:
        """The closed form: centre, and solve the normal equations."""
        centred, mean = rows - rows.mean(0), values.mean(0)
        solved = np.linalg.solve(centred.T @ centred + penalty * np.eye(rows.shape[1]), centred.T @ (values - mean))
        return np.asarray((given - rows.mean(0)) @ solved + mean)

    scale = vectors.var(0).mean() * len(vectors)
    errors = {}
    for penalty in 10.0 ** np.arange(-6, 3) * scale:
        left_out = [
            ridge(np.delete(vectors, row, 0), np.delete(noisy, row, 0), penalty, vectors[row]) - noisy[row]
            for row in range(50)
        ]
        errors[penalty] = float(np.square(left_out).sum())
    best = min(errors, key=lambda penalty: errors[penalty])
    assert_close(onto(unseen), ridge(vectors, noisy, best, unseen))


@pytest.mark.parametrize(
    ("rows", "others", "message"),
    [(9, 9, "9 and 9 vectors; a map needs vectors of the same 10 sentences"), (12, 11, "12 and 11 vectors")],
)
def test_too_few_or_unequal_vectors_are_refused(rows: int, others: int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        least_squares_map(np.eye(rows, 4), np.eye(others, 4))


def test_vectors_that_are_all_the_same_are_refused() -> None:
    with pytest.raises(DataError, match="All 12 vectors to map from are the same"):
        least_squares_map(np.ones((12, 4)), np.eye(12))
