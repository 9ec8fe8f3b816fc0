"""The bootstrap agrees with SciPy, closed forms and simulations; differences of systems agree with standard tests."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from bgt_core.evaluation import bootstrap
from bgt_core.evaluation.bootstrap import BootstrappedScore, contrast, holm, pearson, resample, spearman, two_sided_p
from tests.close import assert_close

CORRELATIONS = [(pearson, stats.pearsonr), (spearman, stats.spearmanr)]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_a_resample_draws_every_item_with_the_same_probability(rng: np.random.Generator) -> None:
    weights = resample(rng, 40, 3_000)
    assert weights.shape == (3_000, 40)
    assert set(weights.sum(1)) == {40}
    assert weights.mean(0) == pytest.approx(1, abs=0.1)  # the standard error is 1 / sqrt(3000), which is 0.018
    assert weights.var() == pytest.approx(1 - 1 / 40, abs=0.02)  # the variance of a multinomial count


@pytest.mark.parametrize(("ours", "theirs"), CORRELATIONS)
def test_a_weight_counts_as_that_many_copies_of_the_item(
    ours: Callable, theirs: Callable, rng: np.random.Generator
) -> None:
    gold = rng.integers(0, 6, 50) / 1.0  # many gold scores are equal, as in real data
    systems = np.stack([gold + rng.normal(size=50), rng.normal(size=50).round(1) + 7_000, -gold])
    weights = np.concatenate([np.ones((1, 50)), resample(rng, 50, 20)])
    values = ours(weights, systems, gold)  # (21 weightings, 3 systems)
    for row, counts in zip(values, weights.astype(int), strict=True):
        places = np.repeat(np.arange(50), counts)
        expected = [theirs(system[places], gold[places]).statistic for system in systems]
        assert_close(row, expected)


@pytest.mark.parametrize("ours", [pearson, spearman])
def test_constant_values_have_a_correlation_of_zero(ours: Callable) -> None:
    gold = np.array([0.1, 0.1, 0.1, 5.0])
    weights = np.array([[1.0, 1, 1, 1], [2, 1, 1, 0]])  # the second resample has only equal gold scores
    values = ours(weights, np.stack([np.full(4, 0.1), gold / 3, [-3.0, 1, 2, 10]]), gold)
    assert_close(values[:, :2], [[0, 1], [0, 0]])
    assert values[0, 2] > 0.7 and values[1, 2] == 0
    assert two_sided_p(np.array([0.0]), np.zeros((9, 1)))[0] == 1  # a system compared with itself


@pytest.mark.parametrize("far", [1e4, 1e7, -1e9])
@pytest.mark.parametrize("side", ["system", "gold", "both"])
def test_one_value_far_from_all_others_costs_no_digits(far: float, side: str, rng: np.random.Generator) -> None:
    gold, noise = rng.normal(size=(2, 60))
    system = gold + noise
    if side != "gold":
        system[7] += far
    if side != "system":
        gold[7] += far
    weights = resample(rng, 60, 200)
    assert (weights[:, 7] == 0).sum() > 20
    values = pearson(weights, system[None], gold)[:, 0]
    for value, counts in zip(values, weights.astype(int), strict=True):
        places = np.repeat(np.arange(60), counts)
        assert_close(value, stats.pearsonr(system[places], gold[places]).statistic)


def test_p_is_below_5_percent_for_5_percent_of_equal_systems_and_most_better_ones(rng: np.random.Generator) -> None:
    wrong = detected = 0
    for _ in range(400):
        gold, shared, *own = rng.normal(size=(5, 150))
        errors = [0.8 * shared + 0.6 * noise for noise in own]  # the systems' errors correlate
        systems = np.stack([gold + errors[0], gold + errors[1], gold + 0.6 * errors[2]])
        value = pearson(np.ones((1, 150)), systems, gold)[0]
        draws = pearson(resample(rng, 150, 300), systems, gold)
        wrong += two_sided_p(value[0] - value[1], draws[:, 0] - draws[:, 1]) < 0.05
        detected += two_sided_p(value[2] - value[0], draws[:, 2] - draws[:, 0]) < 0.05
    assert 0.02 < wrong / 400 < 0.085
    assert detected / 400 > 0.95


@pytest.mark.parametrize(("right", "n"), [(8, 10), (0, 7), (7, 7), (412, 1_000)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_wilsons_interval_is_scipys(right: int, n: int, level: float) -> None:
    expected = stats.binomtest(right, n).proportion_ci(level, method="wilson")
    assert_close(bootstrap.wilson(right, n, level), (expected.low, expected.high))


def test_each_sample_has_its_own_draws_and_shares_are_those_of_the_drawn_items() -> None:
    part, whole = np.array([[1.0, 0, 3], [2, 2, 0]]), np.array([[2.0, 1, 4], [2, 4, 5]])
    values, draws = bootstrap.bootstrap(
        lambda weights: {"first": bootstrap.share(weights[0], part, whole), "other": weights[1][:, :1]},
        [bootstrap.ItemSample(3, (1,)), bootstrap.ItemSample(40)],
        resamples=250,  # computed in three chunks of at most 100
        seed=4,
    )
    np.testing.assert_allclose(values["first"], [100 * 4 / 7, 100 * 4 / 11])
    weights = resample(np.random.default_rng([4, 1]), 3, 250)
    expected = [
        [100 * (row * one).sum() / (row * of).sum() for one, of in zip(part, whole, strict=True)] for row in weights
    ]
    np.testing.assert_allclose(draws["first"], expected)
    assert values["other"] == 1 and (draws["other"] == resample(np.random.default_rng(4), 40, 250)[:, :1]).all()


def test_holm_by_hand() -> None:
    # Holm's correction multiplies the sorted 0.01, 0.02, 0.03, 0.4 by 4, 3, 2, 1; 0.06 stays, as p-values must not fall
    np.testing.assert_allclose(holm(np.array([0.03, 0.4, 0.01, 0.02])), [0.06, 0.4, 0.04, 0.06])
    np.testing.assert_allclose(holm(np.array([0.9, 0.8])), [1, 1])
    assert holm(np.array([])).shape == (0,)


def score(*values: float, spread: float = 0.0, seed: int = 0) -> BootstrappedScore:
    """Make a score of several trainings, one value each. Each resample adds the same random number to all values."""
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


def test_a_system_with_one_seed_is_assumed_to_vary_like_the_other() -> None:
    """The interval equals Student's prediction interval for one new observation after three others."""
    first, second = score(61.0, 62.0, 63.0), score(58.0)
    estimate = contrast([(1, first), (-1, second)], 0.95)
    assert estimate.p == pytest.approx(2 * stats.t.sf(4 / np.sqrt(1 + 1 / 3), 2))


def test_p_is_uniform_for_equal_systems_if_pairs_and_trainings_vary() -> None:
    """If two systems are equally good, p must be below 0.1 in a tenth of the simulated comparisons."""
    rng, low = np.random.default_rng(0), 0
    for _ in range(800):
        shift = rng.normal(0, 0.7)  # all trainings are tested on the same sampled pairs, so their scores shift alike
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


@pytest.mark.parametrize(("rho", "ours"), [(0.3, pearson), (0.8, pearson), (0.6, spearman)])
def test_nine_of_ten_90_percent_intervals_cover_the_truth(rho: float, ours: Callable, rng: np.random.Generator) -> None:
    truth = rho if ours is pearson else 6 / np.pi * np.arcsin(rho / 2)  # the value for a bivariate normal distribution
    inside = 0
    for _ in range(400):
        gold, noise = rng.normal(size=(2, 150))
        system = rho * gold + np.sqrt(1 - rho**2) * noise
        low, high = bootstrap.interval(ours(resample(rng, 150, 300), system[None], gold)[:, 0], 0.9)
        inside += low <= truth <= high
    assert 0.86 < inside / 400 < 0.94  # the standard deviation of this share is 0.015


@pytest.mark.parametrize(("value", "p", "level", "expected"), [
    (1.0, 0.01, 0.95, "holds"), (-1.0, 0.01, 0.95, "does not hold"), (0.0, 0.01, 0.95, "does not hold"),
    (1.0, 0.01, 0.999, "not separable"), (-1.0, 0.2, 0.95, "not separable"),
    (1.0, 0.5, 0.5, "not separable"),  # p must be strictly below 1 - level
])  # fmt: skip
def test_verdicts(value: float, p: float, level: float, expected: str) -> None:
    assert bootstrap.verdict(value, p, level) == expected
