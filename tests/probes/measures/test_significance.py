"""Confidence intervals and tests of probes agree with SciPy, closed forms and simulations."""

import numpy as np
import pytest
from scipy.special import i0e
from scipy.stats import ttest_1samp

from bgt_core.evaluation.bootstrap import resample
from probes.measures import significance
from probes.measures.significance import Runs, bootstrap, difference

EVERYWHERE = np.ones((1, 4_000), bool)


def test_the_bootstrap_interval_is_about_the_normal_interval_and_copies_do_not_narrow_it() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random((1, 1, 4_000)) < 0.7, rng.random((1, 1, 4_000)) < 0.6
    gain = first.astype(float) - second
    half = 1.96 * gain.std() / np.sqrt(gain.size)
    a, b = bootstrap([first, second], EVERYWHERE, range(4_000))
    low, high = (a - b).interval()
    assert (a - b).mean == pytest.approx(gain.mean())
    assert (low, high) == pytest.approx((gain.mean() - half, gain.mean() + half), abs=0.003)
    twice = [np.repeat(one, 2, axis=2) for one in (first, second)]
    a, b = bootstrap(twice, np.repeat(EVERYWHERE, 2, axis=1), np.repeat(np.arange(4_000), 2))
    assert np.ptp((a - b).interval()) == pytest.approx(high - low, rel=0.1)


def test_a_resample_without_items_of_a_seed_has_the_seeds_mean() -> None:
    tested = np.array([[True] * 2 + [False] * 98, [False] * 2 + [True] * 98])
    right = tested & (np.arange(100) % 2 == 1)
    (runs,) = bootstrap([right[None]], tested, range(100))
    assert np.isfinite(runs.draws).all()
    equal = i0e(2.0)  # the probability that two Poisson counts with mean 1 are equal
    assert (runs.draws[:, 0, 0] == 0.5).mean() == pytest.approx(equal, abs=0.035)
    assert runs.points == pytest.approx(np.array([[0.5, 0.5]]))


def test_noise_of_items_is_counted_once_whether_seeds_share_them_or_not() -> None:
    """The mean over five folds of 100 items has the variance of a mean over 500 items. The mean over five tests on the
    same 100 items has the variance of a mean over 100 items."""
    rng = np.random.default_rng(0)
    folds, same = np.arange(500) % 5 == np.arange(5)[:, None], np.ones((5, 100), bool)
    variances = []
    for _ in range(200):
        apart, alike = (rng.random((1, 1, n)) < 0.7 for n in (500, 100))
        runs = [bootstrap([right & tested], tested, range(len(tested[0])), 50)[0]
                for right, tested in ((apart, folds), (alike, same))]  # fmt: skip
        variances.append([one.error()[0] ** 2 for one in runs])
    larger = np.maximum(1, np.random.default_rng(0).chisquare(4, 10_000) / 4).mean()  # `error` uses the larger variance
    assert np.mean(variances, axis=0) == pytest.approx([larger * 0.21 / 500, 0.21 / 100], rel=0.15)


def test_seeds_that_agree_by_chance_have_the_error_of_their_items() -> None:
    tested = np.arange(500) % 5 == np.arange(5)[:, None]
    right = tested & (np.arange(500) // 5 % 10 < 7)  # exactly 70 of the 100 items in each fold are right
    (runs,) = bootstrap([right[None]], tested, range(500))
    assert runs.error() == pytest.approx((np.sqrt(0.7 * 0.3 / 500), 8), rel=0.05)
    equal = np.broadcast_to(np.arange(100) < 70, (1, 5, 100))  # all seeds give the same answers
    (runs,) = bootstrap([equal], np.ones((5, 100), bool), range(100))
    assert runs.error() == (pytest.approx(np.sqrt(0.7 * 0.3 / 100), rel=0.05), np.inf)


@pytest.mark.parametrize(("mean", "p"), [(0.0, 1.0), (0.3, 0.0), (1.0, 0.0)])
def test_without_error_p_is_1_for_a_mean_of_0_and_else_0(mean: float, p: float) -> None:
    assert Runs(np.full((1, 1), mean), np.full((9, 1, 1), mean)).p() == p


def test_resamples_depend_on_the_seed_and_not_on_the_parts_in_which_they_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2)
    score, tested = rng.random((2, 3, 30)), rng.random((3, 30)) < 0.8
    groups = (np.arange(30) // 2 * 7).tolist()
    (whole,) = bootstrap([score], tested, groups, 90)
    weights = np.repeat(resample(np.random.default_rng(0), 15, 90), 2, axis=1)
    for seed in range(3):
        kept = weights * tested[seed]
        np.testing.assert_allclose(whole.draws[:, :, seed], kept @ score[:, seed].T / kept.sum(1)[:, None])
        np.testing.assert_allclose(whole.points[:, seed], score[:, seed, tested[seed]].mean(1))
    monkeypatch.setattr(significance, "MAX_WEIGHTS", 200)
    (parts,) = bootstrap([score], tested, groups, 90)
    np.testing.assert_allclose(parts.draws, whole.draws)


def test_an_interval_of_a_difference_ends_at_100_points() -> None:
    """For two seeds that disagree, Student's interval with one degree of freedom would end above 100."""
    points = np.array([[0.9, -0.1]])
    paired = Runs(points, np.broadcast_to(points, (9, 1, 2)))
    gap = difference("t", "fr", ("a", "b"), paired)
    assert (gap.points, gap.ci_low, gap.ci_high) == (pytest.approx(40), -100, 100)
    assert gap.p == pytest.approx(ttest_1samp(points[0], 0).pvalue)


# simulation -> (number of encoders, of probe seeds, their standard deviations, whether seeds test the same items)
SETTINGS = {
    "folds, probes differ": (1, 5, 0.0, 0.03, False),
    "fixed test, probes differ": (1, 5, 0.0, 0.03, True),
    "three encoders": (3, 5, 0.03, 0.03, True),
    "one probe": (1, 1, 0.0, 0.0, True),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_intervals_cover_the_truth_in_95_of_100_cases(setting: str) -> None:
    """Simulate 400 runs with known accuracies. The interval of a difference excludes 0 if and only if p < 0.05.

    If the true coverage is 95%, the measured coverage is below 92% or above 98% once in 150 times.
    """
    encoders, probes, encoder_sd, probe_sd, fixed = SETTINGS[setting]
    tested = np.ones((probes, 200), bool) if fixed else np.arange(200) // 2 % probes == np.arange(probes)[:, None]
    rng, held = np.random.default_rng(0), []
    for run in range(400):
        chance = 0.7 + rng.normal(0, encoder_sd, (encoders, 1, 1)) + rng.normal(0, probe_sd, (encoders, probes, 1))
        hard = np.repeat(rng.uniform(-0.2, 0.2, 100), 2)  # items 2n and 2n + 1 are equally difficult
        shape = encoders, probes, 200
        luck = np.where(rng.random(shape) < 0.1, rng.random(shape), rng.random(200))
        scores = [(luck < level + hard) & tested for level in (chance, 0.64)]
        score, base = bootstrap(scores, tested, np.arange(200) // 2, 300, run)
        low, high = score.interval()
        held.append(low <= 0.7 <= high)
        low, high = (score - base).interval()
        assert ((score - base).p() < 0.05) == (not low <= 0 <= high)
    assert 0.92 <= np.mean(held) <= 0.995
