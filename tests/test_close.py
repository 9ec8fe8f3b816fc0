"""`assert_close` accepts rounding errors, but no larger differences."""

import numpy as np
import pytest
import torch

from tests.close import FLOAT32, assert_close

SINGLE = torch.tensor([1e-9, 100.0])


def test_what_rounding_changes_is_close() -> None:
    assert_close(SINGLE, [1e-4, 100.0005])  # every element may have the rounding error of the largest
    assert_close([1.0, np.inf], [1 + 1e-13, np.inf])
    assert_close(1e-9, 0, FLOAT32, scale=1)
    assert_close(torch.ones(2, requires_grad=True).bfloat16(), 1.01)


@pytest.mark.parametrize(
    ("sides", "how"),
    [
        ((SINGLE, [0.01, 100.0]), {}),
        ((SINGLE, [1e-4, 100.0]), {"scale": np.array([1, 100])}),
        ((SINGLE.double(), [1e-9, 100.0005]), {}),
        ((SINGLE, SINGLE.double()), {}),
        ((1e-300, 0), {}),
        ((np.nan, np.nan), {}),
        (([1, np.inf], [1, 2.0]), {}),
        ((np.ones(2), np.ones((2, 2))), {}),
        ((np.ones(2), np.ones(1)), {}),
    ],
)
def test_all_else_is_not(sides: tuple, how: dict) -> None:
    with pytest.raises(AssertionError):
        assert_close(*sides, **how)
