"""Systems side by side: differences against numpy and scipy, and marks by hand."""

from __future__ import annotations

import numpy as np
import pytest
from bgt_core.evaluation.comparison import PairwiseDifference, check_bootstrap, differences, estimates, marked
from scipy.stats import norm

from bgt_core.errors import UsageError
from bgt_core.tables import Estimate


@pytest.mark.parametrize(("resamples", "level", "fits"), [
    (100, 0.5, True), (100, 0.99, True), (99, 0.95, False), (2_000, 0.49, False), (2_000, 1.0, False),
])  # fmt: skip
def test_a_hundred_resamples_and_a_level_from_a_half_on_are_enough(resamples: int, level: float, fits: bool) -> None:
    if fits:
        check_bootstrap(resamples, level)
        return
    with pytest.raises(UsageError, match=rf"`resamples` {resamples}, `level` {level}: expected 100 or more"):
        check_bootstrap(resamples, level)


def test_an_estimate_has_the_ends_of_its_own_resamples() -> None:
    draws = np.random.default_rng(0).normal([0, 50], 1, (201, 2))
    first, second = estimates(np.array([1.0, 2.0]), draws, 0.9)
    ordered = np.sort(draws, axis=0)
    assert first == Estimate(1.0, pytest.approx(ordered[10, 0]), pytest.approx(ordered[190, 0]))
    assert second == Estimate(2.0, pytest.approx(ordered[10, 1]), pytest.approx(ordered[190, 1]))


def test_every_two_systems_are_compared_in_every_score_and_corrected_together() -> None:
    rng = np.random.default_rng(1)
    values = {"x": np.array([3.0, 1.0, 2.0]), "y": np.array([5.0, 5.5, 9.0])}
    draws = {key: value + rng.normal(0, 1, (300, 3)) for key, value in values.items()}
    compared = differences(["a", "b", "c"], values, draws, 0.9)
    pairs = [(0, 1), (0, 2), (1, 2)]
    assert [(gap.key, gap.first, gap.second) for gap in compared] == [
        (key, "abc"[one], "abc"[two]) for one, two in pairs for key in ("x", "y")
    ]
    expected = []
    for gap, (one, two, key) in zip(compared, [(*pair, key) for pair in pairs for key in ("x", "y")], strict=True):
        apart, drawn = values[key][one] - values[key][two], draws[key][:, one] - draws[key][:, two]
        assert gap.difference == Estimate(apart, *map(pytest.approx, np.quantile(drawn, [0.05, 0.95])))
        expected.append(2 * norm.sf(abs(apart) / drawn.std(ddof=1)))
    assert [gap.p for gap in compared] == pytest.approx(expected)
    ordered = np.sort(expected)
    steps = dict(zip(ordered, np.minimum(1, np.maximum.accumulate(ordered * np.arange(6, 0, -1))), strict=True))
    assert [gap.p_holm for gap in compared] == pytest.approx([steps[p] for p in expected])
    assert differences(["a"], {"x": np.ones(1)}, {"x": np.ones((9, 1))}, 0.9) == []


def gap(key: str, first: str, second: str, p_holm: float) -> PairwiseDifference[str]:
    return PairwiseDifference(key, first, second, Estimate(0, 0, 0), 0.0, p_holm)


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
    compared = marked(["a", "b", "c"], table, gaps, 0.75, lower)
    assert [cell.mark for cell in compared["x"]] == marks
    assert [cell[:3] for cell in compared["x"]] == [cell[:3] for cell in table["x"]]


def test_each_score_is_marked_by_itself_and_one_system_not_at_all() -> None:
    cell = [Estimate(1.0, 0, 2), Estimate(1.0, 0, 2)]
    compared = marked(["a", "b"], {"x": cell, "y": cell}, [gap("x", "a", "b", 1.0), gap("y", "a", "b", 0.0)], 0.95)
    assert [cell.mark for cell in compared["x"]] == ["tied", "tied"]
    assert [cell.mark for cell in compared["y"]] == ["", "best"]  # of equals the last name
    assert marked(["a"], {"x": cell[:1]}, [], 0.95) == {"x": cell[:1]}


def test_scores_of_other_systems_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        estimates(np.ones(2), np.ones((9, 3)), 0.9)
    with pytest.raises(ValueError, match=r"shorter|longer"):
        marked(["a", "b"], {"x": [Estimate(1.0, 0, 2)]}, [], 0.95)
