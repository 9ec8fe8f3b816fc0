"""Gaps between latents, and the bootstrap of shares compared with the standard error of a mean."""

import numpy as np
import pytest

from analysis.reproduce.comparisons import AVERAGE, DEV, F1, F1_GAP, STS_GAP
from analysis.reproduce.measure import gaps, share


def test_a_gap_is_for_the_latent_that_should_be_better() -> None:
    semantic = {AVERAGE: np.array([60.0, 1, 2]), DEV: np.array([50.0, 1, 2]), F1: np.array([20.0, 1, 2])}
    syntactic = {AVERAGE: np.array([40.0, 2, 3]), F1: np.array([35.0, 3, 6])}
    apart = gaps({"semantic": semantic, "syntactic": syntactic})
    assert {name: score.tolist() for name, score in apart.items()} == {STS_GAP: [20, -1, -1], F1_GAP: [15, 2, 4]}
    assert gaps({"semantic": semantic}) == {}


def test_the_spread_of_a_share_is_that_of_a_mean_of_right_answers() -> None:
    right = np.random.default_rng(0).random(400) < 0.3
    error = 100 * np.sqrt(right.mean() * (1 - right.mean()) / 400)
    assert share(right, 2_000)[1:].std() == pytest.approx(error, rel=0.1)
    assert share(~right, 2_000) == pytest.approx(100 - share(right, 2_000))  # the same items are drawn
