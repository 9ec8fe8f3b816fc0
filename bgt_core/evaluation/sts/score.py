"""Sets of pairs with gold scores, and the usual ways to turn similarities into a score."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import pearson, spearman

AGGREGATES = {  # ways to average the data sets of a year; published scores differ
    "mean": "Pearson of each data set, averaged (the BGT paper)",
    "weighted": "Pearson of each data set, averaged by their pairs (SentEval's wmean)",
    "concatenated": "Spearman of all pairs in one list (Sentence-BERT, SimCSE, MTEB)",
}


@dataclass(frozen=True, eq=False)
class StsSet:
    """One data set: N sentence pairs and their gold similarity. Raises DataError if their correlation is undefined."""

    year: str  # "2012"; other benchmarks have their name: "stsb", "sick", "sts17"
    name: str
    gold: np.ndarray  # (N,) float64, 0-5, SICK 1-5
    left: Sequence[str]
    right: Sequence[str]
    left_lang: str = "en"
    right_lang: str = "en"

    def __post_init__(self) -> None:
        if not len(self.gold) == len(self.left) == len(self.right):
            raise DataError(
                f"{self}: {len(self.gold)} gold scores, {len(self.left)} left and {len(self.right)} right sentences; "
                "expected one of each per pair, in the same order."
            )
        if len(self.gold) < 2:
            raise DataError(f"{self}: {len(self.gold)} pairs; a correlation needs at least 2.")
        if not np.isfinite(self.gold).all():
            row = int(np.argmin(np.isfinite(self.gold)))
            raise DataError(f"{self}: the gold score of pair {row + 1} is {self.gold[row]}; expected a number.")
        if np.ptp(self.gold) == 0:
            raise DataError(f"{self}: every gold score is {self.gold[0]}; a correlation needs different ones.")

    def __str__(self) -> str:
        return f"{self.year} {self.name}"

    @property
    def sides(self) -> tuple[tuple[str, Sequence[str], str], ...]:
        """(name, sentences, language) of left and right."""
        return ("left", self.left, self.left_lang), ("right", self.right, self.right_lang)


class ScoreKey(NamedTuple):
    """The data and measure of a score. A year's own score has `dataset` "all", the mean over years "average"."""

    year: str
    dataset: str
    score: str  # "Pearson", "mean Pearson", "concatenated Spearman", ...
    pairs: int


@dataclass(frozen=True, eq=False)
class StsScores:
    """One system's similarity of every pair, usually the cosine."""

    sets: Sequence[StsSet]
    cosines: Sequence[np.ndarray]  # (N,) float64 for each set


def scores(
    sets: Sequence[StsSet],
    systems: Sequence[np.ndarray],
    weights: Sequence[np.ndarray],
    aggregates: Collection[str] = ("mean",),
) -> dict[ScoreKey, np.ndarray]:
    """Scores x 100 of each data set, then of its year, and last over all years: (B, S) for each key.

    For each set, `systems` are S systems' similarities (S, N) and `weights` are B resamples of its pairs (B, N), or
    ones for the set itself. Years are those of SemEval: other benchmarks share pairs with them, and are not averaged.
    """
    correlations = {"Pearson": pearson} if {"mean", "weighted"} & set(aggregates) else {}
    if "concatenated" in aggregates:
        correlations["Spearman"] = spearman
    table: dict[ScoreKey, np.ndarray] = {}
    years: dict[ScoreKey, list[np.ndarray]] = {}  # by the key that averages them
    label = span([data.year for data in sets])
    for year in dict.fromkeys(data.year for data in sets):
        numbers = [number for number, data in enumerate(sets) if data.year == year]
        sizes = [len(sets[number].gold) for number in numbers]
        each: dict[str, list[np.ndarray]] = {name: [] for name in correlations}
        for number, size in zip(numbers, sizes, strict=True):
            for name, correlation in correlations.items():
                score = 100 * correlation(weights[number], systems[number], sets[number].gold)
                each[name].append(score)
                table[ScoreKey(year, sets[number].name, name, size)] = score
        for aggregate in aggregates if year.isdigit() else ():
            if aggregate == "concatenated":
                drawn, joined = (np.concatenate([part[i] for i in numbers], -1) for part in (weights, systems))
                gold = np.concatenate([sets[number].gold for number in numbers])
                key = ScoreKey(year, "all", "concatenated Spearman", sum(sizes))
                score = 100 * spearman(drawn, joined, gold)
            else:
                key = ScoreKey(year, "all", f"{aggregate} Pearson", sum(sizes))
                score = np.average(each["Pearson"], axis=0, weights=sizes if aggregate == "weighted" else None)
            table[key] = score
            years.setdefault(ScoreKey(label, "average", key.score, 0), []).append(score)
    pairs = sum(len(data.gold) for data in sets if data.year.isdigit())
    return table | {key._replace(pairs=pairs): np.mean(values, axis=0) for key, values in years.items()}


def span(years: Iterable[str]) -> str:
    """Name the SemEval years among these: "2012-2015", "2012, 2014"."""
    semeval = sorted({year for year in years if year.isdigit()})
    whole = semeval and len(semeval) == int(semeval[-1]) - int(semeval[0]) + 1 > 1
    return f"{semeval[0]}-{semeval[-1]}" if whole else ", ".join(semeval)


def explain(sets: Sequence[StsSet], aggregates: Collection[str] = ("mean",)) -> str:
    """Explain the scores of years in words; published ones also differ by whether 2013 has its SMT set."""
    names = [data.name for data in sets if data.year == "2013"]
    smt = f"; 2013 {'with' if 'SMT' in names else 'without'} SMT" if names else ""
    has_years = any(data.year.isdigit() for data in sets)
    years = "".join(f"; a year's {name}: {AGGREGATES[name]}" for name in aggregates) if has_years else ""
    average = "; average: over years, unweighted" if years else ""
    return f"correlation x 100 of cosine and gold{years}{average}{smt}"
