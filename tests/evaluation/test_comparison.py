"""Systems side by side: intervals, differences and marks against numpy and scipy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from bgt_core.errors import UsageError
from bgt_core.evaluation.bootstrap import ItemSample, pearson, wilson
from bgt_core.evaluation.comparison import Statistic, check_bootstrap, compare, differences, marked
from bgt_core.evaluation.comparison import estimates as estimates_of
from bgt_core.evaluation.result import Difference
from bgt_core.tables import Estimate


class Key(NamedTuple):
    score: str
    pairs: int


def systems(*noises: float, pairs: int = 200, seed: int = 0) -> Statistic:
    """Systems that see gold through noise of these deviations, "s0" and on; they share half of its variance."""
    rng = np.random.default_rng(seed)
    gold, shared = rng.integers(0, 26, pairs) / 5, rng.normal(size=pairs)
    errors = np.stack([(shared + rng.normal(size=pairs)) * noise / np.sqrt(2) for noise in noises])
    return correlation(gold / 5 + errors, gold)


def correlation(rows: np.ndarray, gold: np.ndarray) -> Statistic:
    return Statistic(
        systems=[f"s{row}" for row in range(len(rows))],
        scores=lambda weights: {Key("r", len(gold)): 100 * pearson(weights[0], rows, gold)},
        samples=[ItemSample(len(gold))],
        about="made",
    )


@pytest.mark.parametrize(("resamples", "level", "fits"), [
    (100, 0.5, True), (100, 0.99, True), (99, 0.95, False), (2_000, 0.49, False), (2_000, 1.0, False),
    (2_000, 95.0, False),
])  # fmt: skip
def test_a_hundred_resamples_and_a_level_from_a_half_on_are_enough(resamples: int, level: float, fits: bool) -> None:
    if fits:
        check_bootstrap(resamples, level)
        return
    with pytest.raises(UsageError, match=r"^(resamples|level) [\d.]+ must be"):
        compare(systems(0.3), resamples=resamples, level=level)


def test_an_estimate_has_the_ends_of_its_own_resamples() -> None:
    draws = np.random.default_rng(0).normal([0, 50], 1, (201, 2))
    first, second, absent = estimates_of(np.array([1.0, 2.0, np.nan]), np.c_[draws, draws[:, 0]], 0.9)
    ordered = np.sort(draws, axis=0)
    assert first == Estimate(1.0, pytest.approx(ordered[10, 0]), pytest.approx(ordered[190, 0]))
    assert second == Estimate(2.0, pytest.approx(ordered[10, 1]), pytest.approx(ordered[190, 1]))
    assert absent is None
    with pytest.raises(ValueError, match=r"shorter|longer"):
        estimates_of(np.ones(2), np.ones((9, 3)), 0.9)


def test_an_interval_of_a_correlation_is_about_fishers() -> None:
    ((cell,),) = compare(systems(0.3), resamples=4_000).scores.values()
    z, half = np.arctanh(cell.value / 100), 1.96 / np.sqrt(197)
    assert [cell.low, cell.high] == pytest.approx([100 * np.tanh(z - half), 100 * np.tanh(z + half)], abs=1.5)


def test_every_two_systems_are_compared_in_every_score_and_corrected_together() -> None:
    rng = np.random.default_rng(1)
    values = {"x": np.array([3.0, 1.0, 2.0]), "y": np.array([5.0, 5.5, 9.0])}
    draws = {key: value + rng.normal(0, 1, (300, 3)) for key, value in values.items()}
    compared = differences(Statistic(systems=["a", "b", "c"]), values, draws, 0.9)
    pairs = [(0, 1), (0, 2), (1, 2)]
    assert [(gap.key, gap.first, gap.second) for gap in compared] == [
        (key, "abc"[one], "abc"[two]) for one, two in pairs for key in ("x", "y")
    ]
    expected = []
    for gap, (one, two, key) in zip(compared, [(*pair, key) for pair in pairs for key in ("x", "y")], strict=True):
        apart, drawn = values[key][one] - values[key][two], draws[key][:, one] - draws[key][:, two]
        assert gap.difference == Estimate(apart, *map(pytest.approx, np.quantile(drawn, [0.05, 0.95])))
        expected.append(2 * stats.norm.sf(abs(apart) / drawn.std(ddof=1)))
    assert [gap.p for gap in compared] == pytest.approx(expected)
    ordered = np.sort(expected)
    steps = dict(zip(ordered, np.minimum(1, np.maximum.accumulate(ordered * np.arange(6, 0, -1))), strict=True))
    assert [gap.p_holm for gap in compared] == pytest.approx([steps[p] for p in expected])
    apart = differences(Statistic(systems=["a", "b", "c"], families={"y": "own"}), values, draws, 0.9)
    assert [gap.p_holm for gap in apart if gap.key == "y"] <= [gap.p_holm for gap in compared if gap.key == "y"]
    chosen = differences(Statistic(systems=["a", "b", "c"], compared=["c", "a"]), values, draws, 0.9)
    assert [(gap.first, gap.second) for gap in chosen] == [("c", "a")] * 2
    assert differences(Statistic(systems=["a"]), {"x": np.ones(1)}, {"x": np.ones((9, 1))}, 0.9) == []


def test_holm_corrects_each_family_by_itself() -> None:
    made = {key: np.array([1.0, 0.0]) for key in "xyz"}
    draws = {key: value + np.random.default_rng(7).normal(0, 0.5, (200, 2)) for key, value in made.items()}
    statistic = Statistic(systems=["a", "b"], families={"z": "own"})
    x, y, z = differences(statistic, made, draws, 0.95)
    assert x.p == y.p == z.p
    assert (x.p_holm, y.p_holm, z.p_holm) == pytest.approx((2 * x.p, 2 * x.p, x.p))


def test_differences_are_paired() -> None:
    result = compare(systems(0.30, 0.34, 0.6), resamples=1_000)
    for gap in result.differences:
        cells = dict(zip(result.systems, result.scores[gap.key], strict=True))
        one, two = cells[gap.first], cells[gap.second]
        assert gap.difference.value == pytest.approx(one.value - two.value)
        assert gap.difference.high - gap.difference.low < np.hypot(one.high - one.low, two.high - two.low)
        turned = gap.seen_from(gap.second)
        assert (turned.first, turned.second, turned.difference[:3]) == (
            gap.second, gap.first, (-gap.difference.value, -gap.difference.high, -gap.difference.low)
        )  # fmt: skip
        assert gap.seen_from(gap.first) == gap


def test_paired_errors_agree_with_williams_test() -> None:
    """Williams (1959): a t test of two correlations with one variable, for normal data; in the mean over samples."""
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(20):
        gold, shared, *own = rng.normal(size=(4, 400))
        one, two = gold + shared + 0.5 * own[0], gold + 1.15 * shared + 0.5 * own[1]
        (gap,) = compare(correlation(np.stack([one, two]), gold), resamples=500).differences
        r = np.corrcoef([gold, one, two])
        mean, spread = (r[0, 1] + r[0, 2]) / 2, 2 * 399 / 397 * np.linalg.det(r)
        t = (r[0, 1] - r[0, 2]) * np.sqrt(399 * (1 + r[1, 2]) / (spread + mean**2 * (1 - r[1, 2]) ** 3))
        ratios.append(stats.norm.isf(gap.p / 2) / abs(t))
    assert np.mean(ratios) == pytest.approx(1, abs=0.05)


HITS = np.array([[1.0] * 6 + [0, 0.5] + [1] * 4, [0.0] * 3 + [0.5] * 3 + [1, 1] + [1] * 4])


def test_shares_have_wilsons_intervals_and_sign_tests() -> None:
    """Of the eight items in which they differ the first is ahead in six, by a half or by a whole."""
    other = Key("other", 4)
    result = compare(Statistic(systems=["a", "b"], hits={Key("all", 12): HITS, other: HITS[:, 8:]}), resamples=200)
    for key, rows in ((Key("all", 12), HITS), (other, HITS[:, 8:])):
        for cell, row in zip(result.scores[key], rows, strict=True):
            low, high = wilson(row.sum(), len(row))
            assert cell[:3] == pytest.approx((100 * row.mean(), 100 * low, 100 * high))
    first, second = result.differences
    assert first.difference.value == pytest.approx(100 * (HITS[0] - HITS[1]).mean())
    assert first.difference.low < first.difference.value < first.difference.high
    assert first.p == pytest.approx(stats.binomtest(6, 8).pvalue) and first.p_holm == pytest.approx(2 * first.p)
    assert (second.difference[:3], second.p, second.p_holm) == ((0, 0, 0), 1, 1)  # all equal: nothing to test
    wide = compare(Statistic(systems=["a"], hits={Key("all", 12): HITS[:1]}), level=0.99).scores[Key("all", 12)][0]
    assert wide[1:3] == pytest.approx(100 * np.array(wilson(HITS[0].sum(), 12, 0.99)))


def test_a_system_without_a_score_is_left_out_of_it() -> None:
    hits = {Key("h", 2): np.array([[1.0, 1], [np.nan, np.nan], [0, 1]])}
    statistic = Statistic(
        systems=["a", "b", "c"],
        scores=lambda weights: {Key("x", 9): np.tile([1.0, np.nan, 2.0], (len(weights[0]), 1))},
        samples=[ItemSample(9)],
        hits=hits,
    )
    result = compare(statistic, resamples=100)
    assert [[cell and cell.value for cell in cells] for cells in result.scores.values()] == [
        [1, None, 2],
        [100, None, 50],
    ]
    assert {(gap.first, gap.second) for gap in result.differences} == {("a", "c")}
    assert [record["system"] for record in result.records()] == ["a", "c"] * 2


def test_scores_that_no_system_has_are_not_compared_and_the_next_ones_are() -> None:
    def scores(weights: Sequence[np.ndarray]) -> dict[Key, np.ndarray]:
        means = weights[0] @ np.arange(18.0).reshape(9, 2)
        return {Key("none", 9): np.full_like(means, np.nan), Key("mean", 9): means}

    result = compare(Statistic(systems=["a", "b"], scores=scores, samples=[ItemSample(9)]), resamples=100)
    assert result.scores[Key("none", 9)] == [None, None]
    assert [gap.key.score for gap in result.differences] == ["mean"]


def test_hits_of_each_size_have_their_own_resamples_beside_other_scores() -> None:
    statistic = replace(systems(0.2, 0.4), hits={Key("all", 12): HITS, Key("few", 4): HITS[:, :4]})
    gaps = {gap.key.score: gap.difference for gap in compare(statistic, resamples=2_000).differences}
    for name, rows in (("all", HITS), ("few", HITS[:, :4])):
        gain = rows[0] - rows[1]
        spread = 100 * 1.96 * gain.std() / np.sqrt(len(gain))
        assert gaps[name].high - gaps[name].low == pytest.approx(2 * spread, rel=0.25)


@pytest.mark.parametrize(("hits", "samples", "systems_of", "about"), [
    (False, True, (0.2, 0.4), "made; 90% intervals from 150 resamples; differences: paired, p with Holm's correction"),
    (False, True, (0.2,), "made; 90% intervals from 150 resamples"),
    (True, True, (0.2, 0.4), "made; 90% intervals Wilson's and from 150 resamples; differences: paired, p with Holm's "
     "correction"),
    (True, False, (0.2, 0.4), "made; 90% intervals Wilson's; differences: paired, p with Holm's correction"),
])  # fmt: skip
def test_a_result_says_how_it_was_made(hits: bool, samples: bool, systems_of: tuple[float, ...], about: str) -> None:
    statistic = replace(
        systems(*systems_of),
        hits={Key("all", 12): HITS} if hits else {},
        numbers={Key("units", 0): [3.0] * len(systems_of)},
        write_items=lambda path: None,
    )
    if not samples:
        statistic = replace(statistic, samples=[], scores=lambda weights: {})
    result = compare(statistic, resamples=150, level=0.9, seed=3)
    assert result.about == about
    assert (result.level, result.resamples, result.seed) == (0.9, 150, 3)
    assert result.write_items is statistic.write_items
    assert result.scores[Key("units", 0)] == [3.0] * len(systems_of)


def test_two_thousand_resamples_of_seed_0_unless_told() -> None:
    statistic = systems(0.3)
    assert compare(statistic).scores == compare(statistic, resamples=2_000, level=0.95, seed=0).scores


def gap(key: str, first: str, second: str, p_holm: float) -> Difference:
    return Difference(key, first, second, Estimate(0, 0, 0), 0.0, p_holm)


@pytest.mark.parametrize(
    ("lower", "p_holm", "marks"),
    [
        ((), 0.2, ["", "", "best"]),
        ((), 0.25, ["", "tied", "tied"]),  # b and c at just the level
        (("x",), 0.2, ["best", "", ""]),
        (("x",), 0.25, ["best", "", ""]),  # what ties is not the best
    ],
)
def test_the_best_is_marked_or_those_it_can_not_be_told_from(
    lower: tuple[str, ...], p_holm: float, marks: list[str]
) -> None:
    table = {"x": [Estimate(value, value, value) for value in (1.0, 2.0, 3.0)]}
    gaps = [gap("x", "a", "b", 0.1), gap("x", "a", "c", 0.01), gap("x", "b", "c", p_holm), gap("y", "a", "c", 0.9)]
    compared = marked(Statistic(systems=["a", "b", "c"], lower_is_better=lower), table, gaps, 0.75)
    assert [cell.mark for cell in compared["x"]] == marks
    assert [cell[:3] for cell in compared["x"]] == [cell[:3] for cell in table["x"]]


def test_each_score_is_marked_by_itself_and_one_system_not_at_all() -> None:
    cell = [Estimate(1.0, 0, 2), Estimate(1.0, 0, 2)]
    two = Statistic(systems=["a", "b"])
    compared = marked(two, {"x": cell, "y": cell}, [gap("x", "a", "b", 1.0), gap("y", "a", "b", 0.0)], 0.95)
    assert [cell.mark for cell in compared["x"]] == ["tied", "tied"]
    assert [cell.mark for cell in compared["y"]] == ["", "best"]  # of equals the last name
    assert marked(Statistic(systems=["a"]), {"x": cell[:1]}, [], 0.95) == {"x": cell[:1]}
    alone = Statistic(systems=["a", "bound"], compared=["a"])
    assert [cell.mark for cell in marked(alone, {"x": cell}, [], 0.95)["x"]] == ["", ""]
    with pytest.raises(ValueError, match=r"shorter|longer"):
        marked(two, {"x": cell[:1]}, [], 0.95)


@pytest.mark.parametrize(("noises", "marks"), [
    ((0.30, 0.31, 2.0), ["tied", "tied", ""]), ((0.1, 2.0), ["best", ""]), ((0.1,), [""]),
])  # fmt: skip
def test_the_best_of_a_bootstrap_is_marked_if_it_is_alone(noises: tuple[float, ...], marks: list[str]) -> None:
    (cells,) = compare(systems(*noises), resamples=300).scores.values()
    assert [cell.mark for cell in cells] == marks


def test_curves_have_bands() -> None:
    curve = np.linspace(0, 1, 5)
    statistic = Statistic(
        systems=["a", "b"],
        scores=lambda weights: {Key("c", 9): weights[0][:, :2, None] + curve},
        samples=[ItemSample(9)],
    )
    result = compare(statistic, resamples=200)
    assert not result.scores and not result.differences
    (own,) = result.curves.values()
    np.testing.assert_allclose(own.value, [1 + curve, 1 + curve])
    assert (own.low <= own.value).all() and (own.value <= own.high).all() and (own.low < own.high).all()
    rows = result.curve_table().rows
    assert len(rows) == 10 and rows[6][:3] == ["c", "b", 0.25]
    assert rows[6][3:] == [own.value[1, 1], own.low[1, 1], own.high[1, 1]]
    assert result.as_dict()["curves"][1]["value"] == own.value[1].tolist()
