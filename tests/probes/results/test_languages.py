"""The paper's claims about the distance of languages: its table 3, trends compared with scipy, and verdicts."""

import numpy as np
import pytest
from scipy.stats import permutation_test, spearmanr

from bgt_core.evaluation.bootstrap import FAILS, HOLDS, NOT_RUN, NOT_SEPARABLE
from probes.result import Difference, ProbeResult, ProbeScore
from probes.results import languages
from probes.results.languages import (
    CLAIMS,
    DISTANCES,
    PUBLISHED,
    LanguageGap,
    gap_trend,
    judged_table,
    language_table,
    mean_gaps,
    other_language,
    paper_gaps,
    probe_gaps,
)
from probes.results.store import Cell
from probes.tasks import PAPER

WEEKS = DISTANCES["weeks"]


def gaps_of(points: dict[str, float], error: float = 0.0) -> dict[str, LanguageGap]:
    return {lang: LanguageGap(lang, "sts", value, error) for lang, value in points.items()}


def test_the_published_table_is_complete() -> None:
    """The table has the right shape, some known cells, and the signs that the paper's text claims."""
    assert len(PUBLISHED) == 5 * (len(PAPER) - 1) + 2 + 5  # gender in two languages, STS
    assert PUBLISHED["fr", "length", "en"] == (73.0, 80.2) and PUBLISHED["fr", "gender", "fr"] == (52.6, 56.5)
    gaps = {(gap.task, gap.other): gap.points for gap in paper_gaps()}
    assert {task for task, _ in gaps} == {*PAPER, "sts"} - {"gender"}
    assert gaps["word-content", "fr"] == pytest.approx(77.4 - 65.4) and gaps["sts", "ja"] == pytest.approx(71.9 - 60.6)
    assert all(gaps[task, lang] < 0 for task, lang in gaps if task in ("length", "punct-num", "punct-first"))


@pytest.mark.parametrize("distance", ["paper", "weeks"])
def test_the_gap_falls_with_distance_as_the_paper_claims(distance: str) -> None:
    for task in ("sts", "subj-num", "obj-num", "word-content", "length", "punct-num", "punct-first"):
        assert gap_trend(mean_gaps(paper_gaps(), [task]), DISTANCES[distance]).rho.value < -0.4


def test_rho_and_p_are_those_of_scipy() -> None:
    trend = gap_trend(mean_gaps(paper_gaps(), ["length"]), WEEKS)
    x, y = ([column[lang] for lang in trend.langs] for column in (WEEKS, {lang: PUBLISHED[lang, "length", "en"][0]
            - PUBLISHED[lang, "length", "en"][1] for lang in trend.langs}))  # fmt: skip
    assert trend.langs == ("es", "fr", "tr", "ar", "ja")
    exact = permutation_test(
        (y,), lambda order: abs(spearmanr(x, order).statistic), permutation_type="pairings", alternative="greater"
    )
    assert trend.rho.value == pytest.approx(spearmanr(x, y).statistic) and trend.p == pytest.approx(exact.pvalue)


def test_with_many_languages_orders_are_sampled() -> None:
    noise = dict(zip(WEEKS, np.random.default_rng(0).normal(size=len(WEEKS)), strict=True))
    trend = gap_trend(gaps_of(noise), WEEKS)
    assert trend.p == pytest.approx(spearmanr(list(WEEKS.values()), list(noise.values())).pvalue, abs=0.02)
    steep = {lang: -weeks / 10 + noise[lang] for lang, weeks in WEEKS.items()}
    sure, unsure = (gap_trend(gaps_of(steep, error), WEEKS) for error in (0.0, 5.0))
    assert 0 < sure.p < 0.001
    assert -1 <= sure.rho.low < sure.rho.value < sure.rho.high < 0
    assert unsure.rho.high - unsure.rho.low > sure.rho.high - sure.rho.low


def test_each_draw_of_the_interval_is_scipys_rho(monkeypatch: pytest.MonkeyPatch) -> None:
    """Languages are drawn with replacement, and noise is added to the gaps; draws with a single value are left out."""
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
        ({"fr": 1.0, "es": 2.0, "xx": 3.0}, WEEKS),  # two have a distance
        ({"fr": 1.0, "es": 1.0, "ar": 1.0}, WEEKS),
        ({"fr": 1.0, "es": 2.0, "ar": 1.0}, {"fr": 3.0, "es": 3.0, "ar": 3.0}),
    ],
)
def test_a_trend_needs_three_languages_and_different_values(
    points: dict[str, float], distance: dict[str, float]
) -> None:
    assert gap_trend(gaps_of(points), distance) is None


def test_gaps_are_averaged_over_models_and_then_over_tasks() -> None:
    means = mean_gaps(paper_gaps(), CLAIMS[0].tasks)
    third = [PUBLISHED["ja", task, "en"] for task in CLAIMS[0].tasks]
    assert means["ja"].points == pytest.approx(sum(semantic - language for semantic, language in third) / 3)
    twice = [LanguageGap("fr", "sts", 2.0, 3.0), LanguageGap("fr", "sts", 4.0, 4.0)]
    assert mean_gaps(twice, ["sts"]) == {"fr": ("fr", "sts", 3.0, 2.5)} and mean_gaps(twice, ["sts", "length"]) == {}
    assert language_table(twice, {"weeks": WEEKS}).rows == [["fr", "30", 3.0]]


@pytest.mark.parametrize(("slope", "expected"), [(-1, HOLDS), (1, FAILS), (0, NOT_SEPARABLE)])
def test_verdicts(slope: int, expected: str) -> None:
    """More than thirty languages whose gap falls, rises, or goes up and down with distance."""
    steps = dict(zip(sorted(WEEKS, key=WEEKS.__getitem__), range(len(WEEKS)), strict=True))
    points = {lang: slope * step + (step % 2) for lang, step in steps.items()}
    rows = judged_table(list(gaps_of(points).values()), {"weeks": WEEKS}).records()
    assert {row["claim"]: row["ours"] for row in rows} == {
        claim.text: expected if claim.tasks == ("sts",) else NOT_RUN for claim in CLAIMS if not claim.distance
    }
    assert all(row["its languages"] == "es fr tr ar ja" for row in rows)


@pytest.mark.parametrize(
    ("lang", "langs", "other"),
    [("en", "en fr", "fr"), ("fr", "en fr", "fr"), ("en", "en fr de", "en"), ("de", "fr de", "de")],
)
def test_a_result_is_about_the_other_language_of_a_model_with_english(lang: str, langs: str, other: str) -> None:
    assert other_language(lang, langs.split()) == other


@pytest.mark.parametrize(("lang", "first", "taken"), [("en", "semantic", True), ("en", "language", True),
                                                      ("fr", "semantic", False)])  # fmt: skip
def test_a_model_of_english_and_one_language_is_compared_on_english_sentences(
    lang: str, first: str, taken: bool
) -> None:
    second, sign = ("language", 1) if first == "semantic" else ("semantic", -1)
    gap = Difference("length", lang, first, second, -7.0, -7 - 1.96, -7 + 1.96, 0.01)
    result = ProbeResult("length", lang, 5, 0, [ProbeScore("length", lang, first, 9, 9, 2, 0.5, 0, 1, 0)], gap, 0)
    gaps = probe_gaps([Cell("m", result, {"langs": ["en", "fr"]})])
    assert gaps == ([("fr", "length", sign * -7.0, pytest.approx(1.0, rel=1e-3))] if taken else [])
