"""Equal similarities, whatever their last bits, tie; all others keep their order."""

from __future__ import annotations

import numpy as np
import pytest

from bgt_core.vectors.ties import ROUNDING, above, rounded


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
