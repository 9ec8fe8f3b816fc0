"""Sets of pairs, and every aggregation of their scores against scipy."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from bgt_core.errors import BgtError
from bgt_core.evaluation.sts import score as scoring
from bgt_core.evaluation.sts.score import AGGREGATES, ScoreKey, StsScores, StsSet, explain


def dataset(gold: list[float], year: str = "2012", name: str = "A") -> StsSet:
    return StsSet(year, name, np.array(gold), ["a"] * len(gold), ["b"] * len(gold))


def random_scores() -> StsScores:
    """Three years, uneven sets, tied gold, and a benchmark that is no year."""
    rng = np.random.default_rng(0)
    sets, cosines = [], []
    for year, name, pairs in [
        ("2012", "A", 30),
        ("2012", "B", 90),
        ("2013", "SMT", 50),
        ("2014", "A", 7),
        ("2014", "B", 8),
        ("2014", "C", 200),
        ("stsb", "dev", 60),
    ]:
        gold = rng.integers(0, 26, pairs) / 5
        sets.append(StsSet(year, name, gold, ["a"] * pairs, ["b"] * pairs))
        cosines.append((gold / 5 + rng.normal(0, 0.5, pairs)).round(2))
    return StsScores(sets, cosines)


def table_of(scores: StsScores, aggregates: Collection[str]) -> dict[ScoreKey, float]:
    ones = [np.ones((1, len(data.gold))) for data in scores.sets]
    table = scoring.scores(scores.sets, [each[None] for each in scores.cosines], ones, aggregates)
    return {key: float(value[0, 0]) for key, value in table.items()}


def test_every_aggregation_is_what_scipy_makes_of_the_pairs() -> None:
    scores = random_scores()
    pairs = list(zip(scores.sets, scores.cosines, strict=True))
    expected: dict[ScoreKey, float] = {}
    over = {"mean Pearson": [], "weighted Pearson": [], "concatenated Spearman": []}
    for data, cosine in pairs:
        size = len(cosine)
        expected[ScoreKey(data.year, data.name, "Pearson", size)] = 100 * pearsonr(cosine, data.gold).statistic
        expected[ScoreKey(data.year, data.name, "Spearman", size)] = 100 * spearmanr(cosine, data.gold).statistic
    for year in ("2012", "2013", "2014"):
        members = [(data, cosine) for data, cosine in pairs if data.year == year]
        each = [pearsonr(cosine, data.gold).statistic for data, cosine in members]
        sizes = [len(cosine) for _, cosine in members]
        joined = np.concatenate([cosine for _, cosine in members]), np.concatenate([data.gold for data, _ in members])
        over["mean Pearson"].append(100 * np.mean(each))
        over["weighted Pearson"].append(100 * np.dot(each, sizes) / sum(sizes))
        over["concatenated Spearman"].append(100 * spearmanr(*joined).statistic)
        for name, years in over.items():
            expected[ScoreKey(year, "all", name, sum(sizes))] = years[-1]
    for name, years in over.items():
        expected[ScoreKey("2012-2014", "average", name, 385)] = np.mean(years)
    table = table_of(scores, AGGREGATES)
    assert table.keys() == expected.keys()
    for row, score in table.items():
        assert score == pytest.approx(expected[row], rel=1e-9), row


def test_what_was_scored_is_said() -> None:
    sets = random_scores().sets
    assert "2013 with SMT" in explain(sets)
    assert "2013 without SMT" in explain([dataset([0.0, 1], "2013", "FNWN")])
    assert "SMT" not in explain([dataset([0.0, 1])])
    assert "MTEB" in explain(sets, ["concatenated"])
    assert "year" not in explain([dataset([0.0, 1], "stsb")])


@pytest.mark.parametrize(
    ("gold", "left", "right", "message"),
    [
        ([], [], [], "0 pairs; a correlation needs at least 2"),
        ([1.0], ["a"], ["b"], "1 pairs"),
        ([1.0, 2], ["a", "b"], ["c"], "2 gold scores, 2 left and 1 right sentences"),
        ([1.0, 2, 3], ["a", "b"], ["c", "d"], "3 gold scores"),
        ([2.0, 2, 2], list("abc"), list("def"), "every gold score is 2"),
        ([2.0, math.nan, 2], list("abc"), list("def"), "the gold score of pair 2 is nan"),
    ],
)
def test_a_set_without_a_correlation_is_refused(gold: list, left: list, right: list, message: str) -> None:
    with pytest.raises(BgtError, match=f"^2012 A: {message}"):
        StsSet("2012", "A", np.array(gold), left, right)


@pytest.mark.parametrize(
    ("aggregate", "kinds"),
    [
        ("mean", {"Pearson", "mean Pearson"}),
        ("weighted", {"Pearson", "weighted Pearson"}),
        ("concatenated", {"Spearman", "concatenated Spearman"}),
    ],
)
def test_each_aggregate_alone_has_its_own_scores(aggregate: str, kinds: set[str]) -> None:
    assert {key.score for key in table_of(random_scores(), [aggregate])} == kinds


@pytest.mark.parametrize(("years", "text"), [
    (["2012"], "2012"), (["2013", "2012"], "2012-2013"), (["2014", "2012", "stsb", "2013"], "2012-2014"),
    (["2012", "2014"], "2012, 2014"), (["stsb"], ""),
])  # fmt: skip
def test_years_in_a_row_are_a_span(years: list[str], text: str) -> None:
    assert scoring.span(years) == text
