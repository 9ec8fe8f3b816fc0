"""Cosines against those of float64 at scale 1, whatever the size of the numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bgt_core.errors import DataError, UsageError
from bgt_core.vectors.compare import cosine_similarity, cosines, unit
from tests.close import BFLOAT16, FLOAT32, assert_close

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
    half = np.float16(100 * LEFT)  # the squares are beyond float16
    assert_close(cosine_similarity(half, RIGHT), EXACT, 2e-3)
    assert unit(half).dtype == np.float32


def test_ordinary_vectors_keep_every_bit_and_zeros_stay() -> None:
    for dtype in (np.float32, np.float64):
        rows = np.concatenate([LEFT * 30, LEFT / 30, np.zeros((1, 40))]).astype(dtype)
        plain = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        assert unit(rows).dtype == dtype and np.array_equal(unit(rows), plain)


def test_vectors_of_any_library_are_compared() -> None:
    sides = LEFT.tolist(), torch.tensor(RIGHT, requires_grad=True)
    np.testing.assert_allclose(cosine_similarity(*sides), EXACT, rtol=1e-12)
    np.testing.assert_allclose(cosine_similarity(LEFT[0], RIGHT), EXACT[0], rtol=1e-12)
    assert_close(cosines(torch.tensor(LEFT).bfloat16(), RIGHT), EXACT.diagonal(), BFLOAT16)


def test_vectors_that_cannot_be_compared_are_named() -> None:
    for compare in (cosines, cosine_similarity):
        with pytest.raises(UsageError, match="left has vectors of 40 units, right of 7; expected those of one encoder"):
            compare(LEFT, RIGHT[:, :7])
        with pytest.raises(DataError, match="right: of type NoneType; expected numbers"):
            compare(LEFT, None)
        with pytest.raises(DataError, match="left: row 1 contains NaN"):
            compare(LEFT * np.nan, RIGHT)
