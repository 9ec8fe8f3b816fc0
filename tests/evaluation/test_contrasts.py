"""Whether a claim holds: against the usual tests where those apply, and on planted results."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bgt_core.evaluation.bootstrap import two_sided_p
from bgt_core.evaluation.contrasts import FAILS, HOLDS, NOT_SEPARABLE, BootstrappedScore, contrast, verdict


def score(*values: float, spread: float = 0.0, seed: int = 0) -> BootstrappedScore:
    """Trainings of these scores, each moved alike by drawing the pairs again."""
    draws = np.random.default_rng(seed).normal(0, 1, 4_000)
    draws = spread * (draws - draws.mean()) / draws.std(ddof=1)
    return BootstrappedScore(np.array(values), np.array(values)[:, None] + draws)


def test_without_seeds_it_is_the_paired_bootstrap() -> None:
    first, second = score(61.0, spread=1.0, seed=1), score(60.2, spread=0.9, seed=2)
    estimate = contrast([(1, first), (-1, second)], 0.95)
    gains = (first.draws - second.draws)[0]
    assert estimate.value == pytest.approx(0.8)
    assert estimate.p == pytest.approx(two_sided_p(np.float64(0.8), gains), rel=1e-9)
    assert [estimate.low, estimate.high] == pytest.approx(stats.norm.interval(0.95, 0.8, gains.std(ddof=1)))
    assert not estimate.counts_seeds


def test_without_variance_of_pairs_it_is_students_test_over_seeds() -> None:
    first, second = score(61.0, 62.5, 61.7), score(60.1, 60.4)
    estimate = contrast([(1, first), (-1, second)], 0.9)
    expected = stats.ttest_ind(first.values, second.values, equal_var=True)
    assert estimate.p == pytest.approx(expected.pvalue)
    assert [estimate.low, estimate.high] == pytest.approx(list(expected.confidence_interval(0.9)))
    assert estimate.counts_seeds


def test_a_system_of_one_seed_is_taken_to_vary_as_the_other() -> None:
    """A new observation against three: the prediction interval of the text books."""
    first, second = score(61.0, 62.0, 63.0), score(58.0)
    estimate = contrast([(1, first), (-1, second)], 0.95)
    assert estimate.p == pytest.approx(2 * stats.t.sf(4 / np.sqrt(1 + 1 / 3), 2))


def test_its_level_is_right_where_pairs_and_trainings_vary() -> None:
    """Two equal systems, by Monte Carlo: p < 0.1 in a tenth of the comparisons."""
    rng, low = np.random.default_rng(0), 0
    for _ in range(800):
        shift = rng.normal(0, 0.7)  # of the pairs that were drawn, the same for all trainings
        first, second = (rng.normal(60, 0.7, 3) for _ in range(2))
        draws = rng.normal(0, 0.7, 200)
        parts = [
            (1, BootstrappedScore(first + shift, first[:, None] + draws)),
            (-1, BootstrappedScore(second, second[:, None] + 0 * draws)),
        ]
        low += contrast(parts, 0.95).p < 0.1
    assert 0.075 < low / 800 < 0.125


def test_the_same_scores_are_not_separable() -> None:
    first = score(60.0, 61.0, spread=1.0)
    assert contrast([(1, first), (-1, first)], 0.95)[:4] != (0, 0, 0, 0)
    alone = score(60.0, spread=1.0)
    assert contrast([(1, alone), (-1, alone)], 0.95) == (0, 0, 0, 1, False)
    twice = score(60.0, 60.0)
    assert contrast([(1, twice), (-1, twice)], 0.95) == (0, 0, 0, 1, True)


def test_verdicts() -> None:
    assert verdict(1.0, 0.01, 0.95) == HOLDS
    assert verdict(-1.0, 0.01, 0.95) == FAILS
    assert verdict(1.0, 0.01, 0.999) == NOT_SEPARABLE
    assert verdict(-1.0, 0.2, 0.95) == NOT_SEPARABLE
    assert verdict(1.0, 0.5, 0.5) == NOT_SEPARABLE  # a p at the limit is no evidence
    assert verdict(0.0, 0.01, 0.95) == FAILS
