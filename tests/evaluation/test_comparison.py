"""Intervals, differences and the marks "best" and "tied" agree with NumPy and SciPy; tables and JSON show them."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from bgt_core.errors import UsageError
from bgt_core.evaluation.bootstrap import ItemSample, pearson, wilson
from bgt_core.evaluation.comparison import Result, Statistic, check_bootstrap, compare, differences
from bgt_core.tables import Estimate


class Key(NamedTuple):
    score: str
    pairs: int


def systems(*noises: float, pairs: int = 200, seed: int = 0) -> Statistic:
    """Make systems with scores gold + noise of these standard deviations; half of the noise variance is shared."""
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
def test_resamples_and_level_have_bounds(resamples: int, level: float, fits: bool) -> None:
    if fits:
        check_bootstrap(resamples, level)
        return
    with pytest.raises(UsageError, match=r"^(resamples|level) [\d.]+ must be"):
        compare(systems(0.3), resamples=resamples, level=level)


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
    apart = differences(Statistic(systems=["a", "b"], families={"y": "own"}), values, draws, 0.9)
    assert [gap.p_holm for gap in apart] == [gap.p for gap in apart]  # one difference each: nothing to correct
    chosen = differences(Statistic(systems=["a", "b", "c"], compared=["c", "a"]), values, draws, 0.9)
    assert [(gap.first, gap.second) for gap in chosen] == [("c", "a")] * 2
    assert differences(Statistic(systems=["a"]), {"x": np.ones(1)}, {"x": np.ones((9, 1))}, 0.9) == []


def test_differences_are_paired() -> None:
    result = compare(systems(0.30, 0.34, 0.6), resamples=1_000)
    for gap in result.differences:
        cells = dict(zip(result.systems, result.scores[gap.key], strict=True))
        one, two = cells[gap.first], cells[gap.second]
        assert gap.difference.value == pytest.approx(one.value - two.value)
        assert gap.difference.high - gap.difference.low < np.hypot(one.high - one.low, two.high - two.low)
        turned = gap.seen_from(gap.second)
        assert (turned.first, turned.second, turned.difference.high) == (gap.second, gap.first, -gap.difference.low)
        assert gap.seen_from(gap.first) == gap == turned.seen_from(gap.first)


def test_paired_errors_agree_with_williams_test() -> None:
    """Williams' t (1959) tests whether two variables correlate equally with a third. On average, our z equals it."""
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
    """The systems differ on eight items; the first system is right on six of them."""
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
    assert (second.difference[:3], second.p, second.p_holm) == ((0, 0, 0), 1, 1)  # the systems are equal on these items
    wide = compare(Statistic(systems=["a"], hits={Key("all", 12): HITS[:1]}), level=0.99).scores[Key("all", 12)][0]
    assert wide[1:3] == pytest.approx(100 * np.array(wilson(HITS[0].sum(), 12, 0.99)))


def test_a_system_without_a_score_has_no_value_and_no_difference() -> None:
    hits = {Key("h", 2): np.array([[1.0, 1], [np.nan, np.nan], [0, 1]])}
    statistic = Statistic(
        systems=["a", "b", "c"],
        scores=lambda weights: {Key("x", 9): np.tile([1.0, np.nan, 2.0], (len(weights[0]), 1))},
        samples=[ItemSample(9)],
        hits=hits,
    )
    result = compare(statistic, resamples=100)
    values = [[cell and cell.value for cell in cells] for cells in result.scores.values()]
    assert values == [[1, None, 2], [100, None, 50]]
    assert {(gap.first, gap.second) for gap in result.differences} == {("a", "c")}
    assert [record["system"] for record in result.records()] == ["a", "c"] * 2


@pytest.mark.parametrize(("noises", "marks"), [
    ((0.30, 0.31, 2.0), ["tied", "tied", ""]), ((0.1, 2.0), ["best", ""]), ((0.1,), [""]),
])  # fmt: skip
def test_the_best_system_is_marked_best_or_tied(noises: tuple[float, ...], marks: list[str]) -> None:
    (cells,) = compare(systems(*noises), resamples=300).scores.values()
    assert [cell.mark for cell in cells] == marks


@pytest.fixture
def result() -> Result:
    """Compare two systems whose scores are the same in every resample."""
    values = {Key("x", 9): [1.0, 2.0], Key("y", 9): [0.5, np.nan]}
    statistic = Statistic(
        systems=["a", "b"],
        scores=lambda weights: {key: np.tile(value, (len(weights[0]), 1)) for key, value in values.items()},
        samples=[ItemSample(9)],
        about="made",
        warnings=["odd"],
        numbers={Key("limit", 9): [0.12345, None]},
    )
    return compare(statistic, resamples=100, level=0.9, seed=3)


def test_a_result_has_its_settings_and_describes_them(result: Result, tmp_path: Path) -> None:
    assert (result.level, result.resamples, result.seed) == (0.9, 100, 3)
    assert result.about == "made; 90% intervals from 100 resamples; differences: paired, p with Holm's correction"
    hits = {Key("h", 2): np.ones((1, 2))}
    one = compare(Statistic(systems=["a"], hits=hits), resamples=100)
    assert one.about == "; 95% intervals Wilson's"
    one.save(tmp_path / "one.md")  # it has no table of differences


def test_the_columns_of_a_table_are_systems_or_the_values_of_a_field(result: Result) -> None:
    table = result.table()
    assert table.columns == ["score", "pairs", "a", "b"]
    assert table.lines() == [
        ["x", "9", "1.0 [1.0, 1.0] =", "2.0 [2.0, 2.0] ="], ["y", "9", "0.5 [0.5, 0.5]", ""],
        ["limit", "9", "0.1235", ""],
    ]  # fmt: skip
    turned = result.table("score")
    assert turned.columns == ["system", "x", "y", "limit"]
    assert turned.lines() == [["a", "1.0 [1.0, 1.0] =", "0.5 [0.5, 0.5]", "0.1235"], ["b", "2.0 [2.0, 2.0] =", "", ""]]
    gaps = result.difference_table()
    assert gaps.columns == ["score", "difference", "points", "p", "p (Holm)"]
    assert gaps.lines() == [["x", "a - b", "-1.0 [-1.0, -1.0]", "1", "1"]]


def test_records_and_json_have_every_number(result: Result) -> None:
    own = {"value": 1.0, "ci_low": 1.0, "ci_high": 1.0, "marked": "tied"}
    assert result.records()[0] == {"score": "x", "pairs": 9, "system": "a", **own}
    assert result.records()[-1] == {"score": "limit", "pairs": 9, "system": "a", "value": 0.12345}
    document = json.loads(json.dumps(result.as_dict()))
    assert (document["schema"], document["warnings"]) == ("bgt-evaluate/2", ["odd"])
    assert document["scores"] == result.records()
    assert document["differences"] == [
        {"score": "x", "pairs": 9, "first": "a", "second": "b", "value": -1.0, "ci_low": -1.0, "ci_high": -1.0,
         "marked": "", "p": 1.0, "p_holm": 1.0}
    ]  # fmt: skip


def test_one_value_is_found_by_its_name(result: Result) -> None:
    assert (result.value(("x",), "b"), result.value(("limit", 9), "a")) == (2.0, 0.12345)
    assert np.isnan(result.value(("y",), "b"))
    for key, system in ((("x",), None), ((), "a"), (("z",), "a"), (("x",), "c")):
        with pytest.raises(UsageError, match="name exactly one score"):
            result.value(key, system)
