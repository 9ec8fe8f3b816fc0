"""Semantic textual similarity: the cosine of every pair of sentences, and each usual way to make a score of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.bootstrap import pearson, spearman
from bgt_core.vectors.compare import cosines

AGGREGATES = {  # how data sets make a year; published scores differ by it
    "mean": "Pearson of each data set, averaged (the BGT paper)",
    "weighted": "Pearson of each data set, averaged by their pairs (SentEval's wmean)",
    "concatenated": "Spearman of all its pairs in one list (Sentence-BERT, SimCSE, MTEB)",
}
ROUNDING = 1e-6  # cosines of float32 vectors that differ by less are equal


@dataclass(frozen=True)
class StsSet:
    """One data set: N sentence pairs and their gold similarity. Raises BgtError where no correlation can be made."""

    year: str  # "2012"; other benchmarks have a name instead: "stsb", "sick", "sts17"
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
                "there must be one of each a pair, in the same order."
            )
        if len(self.gold) < 2:
            raise DataError(f"{self}: {len(self.gold)} pairs; a correlation needs at least 2.")
        if not np.isfinite(self.gold).all():
            row = int(np.argmin(np.isfinite(self.gold)))
            raise DataError(f"{self}: the gold score of pair {row + 1} is {self.gold[row]}; it must be a number.")
        if np.ptp(self.gold) == 0:
            raise DataError(f"{self}: every gold score is {self.gold[0]}; a correlation needs different ones.")

    def __str__(self) -> str:
        return f"{self.year} {self.name}"

    @property
    def sides(self) -> tuple[tuple[str, Sequence[str], str], ...]:
        """(name, sentences, language) of left and right."""
        return ("left", self.left, self.left_lang), ("right", self.right, self.right_lang)


class Row(NamedTuple):
    """What a score is of. A year's own row has `dataset` "all", the mean over years "average"."""

    year: str
    dataset: str
    score: str  # "Pearson", "mean Pearson", "concatenated Spearman", ...
    pairs: int


@dataclass(frozen=True)
class StsScores:
    """One system's cosine of every pair: all that its scores, and comparisons with other systems, are made from."""

    sets: Sequence[StsSet]
    cosines: Sequence[np.ndarray]  # (N,) float64 for each set

    def table(self, aggregates: Collection[str] = ("mean",)) -> dict[Row, float]:
        """Score x 100 of every row of these aggregations."""
        found = rows(
            self.sets, [c[None] for c in self.cosines], [np.ones((1, len(c))) for c in self.cosines], aggregates
        )
        return {row: float(values[0, 0]) for row, values in found.items()}

    @property
    def datasets(self) -> dict[tuple[str, str], float]:
        """Pearson x 100 by (year, data set)."""
        scores = self.table()
        return {row[:2]: score for row, score in scores.items() if row.score == "Pearson"}

    @property
    def years(self) -> dict[str, float]:
        """The paper's: the unweighted mean over each year's data sets."""
        return {row.year: score for row, score in self.table().items() if row.dataset == "all"}

    @property
    def average(self) -> float:
        """The paper's: the mean over years. Raises BgtError where there is no year."""
        found = [score for row, score in self.table().items() if row.dataset == "average"]
        if not found:
            raise UsageError(f"No average: {', '.join(map(str, self.sets))} are of no SemEval year.")
        return found[0]


def rows(
    sets: Sequence[StsSet],
    systems: Sequence[np.ndarray],
    weights: Sequence[np.ndarray],
    aggregates: Collection[str] = ("mean",),
) -> dict[Row, np.ndarray]:
    """Scores x 100 of each data set, then of its year, and last over all years: (B, S) for each row.

    For each set, `systems` are S systems' cosines (S, N) and `weights` are B resamples of its pairs (B, N), ones for
    the set as it is. Years are those of SemEval: other benchmarks share pairs with them, and stand for themselves.
    """
    correlations = {"Pearson": pearson} if {"mean", "weighted"} & set(aggregates) else {}
    if "concatenated" in aggregates:
        correlations["Spearman"] = spearman
    found: dict[Row, np.ndarray] = {}
    years: dict[Row, list[np.ndarray]] = {}  # by the row that averages them
    label = span([data.year for data in sets])
    for year in dict.fromkeys(data.year for data in sets):
        places = [place for place, data in enumerate(sets) if data.year == year]
        sizes = [len(sets[place].gold) for place in places]
        each: dict[str, list[np.ndarray]] = {name: [] for name in correlations}
        for place, size in zip(places, sizes, strict=True):
            for name, correlation in correlations.items():
                score = 100 * correlation(weights[place], systems[place], sets[place].gold)
                each[name].append(score)
                found[Row(year, sets[place].name, name, size)] = score
        for aggregate in aggregates if year.isdigit() else ():
            if aggregate == "concatenated":
                joined = [np.concatenate([part[place] for place in places], -1) for part in (weights, systems)]
                gold = np.concatenate([sets[place].gold for place in places])
                row, score = Row(year, "all", "concatenated Spearman", sum(sizes)), 100 * spearman(*joined, gold)
            else:
                shares = sizes if aggregate == "weighted" else None
                row = Row(year, "all", f"{aggregate} Pearson", sum(sizes))
                score = np.average(each["Pearson"], axis=0, weights=shares)
            found[row] = score
            years.setdefault(Row(label, "average", row.score, 0), []).append(score)
    pairs = sum(len(data.gold) for data in sets if data.year.isdigit())
    return found | {row._replace(pairs=pairs): np.mean(scores, axis=0) for row, scores in years.items()}


def span(years: Iterable[str]) -> str:
    """The SemEval years among these, in words: "2012-2015", "2012, 2014"."""
    found = sorted({year for year in years if year.isdigit()})
    whole = found and len(found) == int(found[-1]) - int(found[0]) + 1 > 1
    return f"{found[0]}-{found[-1]}" if whole else ", ".join(found)


def sts(bgt: SentenceEncoder, sets: Sequence[StsSet], *, latent: str = SEMANTIC) -> StsScores:
    """Score an embedder on these sets: its cosine of every pair.

    Raises BgtError for a latent or language it does not have, language latents of two languages, and vectors that are
    no (N, D) array of finite numbers, or of another width on the other side.
    """
    for data in sets:
        check(bgt, data, latent)
    return StsScores(sets, [similarities(bgt, data, latent) for data in sets])


def check(bgt: SentenceEncoder, data: StsSet, latent: str) -> None:
    """Whether the embedder can score this set: before anything is embedded, BgtError where not."""
    if latent not in bgt.latents:
        raise UsageError(f"There is no latent '{latent}'; choose from {', '.join(bgt.latents)}.")
    for _, _, lang in data.sides:
        if bgt.langs and lang not in bgt.langs:  # an outside encoder lists none: it takes any
            raise UsageError(
                f"{data}: the model has no language '{lang}'; it has {', '.join(bgt.langs)}. Leave the set out."
            )
    if latent == LANGUAGE and data.left_lang != data.right_lang:
        raise UsageError(
            f"{data}: the language latents of {data.left_lang} and {data.right_lang} are two spaces, with no cosine "
            "between them; score the semantic latent.",
        )


def similarities(bgt: SentenceEncoder, data: StsSet, latent: str) -> np.ndarray:
    """The cosine of each pair of the set: (N,) float64; where all are equal but for rounding, exactly so."""
    vectors = []
    for side, sentences, lang in data.sides:
        found = np.asarray(bgt.embed(sentences, lang=lang, latent=latent))
        if found.ndim != 2 or len(found) != len(sentences) or found.dtype.kind not in "fiu":
            raise DataError(
                f"{data}: the encoder gave {found.dtype} of shape {found.shape} for the {len(sentences)} {side} "
                f"sentences; expected numbers, ({len(sentences)}, D)."
            )
        good = np.isfinite(found).all(1)
        if not good.all():
            row = int(good.argmin())
            raise DataError(
                f"{data}: the encoder gave a NaN or infinite value for the {side} sentence of pair {row + 1}, "
                f"'{sentences[row][:60]}'; {int((~good).sum())} of {len(good)} vectors have one."
            )
        vectors.append(found.astype(np.result_type(found, np.float32), copy=False))
    left, right = vectors
    if left.shape != right.shape:
        raise DataError(
            f"{data}: left vectors have {left.shape[1]} units and right ones {right.shape[1]}; expected as many."
        )
    cosine = cosines(left, right).astype(np.float64)
    return np.full_like(cosine, cosine[0]) if np.ptp(cosine) < ROUNDING else cosine


def explain(sets: Sequence[StsSet], aggregates: Collection[str] = ("mean",)) -> str:
    """What the scores of years are, in words; published ones also differ by whether 2013 has its SMT set."""
    names = [data.name for data in sets if data.year == "2013"]
    smt = f"; 2013 {'with' if 'SMT' in names else 'without'} SMT" if names else ""
    years = (
        "".join(f"; a year's {name}: {AGGREGATES[name]}" for name in aggregates) if span(d.year for d in sets) else ""
    )
    average = "; average: over years, unweighted" if years else ""
    return f"correlation x 100 of cosine and gold{years}{average}{smt}"
