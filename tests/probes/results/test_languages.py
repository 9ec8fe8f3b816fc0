"""The paper's claims on language distance: its Table 3, scipy's permutation test, files, and verdicts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr, permutation_test, spearmanr

from bgt_core.errors import BgtError
from bgt_core.evaluation.bootstrap import FAILS, HOLDS, NOT_RUN, NOT_SEPARABLE
from probes.result import Difference, ProbeResult, ProbeScore
from probes.results import languages
from probes.results.languages import (
    CLAIMS,
    FSI_WEEKS,
    PAPER_ORDER,
    STS_TASK,
    TABLE,
    URIEL_SYNTAX,
    LanguageGap,
    by_task,
    gap_trend,
    judge,
    other_language,
    paper_gaps,
    probe_gaps,
    published,
    sts_gap,
)
from probes.results.store import PREDICTIONS, Cell
from probes.tasks import PAPER

STEEP = dict(zip(sorted(FSI_WEEKS, key=FSI_WEEKS.__getitem__), range(len(FSI_WEEKS)), strict=True))


def gaps_of(points: dict[str, float], error: float = 0.0, task: str = "sts") -> dict[str, LanguageGap]:
    return {lang: LanguageGap(lang, task, value, error) for lang, value in points.items()}


def test_the_published_table_is_whole() -> None:
    """Its shape, single cells, and the signs that the paper's text claims."""
    for other, rows in TABLE.items():
        assert len(rows) == 3 and {len(row) for row in rows} == {9 if other in ("fr", "es") else 8}
    assert published("fr", "length", "en").gap == pytest.approx(-7.2)
    assert published("fr", "gender", "fr") == (52.6, 56.5)
    for absent in (("fr", "gender", "en"), ("fr", "subj-num", "fr"), ("ar", "gender", "ar"), ("de", "length", "en")):
        assert published(*absent) is None
    gaps = by_task(paper_gaps())
    assert set(gaps) == {*PAPER, STS_TASK} - {"gender"}
    assert gaps["word-content"]["fr"].points == pytest.approx(77.4 - 65.4)
    assert gaps["sts"]["ja"].points == pytest.approx(71.9 - 60.6)
    for task in ("length", "punct-num", "punct-first"):
        assert all(gap.points < 0 for gap in gaps[task].values())


@pytest.mark.parametrize("distance", [PAPER_ORDER, FSI_WEEKS], ids=["paper", "weeks"])
def test_the_gap_falls_with_distance_as_the_paper_reads_its_table(distance: dict[str, float]) -> None:
    for task in ("sts", "subj-num", "obj-num", "word-content", "length", "punct-num", "punct-first"):
        trend = gap_trend(by_task(paper_gaps())[task], distance)
        assert trend.spearman < -0.4 and trend.pearson < -0.3


def test_values_are_scipys() -> None:
    gap = by_task(paper_gaps())["length"]
    trend = gap_trend(gap, FSI_WEEKS)
    x, y = [FSI_WEEKS[lang] for lang in trend.langs], list(trend.gaps)
    assert trend.langs == ("es", "fr", "tr", "ar", "ja") and y == [gap[lang].points for lang in trend.langs]
    for ours, p, theirs in ((trend.pearson, trend.pearson_p, pearsonr), (trend.spearman, trend.spearman_p, spearmanr)):
        exact = permutation_test(
            (y,),
            lambda order, theirs=theirs: abs(theirs(x, order).statistic),
            permutation_type="pairings",
            alternative="greater",
        )
        assert ours == pytest.approx(theirs(x, y).statistic) and p == pytest.approx(exact.pvalue)


def test_many_languages_are_sampled_alike() -> None:
    rng = np.random.default_rng(0)
    noise = dict(zip(FSI_WEEKS, rng.normal(size=len(FSI_WEEKS)), strict=True))
    trend = gap_trend(gaps_of(noise), FSI_WEEKS)
    assert trend.pearson_p == pytest.approx(pearsonr(list(FSI_WEEKS.values()), list(noise.values())).pvalue, abs=0.02)
    steep = {lang: -weeks / 10 + noise[lang] for lang, weeks in FSI_WEEKS.items()}
    sure, unsure = (gap_trend(gaps_of(steep, error), FSI_WEEKS) for error in (0.0, 5.0))
    assert 0 < sure.pearson_p < 0.001
    assert -1 <= sure.spearman_low < sure.spearman < sure.spearman_high < 0
    assert unsure.spearman_high - unsure.spearman_low > sure.spearman_high - sure.spearman_low


def test_each_draw_of_the_interval_is_scipys_rho(monkeypatch: pytest.MonkeyPatch) -> None:
    """Languages drawn with replacement, and gaps moved by their errors; draws of one value are left out."""
    monkeypatch.setattr(languages, "RESAMPLES", 20)
    x, y, errors = np.array([1.0, 2.0, 2.0, 5.0]), np.array([3.0, 1.0, 4.0, 0.0]), np.array([0.0, 1.0, 3.0, 0.5])
    rng = np.random.default_rng([0, 4])
    rows = rng.integers(4, size=(20, 4))
    moved = y + errors * rng.standard_normal((20, 4))
    drawn = [(x[row], gaps[row]) for row, gaps in zip(rows, moved, strict=True)]
    rho = [spearmanr(a, b).statistic for a, b in drawn if np.ptp(a) and np.ptp(b)]
    assert languages.spearman_interval(x, y, errors) == pytest.approx(tuple(np.quantile(rho, [0.025, 0.975])))


@pytest.mark.parametrize(
    ("points", "distance"),
    [
        ({"fr": 1.0, "es": 2.0, "xx": 3.0}, FSI_WEEKS),  # two have a distance
        ({"fr": 1.0, "es": 1.0, "ar": 1.0}, FSI_WEEKS),
        ({"fr": 1.0, "es": 2.0, "ar": 1.0}, {"fr": 3.0, "es": 3.0, "ar": 3.0}),
    ],
)
def test_a_trend_needs_three_languages_and_different_values(
    points: dict[str, float], distance: dict[str, float]
) -> None:
    assert gap_trend(gaps_of(points), distance) is None


def test_a_claim_is_of_the_mean_over_its_tasks() -> None:
    assert {row.verdict for row in judge([], {"syntax": URIEL_SYNTAX}).values()} == {NOT_RUN}
    trend = judge(paper_gaps(), {"syntax": URIEL_SYNTAX})[CLAIMS[0], "syntax"].trend
    gaps = by_task(paper_gaps())
    means = [sum(gaps[task][lang].points for task in CLAIMS[0].tasks) / 3 for lang in trend.langs]
    assert trend.spearman == pytest.approx(spearmanr([URIEL_SYNTAX[lang] for lang in trend.langs], means).statistic)


@pytest.mark.parametrize(("slope", "expected"), [(-1, HOLDS), (1, FAILS), (0, NOT_SEPARABLE)])
def test_verdicts(slope: int, expected: str) -> None:
    """Thirty-odd languages whose gap falls, rises, or goes up and down with distance."""
    points = {lang: slope * step + (step % 2) for lang, step in STEEP.items()}
    rows = judge(list(gaps_of(points).values()), {"weeks": FSI_WEEKS})
    assert {claim.tasks: row.verdict for (claim, _), row in rows.items()} == {
        claim.tasks: expected if claim.tasks == ("sts",) else NOT_RUN for claim, _ in rows
    }


@pytest.mark.parametrize(
    ("lang", "langs", "other"),
    [
        ("en", ["en", "fr"], "fr"),
        ("fr", ["en", "fr"], "fr"),
        ("en", ["en", "fr", "de"], "en"),
        ("de", ["fr", "de"], "de"),
    ],
)
def test_a_result_is_about_the_language_beside_english(lang: str, langs: list[str], other: str) -> None:
    assert other_language(lang, langs) == other


@pytest.mark.parametrize(("lang", "first", "taken"), [("en", "semantic", True), ("en", "language", True),
                                                      ("fr", "semantic", False)])  # fmt: skip
def test_gaps_of_a_pair_with_english_are_of_english_sentences(lang: str, first: str, taken: bool) -> None:
    second, sign = ("language", 1) if first == "semantic" else ("semantic", -1)
    gap = Difference("length", lang, first, second, -7.0, -7 - 1.96, -7 + 1.96, 0.01)
    result = ProbeResult("length", lang, 5, 0, [ProbeScore("length", lang, first, 9, 9, 2, 0.5, 0, 1, 0)], gap, 0)
    gaps = probe_gaps([Cell("m", result, PREDICTIONS.empty_table(), {"langs": ["en", "fr"]})])
    assert bool(gaps) is taken
    for gap in gaps:
        assert gap == ("fr", "length", sign * -7.0, pytest.approx(1.0, rel=1e-3))


def test_an_sts_file_is_of_an_average_or_one_set(tmp_path: Path) -> None:
    path = tmp_path / "sts.json"
    row = {"dataset": "dev-fr", "first": "a semantic", "second": "a language", "value": 11, "ci_low": 8, "ci_high": 14}

    def gap(*rows: dict) -> float:
        path.write_text(json.dumps({"level": 0.95, "differences": rows}))
        return sts_gap("fr", path).points

    assert gap(row) == 11  # of a model of many languages, in one of them
    assert gap(row, {**row, "dataset": "average", "first": "a language", "second": "a semantic"}) == -11
    for rows in ((), (row, {**row, "dataset": "test-fr"}), ({**row, "second": "other semantic"},)):
        with pytest.raises(BgtError, match="one model with both latents"):
            gap(*rows)
