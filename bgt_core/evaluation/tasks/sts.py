"""Semantic textual similarity: the correlation of an encoder's similarities with human scores.

STS files -> data sets of pairs -> similarity of each pair -> correlation for each data set, each year, and all years
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NamedTuple
from zlib import crc32

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.columns import known_lang
from bgt_core.errors import DataError, UsageError, check_choice
from bgt_core.evaluation.bootstrap import ItemSample, pearson, spearman
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.sts_files import StsSet, dataset_warnings, read_sets
from bgt_core.evaluation.systems import System, systems
from bgt_core.evaluation.task import Latent, Task, one_path
from bgt_core.tables import Table, Value, save

YEARS = "2012-2016"
AGGREGATES = {  # ways to average the data sets of a year; published scores use different ways
    "mean": "Pearson of each data set, averaged (the BGT paper)",
    "weighted": "Pearson of each data set, weighted by its number of pairs and averaged (SentEval's wmean)",
    "concatenated": "Spearman of all pairs in one list (Sentence-BERT, SimCSE, MTEB)",
}


class ScoreKey(NamedTuple):
    """The name of a score: the data and the measure."""

    year: str
    dataset: str  # "all" for the score of a year, "average" for the mean over years
    score: str  # "Pearson", "mean Pearson", "concatenated Spearman", ...
    pairs: int


@dataclass(frozen=True)
class Sts(Task[Sequence[StsSet]]):
    """Semantic textual similarity: do similarities agree with human judgements?

    The score of a year is the mean Pearson correlation of its data sets, as in the BGT paper; --aggregate offers other
    averages. Pairs are resampled within each data set.
    """

    data = "A folder of STS files in the layout of SemEval or SentEval, or YEAR/NAME.tsv."

    sets: Annotated[
        str, "Years and benchmarks, with commas: 2012-2016, 2014, stsb-dev, stsb-dev-fr, sick, sts17, sts17-en-es."
    ] = YEARS
    lang: Annotated[str, "Language of the SemEval years, if they are translated."] = "en"
    latent: Latent = None
    aggregate: Annotated[
        str, "How to average the data sets of a year: mean (as in the paper), weighted, concatenated, all."
    ] = "mean"
    stsb_without: Annotated[str | None, "Leave pairs of these years out of stsb, as in 2016,2017."] = None
    hard: Annotated[bool, "Also measure Hard STS: pairs whose overlap of words is misleading."] = False
    items: Annotated[
        Path | None, "Also write each pair, its gold score and its similarities to this .parquet or .csv file."
    ] = None

    def load(self, paths: Sequence[Path], *, seed: int) -> list[StsSet]:
        aggregates(self.aggregate)
        path = one_path(paths, "a folder of STS files")
        if self.items:
            check_choice([".parquet", ".csv"], items=self.items.suffix)
        known_lang(self.lang, (), "")
        without = self.stsb_without.split(",") if self.stsb_without else ()
        return read_sets(path, parse_sets(self.sets), lang=self.lang, without=without)

    def statistic(self, items: Sequence[StsSet], encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Correlate similarities and gold scores. A data set's resamples depend only on its name and the seed."""
        sets, warnings = list(items), dataset_warnings(items)
        if self.hard:
            splits = hard_splits([data for data in sets if data.year.isdigit()])
            note = (
                f"Hard STS: {len(splits[0].gold):,} different pairs (the paper has {PUBLISHED_PAIRS:,}, with 2013 "
                "SMT and 2016); in names of subsets, 20% means 20% of these pairs"
            )
            sets, warnings = [*sets, *splits], [*warnings, note]
        across = any(data.left_lang != data.right_lang for data in sets)
        langs = dict.fromkeys(lang for data in sets for lang in (data.left_lang, data.right_lang))
        rows = systems(encoders, langs, self.latent, across=across)
        kinds = aggregates(self.aggregate)
        similarities = [np.stack([similarities_of(system, data) for system in rows]) for data in sets]  # (S, N) each
        if self.items:
            save(pair_table(sets, [system.name for system in rows], similarities), self.items)
        return Statistic(
            systems=[system.name for system in rows],
            scores=lambda weights: scores(sets, similarities, weights, kinds),
            samples=[ItemSample(len(data.gold), (crc32(str(data).encode()),)) for data in sets],
            about=explain(sets, kinds),
            warnings=warnings,
        )


TASK = Sts


def aggregates(name: str) -> list[str]:
    """Return the names of all ways to average scores if `name` is "all", else [name]; UsageError for other names."""
    check_choice([*AGGREGATES, "all"], aggregate=name)
    return list(AGGREGATES) if name == "all" else [name]


def parse_sets(text: str) -> list[str]:
    """Split a list of data sets: "2012-2014,sick" -> ["2012", "2013", "2014", "sick"]."""
    names: list[str] = []
    for part in text.split(","):
        years = re.fullmatch(r"(\d{4})-(\d{4})", part)
        if years and years[1] > years[2]:
            raise UsageError(f"{part}: the earlier year must be first, as in 2012-2016.", parameter="sets")
        names += [str(year) for year in range(int(years[1]), int(years[2]) + 1)] if years else [part]
    return names


def similarities_of(system: System, data: StsSet) -> np.ndarray:
    """Compute the similarity of each sentence pair of a data set, (N,); errors name the data set."""
    try:
        return system.similarities(data.left, data.right, data.left_lang, data.right_lang)
    except DataError as error:
        raise DataError(f"{data}: {error}") from None


def pair_table(sets: Sequence[StsSet], systems: Sequence[str], similarities: Sequence[np.ndarray]) -> Table:
    """Make a table with a row for each sentence pair, and a column with the similarities of each system."""
    rows: list[list[Value]] = []
    for data, of_systems in zip(sets, similarities, strict=True):
        columns = zip(data.gold.tolist(), data.left, data.right, *of_systems.tolist(), strict=True)
        rows += [[data.year, data.name, data.left_lang, data.right_lang, *pair] for pair in columns]
    return Table(["year", "dataset", "left_lang", "right_lang", "gold", "left", "right", *systems], rows)


def scores(
    sets: Sequence[StsSet],
    systems: Sequence[np.ndarray],
    weights: Sequence[np.ndarray],
    aggregates: Collection[str] = ("mean",),
) -> dict[ScoreKey, np.ndarray]:
    """Compute scores x 100 of each data set, of each year, and the average over all years: (B, S) for each key.

    For each data set, `systems` contains the similarities of S systems, (S, N), and `weights` contains B resamples of
    the pairs, (B, N); weights of 1 score the data set itself. The average is only over SemEval years, because the other
    benchmarks share pairs with these years.
    """
    correlations = {"Pearson": pearson} if {"mean", "weighted"} & set(aggregates) else {}
    if "concatenated" in aggregates:
        correlations["Spearman"] = spearman
    table: dict[ScoreKey, np.ndarray] = {}
    years: dict[ScoreKey, list[np.ndarray]] = {}  # name of an average -> scores of years, to be averaged
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
    """Format the SemEval years among `years`, as in "2012-2015" or "2012, 2014"."""
    semeval = sorted({year for year in years if year.isdigit()})
    whole = semeval and len(semeval) == int(semeval[-1]) - int(semeval[0]) + 1 > 1
    return f"{semeval[0]}-{semeval[-1]}" if whole else ", ".join(semeval)


def explain(sets: Sequence[StsSet], aggregates: Collection[str]) -> str:
    """Explain in words how the score of a year is averaged, and whether the score of 2013 includes the data set SMT."""
    names = [data.name for data in sets if data.year == "2013"]
    smt = f"; 2013 {'with' if 'SMT' in names else 'without'} SMT" if names else ""
    has_years = any(data.year.isdigit() for data in sets)
    years = "".join(f"; a year's {name}: {AGGREGATES[name]}" for name in aggregates) if has_years else ""
    average = "; average: over years, unweighted" if years else ""
    return f"correlation x 100 of cosine and gold{years}{average}{smt}"


# Hard STS selects pairs whose overlap of words is misleading (the BGT paper, sec. 4.3; appendix D, Table 6).

WORD = re.compile(r"'?\w+(?:-\w+)*|[^\w\s]")  # "don't" becomes "don" and "'t"; a punctuation mark counts as a word
NEGATIONS = {"not", "'t"}
RULES = {  # subset -> which end of the ranking by word error rate, share of the pairs, lowest and highest gold score
    "Hard+": ("top", 0.2, 4, 5),
    "Hard-": ("bottom", 0.2, 0, 1),
    "bottom 20% SWER, gold 0-2": ("bottom", 0.2, 0, 2),
    "bottom 10% SWER, gold 0-1": ("bottom", 0.1, 0, 1),
    "top 20% SWER, gold 3-5": ("top", 0.2, 3, 5),
    "top 10% SWER, gold 4-5": ("top", 0.1, 4, 5),
    "easy: top 20% SWER, gold 0-2": ("top", 0.2, 0, 2),
    "easy: bottom 20% SWER, gold 3-5": ("bottom", 0.2, 3, 5),
}
PUBLISHED_PAIRS = 13_023  # number of pairs from which the BGT paper's Table 6 selects


def hard_splits(sets: Sequence[StsSet]) -> list[StsSet]:
    """Select Hard+, Hard- and the other subsets of the BGT paper's Table 6 from the pairs of these data sets.

    Their `year` is "hard". Raises DataError if `sets` is empty, or if a subset lacks two different gold scores.
    """
    pool = pooled(sets)
    rates = swer(pool.left, pool.right)
    splits = [pool, chosen(pool, "negation", negated(pool.left) != negated(pool.right))]
    for name, (end, share, low, high) in RULES.items():
        inside = extreme(rates, end, share) & (low <= pool.gold) & (pool.gold <= high)
        splits.append(chosen(pool, name, inside))
    return splits


def pooled(sets: Sequence[StsSet]) -> StsSet:
    """Join all data sets in one, "all", without the pairs that repeat an earlier pair with the same score.

    The BGT paper's set has 271 pairs fewer than the five years together. If the data set SMT and the year 2016 are left
    out, 269 pairs repeat an earlier pair and its score, and 411 repeat an earlier pair with any score. So the paper,
    too, seems to have removed only pairs whose score is the same.
    """
    if not sets:
        raise DataError("Hard STS: no data sets of SemEval years to select pairs from; give one or more.")
    rows = dict.fromkeys(row for data in sets for row in zip(data.left, data.right, map(float, data.gold), strict=True))
    left, right, gold = (list(column) for column in zip(*rows, strict=True))
    return replace(sets[0], year="hard", name="all", gold=np.array(gold), left=left, right=right)


def words(sentence: str) -> list[str]:
    """Split a sentence into lower-cased words and marks, similar to the tokenizer of Moses, which the paper used.

    The paper does not define what a word is. In its Table 6, the fifth of the pairs with the highest word error rates
    has 937 pairs with gold 3-5 and 1,380 with gold 0-2, a ratio of 0.68. On 2012-2015, our ratio is 0.68 if punctuation
    marks count as words, and 0.54 if they do not.
    """
    return WORD.findall(sentence.lower().replace("\u2019", "'"))


def swer(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    """Compute the symmetric word error rates of N pairs, (WER(a, b) + WER(b, a)) / 2 (paper, footnote 7): (N,).

    WER(a, b) and WER(b, a) have the same edit distance. One divides it by the number of words of a, the other by the
    number of words of b (at least 1).
    """
    rates = np.empty(len(left))
    for row, sentences in enumerate(zip(left, right, strict=True)):
        a, b = map(words, sentences)
        rates[row] = edits(a, b) * (1 / max(len(a), 1) + 1 / max(len(b), 1)) / 2
    return rates


def edits(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the Levenshtein distance: the minimum number of insertions, deletions and substitutions of words."""
    ids: dict[str, int] = {}
    rows, columns = (np.array([ids.setdefault(word, len(ids)) for word in side]) for side in (a, b))
    steps = np.arange(len(columns) + 1)
    cost = steps  # edits from the first i words of a to the first j words of b, for all j
    for word in rows:
        cost = np.append(cost[0] + 1, np.minimum(cost[1:] + 1, cost[:-1] + (columns != word)))
        cost = np.minimum.accumulate(cost - steps) + steps  # the cost may be lower if words of b are inserted
    return int(cost[-1])


def extreme(rates: np.ndarray, end: str, share: float) -> np.ndarray:
    """Return which of N error rates are in the lowest or highest `share`, with all ties at the boundary: (N,) bool."""
    signed = rates if end == "bottom" else -rates
    return signed <= np.quantile(signed, share, method="inverted_cdf")


def negated(sentences: Iterable[str]) -> np.ndarray:
    """Return which sentences contain the word "not" or "'t" (paper, footnote 9): (N,) bool.

    "nothing" and "cannot" do not count. If they did, the subset "negation" would have at least 757 pairs (the data set
    SMT and the year 2016 were not counted), but the paper's subset has 705.
    """
    return np.array([not NEGATIONS.isdisjoint(words(sentence)) for sentence in sentences])


def chosen(pool: StsSet, name: str, inside: np.ndarray) -> StsSet:
    """Select the pairs for which `inside`, (N,) bool, is True. Raises DataError if all their gold scores are equal."""
    rows = np.flatnonzero(inside).tolist()
    if len(set(pool.gold[rows])) < 2:
        raise DataError(
            f"Hard STS: {len(rows)} of {len(pool.gold)} pairs fall into '{name}', and a correlation needs two pairs "
            "with different gold scores; give more data sets."
        )
    left, right = ([side[row] for row in rows] for side in (pool.left, pool.right))
    return replace(pool, name=name, gold=pool.gold[rows], left=left, right=right)
