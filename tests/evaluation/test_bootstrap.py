"""The bootstrap against scipy, closed forms and simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy import stats

from bgt_core.evaluation.bootstrap import (
    ItemSample,
    bootstrap,
    holm,
    interval,
    pearson,
    ranks,
    resample,
    scaled,
    share,
    spearman,
    two_sided_p,
    wilson,
)
from tests.close import assert_close

CORRELATIONS = [(pearson, stats.pearsonr), (spearman, stats.spearmanr)]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_a_resample_draws_as_many_items_each_as_often(rng: np.random.Generator) -> None:
    weights = resample(rng, 40, 3_000)
    assert weights.shape == (3_000, 40)
    assert set(weights.sum(1)) == {40}
    assert weights.mean(0) == pytest.approx(1, abs=0.1)  # sd of a mean: 1 / sqrt(3000), 0.018
    assert weights.var() == pytest.approx(1 - 1 / 40, abs=0.02)  # of a multinomial count


@pytest.mark.parametrize(("ours", "theirs"), CORRELATIONS)
def test_weights_mean_items_written_out(ours: Callable, theirs: Callable, rng: np.random.Generator) -> None:
    gold = rng.integers(0, 6, 50) / 1.0  # ties, as gold scores have
    systems = np.stack([gold + rng.normal(size=50), rng.normal(size=50).round(1) + 7_000, -gold])
    weights = np.concatenate([np.ones((1, 50)), resample(rng, 50, 20)])
    values = ours(weights, systems, gold)  # (21, 3)
    for row, counts in zip(values, weights.astype(int), strict=True):
        places = np.repeat(np.arange(50), counts)
        expected = [theirs(system[places], gold[places]).statistic for system in systems]
        assert_close(row, expected)


def test_ranks_are_those_of_the_items_written_out(rng: np.random.Generator) -> None:
    values = rng.integers(0, 9, 30) / 1.0
    weights = resample(rng, 30, 10)
    for row, counts in zip(ranks(weights, values), weights.astype(int), strict=True):
        places = np.repeat(np.arange(30), counts)
        np.testing.assert_allclose(np.repeat(row, counts), stats.rankdata(values[places]))


@pytest.mark.parametrize("ours", [pearson, spearman])
def test_what_is_constant_correlates_with_nothing(ours: Callable) -> None:
    gold = np.array([0.1, 0.1, 0.1, 5.0])
    weights = np.array([[1.0, 1, 1, 1], [2, 1, 1, 0]])  # the second has one gold score alone
    values = ours(weights, np.stack([np.full(4, 0.1), gold / 3, [-3.0, 1, 2, 10]]), gold)
    assert_close(values[:, :2], [[0, 1], [0, 0]])
    assert values[0, 2] > 0.7 and values[1, 2] == 0  # what varies does not correlate with what is constant


@pytest.mark.parametrize("ours", [pearson, spearman])
def test_two_items_are_in_one_order_or_the_other(ours: Callable) -> None:
    values = ours(np.ones((1, 2)), np.array([[1.0, 2], [7, 3], [4, 4]]), np.array([0.1, 0.3]))
    np.testing.assert_allclose(values, [[1, -1, 0]])


def test_each_row_is_scaled_by_its_own_median_and_spread() -> None:
    rows = scaled(np.array([[1.0, 2, 5], [10, 10.25, 10.5], [-1e6, 1e6, 0], [3, 3, 3]]))
    np.testing.assert_allclose(rows, [[-0.25, 0, 0.75], [-0.5, 0, 0.5], [-0.5, 0.5, 0], [0, 0, 0]])
    np.testing.assert_allclose(scaled(np.array([4.0, 6, 8])), [-0.5, 0, 0.5])


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


@pytest.mark.parametrize(("rho", "ours"), [(0.3, pearson), (0.8, pearson), (0.6, spearman)])
def test_an_interval_holds_the_truth_as_often_as_it_says(rho: float, ours: Callable, rng: np.random.Generator) -> None:
    truth = rho if ours is pearson else 6 / np.pi * np.arcsin(rho / 2)  # of a bivariate normal
    inside = 0
    for _ in range(400):
        gold, noise = rng.normal(size=(2, 150))
        system = rho * gold + np.sqrt(1 - rho**2) * noise
        low, high = interval(ours(resample(rng, 150, 300), system[None], gold)[:, 0], 0.9)
        inside += low <= truth <= high
    assert 0.86 < inside / 400 < 0.94  # sd of the share: 0.015


def test_equal_systems_differ_as_seldom_as_the_level_says_and_better_ones_often(rng: np.random.Generator) -> None:
    wrong = detected = 0
    for _ in range(400):
        gold, shared, *own = rng.normal(size=(5, 150))
        errors = [0.8 * shared + 0.6 * noise for noise in own]  # paired: both err on the same pairs
        systems = np.stack([gold + errors[0], gold + errors[1], gold + 0.6 * errors[2]])
        value = pearson(np.ones((1, 150)), systems, gold)[0]
        draws = pearson(resample(rng, 150, 300), systems, gold)
        wrong += two_sided_p(value[0] - value[1], draws[:, 0] - draws[:, 1]) < 0.05
        detected += two_sided_p(value[2] - value[0], draws[:, 2] - draws[:, 0]) < 0.05
    assert 0.02 < wrong / 400 < 0.085
    assert detected / 400 > 0.95


def test_p_is_that_of_a_normal_with_the_resamples_error(rng: np.random.Generator) -> None:
    draws = rng.normal(0.5, 0.2, (100_000, 1))
    assert two_sided_p(np.array([0.392]), draws)[0] == pytest.approx(0.05, abs=0.001)  # 1.96 x 0.2
    assert two_sided_p(np.array([0.0]), np.zeros((9, 1)))[0] == 1  # a system and itself


def test_p_of_each_column_is_from_its_own_few_resamples(rng: np.random.Generator) -> None:
    draws = rng.normal([0.1, 0.4], [0.1, 0.5], (12, 2))
    difference = np.array([0.15, -0.6])
    expected = [2 * stats.norm.sf(abs(difference[at]) / stats.tstd(draws[:, at])) for at in (0, 1)]
    np.testing.assert_allclose(two_sided_p(difference, draws), expected)


def test_an_interval_is_of_each_column(rng: np.random.Generator) -> None:
    draws = rng.normal([0, 100], 1, (401, 2))
    low, high = interval(draws, 0.9)
    ordered = np.sort(draws, axis=0)
    np.testing.assert_allclose([low, high], [ordered[20], ordered[380]])  # 5 % and 95 % of 400 steps


@pytest.mark.parametrize(("right", "n"), [(8, 10), (0, 7), (7, 7), (412, 1_000)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_wilsons_interval_is_scipys(right: int, n: int, level: float) -> None:
    expected = stats.binomtest(right, n).proportion_ci(level, method="wilson")
    assert_close(wilson(right, n, level), (expected.low, expected.high))


def test_wilsons_interval_is_of_95_percent_and_ends_exactly_where_nothing_or_all_is_right() -> None:
    assert wilson(8, 10) == wilson(8, 10, 0.95)
    for n in range(1, 120):
        assert wilson(0, n)[0] == 0.0 < wilson(1, n + 1)[0]
        assert wilson(n, n)[1] == 1.0 > wilson(n, n + 1)[1]


def test_every_sample_is_drawn_by_its_own_key_and_shares_are_of_the_items_drawn() -> None:
    part, whole = np.array([[1.0, 0, 3], [2, 2, 0]]), np.array([[2.0, 1, 4], [2, 4, 5]])
    values, draws = bootstrap(
        lambda weights: {"first": share(weights[0], part, whole), "other": weights[1][:, :1]},
        [ItemSample(3, (1,)), ItemSample(40)],
        resamples=250,  # in three chunks
        seed=4,
    )
    np.testing.assert_allclose(values["first"], [100 * 4 / 7, 100 * 4 / 11])
    weights = resample(np.random.default_rng([4, 1]), 3, 250)
    expected = [
        [100 * (row * one).sum() / (row * of).sum() for one, of in zip(part, whole, strict=True)] for row in weights
    ]
    np.testing.assert_allclose(draws["first"], expected)
    assert values["other"] == 1 and (draws["other"] == resample(np.random.default_rng(4), 40, 250)[:, :1]).all()


def test_how_many_resamples_are_made_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(weights: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        sizes.append(len(weights[0]))
        return {"all": weights[0]}

    sizes: list[int] = []
    whole = bootstrap(drawn, [ItemSample(60)], resamples=150, seed=0)[1]["all"]
    monkeypatch.setattr("bgt_core.evaluation.bootstrap.MAX_WEIGHTS", 60 * 7)
    assert (bootstrap(drawn, [ItemSample(60)], resamples=150, seed=0)[1]["all"] == whole).all()
    assert sizes[:3] == [100, 50, 1] and max(sizes[3:]) == 7
    monkeypatch.setattr("bgt_core.evaluation.bootstrap.MAX_WEIGHTS", 1)
    assert (bootstrap(drawn, [ItemSample(60)], resamples=5, seed=0)[1]["all"] == whole[:5]).all()


def test_holm_by_hand() -> None:
    # sorted 0.01, 0.02, 0.03, 0.4 times 4, 3, 2, 1: 0.04, 0.06, 0.06, 0.4
    np.testing.assert_allclose(holm(np.array([0.03, 0.4, 0.01, 0.02])), [0.06, 0.4, 0.04, 0.06])
    np.testing.assert_allclose(holm(np.array([0.9, 0.8])), [1, 1])
    assert holm(np.array([])).shape == (0,)


def test_holm_keeps_the_level_over_a_table(rng: np.random.Generator) -> None:
    wrong = [(holm(rng.random(20)) < 0.05).any() for _ in range(2_000)]
    assert 0.035 < np.mean(wrong) < 0.065  # 0.049 for 20 independent true hypotheses
