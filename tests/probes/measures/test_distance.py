"""Language distance: the paper's own Table 3, scipy's permutation test, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr, permutation_test, spearmanr

from bgt_core.errors import BgtError
from probes.measures import distance
from probes.measures.distance import FSI_WEEKS, PAPER_ORDER, trend

LANGS = ("fr", "es", "ar", "tr", "ja")
TABLE_3 = {  # semantic encoder, English language encoder
    "sts": ((72.4, 72.1, 70.8, 72.3, 71.9), (56.8, 55.8, 58.9, 57.8, 60.6)),
    "subjects": ((84.6, 85.7, 81.9, 81.7, 68.0), (75.2, 75.7, 76.2, 77.3, 77.6)),
    "objects": ((80.9, 83.6, 80.8, 80.2, 66.8), (72.0, 73.7, 73.1, 74.4, 76.4)),
    "words": ((77.4, 77.3, 71.9, 75.2, 70.1), (65.4, 63.3, 71.2, 67.1, 70.0)),
    "length": ((73.0, 76.7, 73.3, 72.4, 68.7), (80.2, 80.2, 79.8, 79.7, 80.4)),
    "punctuation marks": ((60.7, 63.1, 61.8, 59.3, 52.9), (65.3, 64.2, 63.4, 67.0, 62.8)),
    "first punctuation": ((87.9, 89.9, 88.5, 86.7, 86.6), (92.2, 92.7, 92.4, 92.5, 92.0)),
}


def table_gaps(task: str) -> dict[str, float]:
    semantic, language = TABLE_3[task]
    return {lang: score - other for lang, score, other in zip(LANGS, semantic, language, strict=True)}


@pytest.mark.parametrize("task", TABLE_3)
@pytest.mark.parametrize("distance", [PAPER_ORDER, FSI_WEEKS], ids=["paper", "weeks"])
def test_the_gap_falls_with_distance_as_the_paper_reads_its_table(task: str, distance: dict[str, float]) -> None:
    result = trend(table_gaps(task), distance)
    assert result.spearman < -0.4
    assert result.pearson < -0.3


def test_values_are_scipys() -> None:
    gap = table_gaps("length")
    result = trend(gap)
    x, y = [FSI_WEEKS[lang] for lang in result.langs], list(result.gaps)
    assert result.langs == ("es", "fr", "tr", "ar", "ja")
    assert y == [gap[lang] for lang in result.langs]
    for ours, p, theirs in (
        (result.pearson, result.pearson_p, pearsonr),
        (result.spearman, result.spearman_p, spearmanr),
    ):
        exact = permutation_test(
            (y,),
            lambda order, theirs=theirs: abs(theirs(x, order).statistic),
            permutation_type="pairings",
            alternative="greater",
        )
        assert ours == pytest.approx(theirs(x, y).statistic)
        assert p == pytest.approx(exact.pvalue)


def test_p_by_hand() -> None:
    """Three languages in order: of the six orders two are as far from 0."""
    result = trend({"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 1, "b": 2, "c": 3})
    assert (result.pearson, result.spearman) == (pytest.approx(1), pytest.approx(1))
    assert result.pearson_p == result.spearman_p == pytest.approx(2 / 6)


def test_the_interval_holds_rho_and_widens_with_the_gaps_errors() -> None:
    rng = np.random.default_rng(1)
    gap = {lang: -weeks / 10 + rng.normal() for lang, weeks in FSI_WEEKS.items()}
    sure = trend(gap)
    unsure = trend(gap, error=dict.fromkeys(gap, 5.0))
    assert -1 <= sure.spearman_low < sure.spearman < sure.spearman_high < 0
    assert unsure.spearman_high - unsure.spearman_low > sure.spearman_high - sure.spearman_low
    assert sure.spearman_high - sure.spearman_low == pytest.approx(
        2 * 1.96 * np.sqrt((1 + sure.spearman**2 / 2) / (len(gap) - 3)) * (1 - sure.spearman**2), rel=0.4
    )  # Bonett and Wright (2000), to the first order


def test_each_draw_of_the_interval_is_scipys_rho(monkeypatch: pytest.MonkeyPatch) -> None:
    """Languages drawn with replacement, and gaps moved by their errors; draws of one value are left out."""
    monkeypatch.setattr(distance, "RESAMPLES", 20)
    x, y, errors = np.array([1.0, 2.0, 2.0, 5.0]), np.array([3.0, 1.0, 4.0, 0.0]), np.array([0.0, 1.0, 3.0, 0.5])
    rng = np.random.default_rng([0, 4])
    rows = rng.integers(4, size=(20, 4))
    moved = y + errors * rng.standard_normal((20, 4))
    drawn = [(x[row], gaps[row]) for row, gaps in zip(rows, moved, strict=True)]
    rho = [spearmanr(a, b).statistic for a, b in drawn if np.ptp(a) and np.ptp(b)]
    expected = np.quantile(rho, [0.025, 0.975])
    assert distance.spearman_interval(x, y, errors) == pytest.approx(tuple(expected))


def test_eight_languages_are_compared_in_all_orders() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((2, 8))
    r, p = distance.correlation(x, y)
    assert r == pytest.approx(pearsonr(x, y).statistic)
    assert p * 40_320 == pytest.approx(round(p * 40_320))
    p = distance.correlation(*rng.standard_normal((2, 9)))[1] * 20_001
    assert p == pytest.approx(round(p), rel=1e-9)


def test_many_languages_are_sampled_alike() -> None:
    rng = np.random.default_rng(0)
    noise = dict(zip(FSI_WEEKS, rng.normal(size=len(FSI_WEEKS)), strict=True))
    result = trend(noise)
    assert result.pearson_p == pytest.approx(pearsonr(list(FSI_WEEKS.values()), list(noise.values())).pvalue, abs=0.02)
    assert result == trend(noise)
    steep = trend({lang: -weeks + noise[lang] for lang, weeks in FSI_WEEKS.items()})
    assert 0 < steep.pearson_p < 0.001


@pytest.mark.parametrize(
    ("gap", "distance", "message"),
    [
        ({"fr": 1.0, "es": 2.0, "xx": 3.0}, FSI_WEEKS, "'xx' has no distance; choose from ar"),
        ({"fr": 1.0, "es": 2.0}, FSI_WEEKS, "2 languages"),
        ({}, FSI_WEEKS, "0 languages"),
        ({"fr": 1.0, "es": float("nan"), "ar": 3.0}, FSI_WEEKS, "gap of 'es'"),
        ({"fr": 1.0, "es": 1.0, "ar": 1.0}, FSI_WEEKS, "Every gap is 1"),
        ({"fr": 1.0, "es": 2.0, "ar": 1.0}, dict.fromkeys(LANGS, 3.0), "Every distance is 3"),
    ],
)
def test_bad_values_are_named(gap: dict[str, float], distance: dict[str, float], message: str) -> None:
    with pytest.raises(BgtError, match=message):
        trend(gap, distance)
