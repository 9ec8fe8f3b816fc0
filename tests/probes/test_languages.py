"""Test claims about the distance of languages: table 3 of the BGT paper, trends as SciPy computes them, verdicts."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from scipy.stats import permutation_test, spearmanr

from bgt_core.evaluation.bootstrap import FAILS, HOLDS, NOT_RUN, NOT_SEPARABLE
from probes import languages
from probes.languages import DISTANCES, PUBLISHED, gap_trend, judged_table, mean_gaps, paper_gaps, probe_gaps
from probes.results.store import Cell, Difference, ProbeResult
from probes.tasks import PAPER

WEEKS = DISTANCES["weeks"]


def gaps_of(points: Mapping[str, float], error: float = 0.0) -> pd.DataFrame:
    return pd.DataFrame({"other": list(points), "task": "sts", "points": list(points.values()), "error": error})


def test_the_published_table_is_complete_and_its_gaps_fall_with_distance() -> None:
    """The paper's table has the right shape, some known values, and the signs and trends that the paper states."""
    assert len(PUBLISHED) == 5 * (len(PAPER) - 1) + 2 + 5  # also 2 scores for gender, and 5 for STS
    assert PUBLISHED["fr", "length", "en"] == (73.0, 80.2) and PUBLISHED["fr", "gender", "fr"] == (52.6, 56.5)
    gaps = {(row.task, row.other): row.points for row in paper_gaps().itertuples()}
    assert {task for task, _ in gaps} == {*PAPER, "sts"} - {"gender"}
    assert gaps["word-content", "fr"] == pytest.approx(77.4 - 65.4) and gaps["sts", "ja"] == pytest.approx(71.9 - 60.6)
    assert all(gaps[task, lang] < 0 for task, lang in gaps if task in ("length", "punct-num", "punct-first"))
    for task in ("sts", "subj-num", "obj-num", "word-content", "length", "punct-num", "punct-first"):
        for distance in ("paper", "weeks"):
            assert gap_trend(mean_gaps(paper_gaps(), [task]), DISTANCES[distance])[1].value < -0.4


def test_rho_and_p_are_those_of_scipy() -> None:
    langs, rho, p = gap_trend(mean_gaps(paper_gaps(), ["length"]), WEEKS)
    assert langs == ["es", "fr", "tr", "ar", "ja"]
    x, y = [WEEKS[lang] for lang in langs], [np.subtract(*PUBLISHED[lang, "length", "en"]) for lang in langs]
    exact = permutation_test(
        (y,), lambda order: abs(spearmanr(x, order).statistic), permutation_type="pairings", alternative="greater"
    )
    assert rho.value == pytest.approx(spearmanr(x, y).statistic) and p == pytest.approx(exact.pvalue)


def test_with_many_languages_orders_are_sampled() -> None:
    noise = dict(zip(WEEKS, np.random.default_rng(0).normal(size=len(WEEKS)), strict=True))
    _, _, p = gap_trend(mean_gaps(gaps_of(noise), ["sts"]), WEEKS)
    assert p == pytest.approx(spearmanr(list(WEEKS.values()), list(noise.values())).pvalue, abs=0.02)
    steep = {lang: -weeks / 10 + noise[lang] for lang, weeks in WEEKS.items()}
    sure, unsure = (gap_trend(mean_gaps(gaps_of(steep, error), ["sts"]), WEEKS) for error in (0.0, 5.0))
    assert 0 < sure[2] < 0.001
    assert -1 <= sure[1].low < sure[1].value < sure[1].high < 0
    assert unsure[1].high - unsure[1].low > sure[1].high - sure[1].low


def test_each_draw_of_the_interval_is_scipys_rho(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each resample of the languages, with noise added, gives SciPy's rho. Resamples with equal values are left out."""
    monkeypatch.setattr(languages, "RESAMPLES", 20)
    x, y, errors = np.array([1.0, 2.0, 2.0, 5.0]), np.array([3.0, 1.0, 4.0, 0.0]), np.array([0.0, 1.0, 3.0, 0.5])
    rng = np.random.default_rng([0, 4])
    rows = rng.integers(4, size=(20, 4))
    moved = y + errors * rng.standard_normal((20, 4))
    drawn = [(x[row], gaps[row]) for row, gaps in zip(rows, moved, strict=True)]
    rho = [spearmanr(a, b).statistic for a, b in drawn if np.ptp(a) and np.ptp(b)]
    assert languages.spearman_interval(x, y, errors) == pytest.approx(tuple(np.quantile(rho, [0.025, 0.975])))


def test_a_trend_needs_three_languages_and_different_values() -> None:
    for points, distance in (
        ({"fr": 1.0, "es": 2.0, "xx": 3.0}, WEEKS),  # "xx" has no known distance to English
        ({"fr": 1.0, "es": 1.0, "ar": 1.0}, WEEKS),
        ({"fr": 1.0, "es": 2.0, "ar": 1.0}, {"fr": 3.0, "es": 3.0, "ar": 3.0}),
    ):
        assert gap_trend(mean_gaps(gaps_of(points), ["sts"]), distance) is None


def test_gaps_are_averaged_over_models_and_then_over_tasks() -> None:
    tasks = ["word-content", "subj-num", "obj-num"]
    expected = np.mean([np.subtract(*PUBLISHED["ja", task, "en"]) for task in tasks])
    assert mean_gaps(paper_gaps(), tasks).loc["ja", "points"] == pytest.approx(expected)
    twice = pd.DataFrame({"other": "fr", "task": "sts", "points": [2.0, 4.0], "error": [3.0, 4.0]})
    assert mean_gaps(twice, ["sts"]).to_dict("index") == {"fr": {"points": 3.0, "error": 2.5}}
    assert mean_gaps(twice, ["sts", "length"]).empty
    assert languages.language_table(twice, {"weeks": WEEKS}).rows == [["fr", "30", 3.0]]


@pytest.mark.parametrize(("slope", "expected"), [(-1, HOLDS), (1, FAILS), (0, NOT_SEPARABLE)])
def test_verdicts(slope: int, expected: str) -> None:
    """The claim holds if the latents' differences fall with distance, fails if they rise, and else stays open."""
    points = {lang: slope * step + (step % 2) for step, lang in enumerate(sorted(WEEKS, key=WEEKS.__getitem__))}
    rows = judged_table(gaps_of(points), {"weeks": WEEKS}).records()
    assert [row["ours"] for row in rows] == [NOT_RUN, NOT_RUN, expected]
    assert all(row["its languages"] == "es fr tr ar ja" for row in rows)


def test_a_result_is_about_the_other_language_of_a_model_with_english() -> None:
    for lang, langs, other in (
        ("en", "en fr", "fr"),
        ("fr", "en fr", "fr"),
        ("en", "en fr de", "en"),
        ("de", "fr de", "de"),
    ):
        assert languages.other_language(lang, langs.split()) == other


def test_a_model_of_english_and_one_language_is_compared_on_english_sentences() -> None:
    for lang, first, second, points in (
        ("en", "semantic", "language", [-7.0]),
        ("en", "language", "semantic", [7.0]),
        ("fr", "semantic", "language", []),
    ):
        gap = Difference("length", lang, first, second, -7.0, -7 - 1.96, -7 + 1.96, 0.01)
        result = ProbeResult("length", lang, 5, 0, [], gap, 0)
        gaps = probe_gaps([Cell("m", result, {"langs": ["en", "fr"]})]).to_numpy().tolist()
        assert gaps == [["fr", "length", value, pytest.approx(1.0, rel=1e-3)] for value in points]
