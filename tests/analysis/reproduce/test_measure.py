"""The bootstrap's standard deviation of an accuracy p of N answers is its standard error, sqrt(p (1 - p) / N)."""

import numpy as np
import pytest

from analysis.reproduce.measure import share


def test_the_spread_of_a_share_is_that_of_a_mean_of_right_answers() -> None:
    right = np.random.default_rng(0).random(400) < 0.3
    error = 100 * np.sqrt(right.mean() * (1 - right.mean()) / 400)
    assert share(right, 2_000)[1:].std() == pytest.approx(error, rel=0.1)
    assert share(~right, 2_000) == pytest.approx(100 - share(right, 2_000))  # both calls draw the same resamples
