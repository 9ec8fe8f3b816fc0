"""The comparison of Wieting, Mallinson & Gimpel (2017): AVG and GRAN, trained on back-translations that filters select.

Its systems follow from the tables that a folder of data has: each table's random pairs, and every filter of the
largest table of back-translations. A filter with several ranges is that range which is best on STS Benchmark's dev set,
for AVG and GRAN apart. The measure is the mean over all data sets of the STS years, and SICK.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.reproduce.comparisons import EVERY
from analysis.reproduce.datasets import Dataset
from analysis.reproduce.experiments import SETS, THREE, Claim, Comparison, ExperimentSpec, Selection, above
from analysis.reproduce.paraphrases import COLUMNS, TRANSLATED, SelectedPairs, read_paraphrases
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.encoders.distances import ReferenceProbability
from bgt_core.evaluation.backtranslation import Statistic, compare
from bgt_core.evaluation.bootstrap import FAILS, HOLDS, NOT_SEPARABLE
from bgt_core.files import write_text
from bgt_core.tables import Estimate
from bgt_core.training.settings import SETTINGS

NAME = "backtranslation"
RECIPES = {"GRAN": "gran", "AVG": "avg"}
PAIRS = {"paper": 24_000, "small": 1_900}  # maximum size of a selection; 20,000 news sentences give that many
ARGUMENTS: dict[str, dict[str, object]] = {
    EVERY: {"data.vocab_size": 5_000, "data.valid_pairs": 100},
    "reference-classifier": {"data.vocab_size": 5_000, "data.valid_pairs": 500},
}
# Epochs were chosen on STSb dev; `avg`, whose vectors begin at random, has about the published number of updates.
SMALL: dict[str, dict[str, object]] = {
    **ARGUMENTS,
    EVERY: {"data.vocab_size": 3_500, "data.valid_pairs": 100},
    "avg": {"train.epochs": 150.0},
    "gran": {"train.epochs": 9.0},
}
SCALES = {"paper": ARGUMENTS, "small": SMALL}  # as in `comparisons`
PHRASAL = "ppdb"  # begins the name of a table of words and phrases

RANDOM = {  # Table 4: GRAN, AVG
    "simpwiki": (67.2, 65.8),
    "ppdb": (64.5, 65.8),
    "cs-cc": (65.5, 65.4),
    "cs-ep": (66.5, 65.1),
    "cs-news": (67.2, 65.1),
    "fr-cc": (67.3, 66.1),
    "fr-ep": (67.8, 65.7),
    "fr-giga": (67.4, 65.9),
    "fr-news": (67.0, 65.2),
    "de-cc": (66.5, 66.2),
    "de-ep": (67.2, 65.6),
    "de-news": (66.5, 64.7),
}
UNFILTERED = (66.9, 65.5)  # Tables 7 and 12, of several sources together, as the numbers of all filters
LENGTHS = {  # Table 5
    "0-10 words": ("words=..10", (66.6, 65.7)),
    "10-20 words": ("words=10..20", (66.5, 65.6)),
    "20-30 words": ("words=20..30", (66.0, 65.3)),
    "30-100 words": ("words=30..", (64.8, 65.0)),
}
THIRDS = ("..33%", "..67%")
OVERLAPS = ("..0.6", "0.1..0.8")
QUALITY = {  # Table 7
    "cost": ("cost", THIRDS, (66.6, 65.4)),
    "language model": ("perplexity", THIRDS, (66.7, 65.5)),
    "classifier": ("classifier", ("33%..", "67%.."), (67.0, 65.5)),
}
DIVERSITY = {  # Table 12
    "1-gram overlap": ("overlap-1", OVERLAPS, (66.6, 66.1)),
    "2-gram overlap": ("overlap-2", OVERLAPS, (67.0, 65.5)),
    "3-gram overlap": ("overlap-3", OVERLAPS, (66.9, 65.4)),
    "BLEU": ("bleu", OVERLAPS, (67.1, 65.3)),
}
SCALING = {"2 times the pairs": 2, "3 times the pairs": 3}  # Table 13 has other sources and sizes
NOTE = """\
Random pairs of each table; of the largest, {main}, also what filters keep, always the same number of pairs, the first
candidate of each reference. Ranges of scores that have no unit of their own are thirds of the table's scores. A filter
of several ranges is the one that is best on STSb dev (without its rows of 2016 and 2017), for each system apart; the
paper chose by STS 2016. Its numbers beside {main} are of several sources together. Where it says that a filter
does not help, the claim is that random pairs are above it, and "not separable" agrees with the paper too."""


def comparison(tables: Sequence[str]) -> Comparison:
    """All systems of these tables; the first is the one that is filtered."""
    main = tables[0]
    systems = [
        ExperimentSpec(
            f"{name} {table}", recipe, {}, COLUMNS, seeds, against=f"{name} {main}", selection=Selection(table)
        )
        for table in tables
        for name, recipe in RECIPES.items()
        for seeds in [THREE if table == main else (1,)]
    ]
    systems += [system for name in RECIPES for system in filtered(name, main)]
    return Comparison(
        "AVG and GRAN on back-translations",
        systems,
        published_numbers(main, tables),
        tuple(claims(main, tables)),
        NOTE.format(main=main),
        SETS,
    )


def filtered(name: str, main: str) -> Iterator[ExperimentSpec]:
    """AVG or GRAN on what each filter keeps of one table, and on more of it."""
    random = f"{name} {main}"
    system = ExperimentSpec(random, RECIPES[name], {}, COLUMNS, against=random)
    for words, (keep, _) in LENGTHS.items():
        yield replace(system, name=f"{random}, {words}", selection=Selection(main, keep))
    yield replace(system, name=f"{random}, length", best_of=[f"{random}, {words}" for words in LENGTHS])
    for words, (score, ranges, _) in {**QUALITY, **DIVERSITY}.items():
        for limits in ranges:
            yield replace(system, name=f"{random}, {words} {limits}", selection=Selection(main, f"{score}={limits}"))
        yield replace(system, name=f"{random}, {words}", best_of=[f"{random}, {words} {limits}" for limits in ranges])
    for words, times in SCALING.items():
        yield replace(system, name=f"{random}, {words}", selection=Selection(main, times=times))


def published_numbers(main: str, tables: Sequence[str]) -> dict[str, dict[str, float]]:
    """The paper's, of the tables that it has by that name, and of filters."""
    numbers: dict[str, dict[str, float]] = {}
    for column, name in enumerate(RECIPES):
        for table in tables:
            known = PHRASAL if table.startswith(PHRASAL) else table
            if known in RANDOM:
                numbers[f"{name} {table}"] = {SETS: RANDOM[known][column]}
        numbers[f"{name} {main}"] = {SETS: UNFILTERED[column]}
        filters = {words: scores for words, (_, scores) in LENGTHS.items()}
        filters |= {words: scores for words, (_, _, scores) in {**QUALITY, **DIVERSITY}.items()}
        for words, scores in filters.items():
            numbers[f"{name} {main}, {words}"] = {SETS: scores[column]}
    return numbers


def claims(main: str, tables: Sequence[str]) -> Iterator[Claim]:
    """What the paper says, of our tables."""
    phrasal = [table for table in tables if table.startswith(PHRASAL)]
    for table in tables:
        if table not in phrasal:
            yield above(f"GRAN {table}", f"AVG {table}", "Table 4", SETS)
            yield from (above(f"GRAN {table}", f"GRAN {words}", "Table 4", SETS) for words in phrasal)
    for name in RECIPES:
        random = f"{name} {main}"
        short, *longer = (f"{random}, {words}" for words in LENGTHS)
        yield from (above(short, other, "Table 5", SETS) for other in longer)
        yield from (above(random, f"{random}, {words}", "Table 7", SETS) for words in ("cost", "language model"))
    yield above(f"GRAN {main}, classifier", f"GRAN {main}", "Table 7", SETS)
    yield above(f"AVG {main}, 1-gram overlap", f"AVG {main}", "Table 12", SETS)
    yield from (above(f"{name} {main}, 3 times the pairs", f"{name} {main}", "Table 13", SETS) for name in RECIPES)


def tables_of_paper(whole: Comparison) -> Mapping[str, Comparison]:
    """The comparison in the paper's tables, by what they are about."""
    main = whole.systems[0].name.partition(" ")[2]

    def part(title: str, names: Sequence[str]) -> Comparison:
        wanted = {f"{name} {main}{', ' * bool(words)}{words}" for name in RECIPES for words in names}
        return replace(whole, title=title, systems=[system for system in whole.systems if system.name in wanted])

    random = [system for system in whole.systems if "," not in system.name]
    return {
        "sources": replace(whole, title="Sources (Table 4)", systems=random),
        "length": part("Length of the translation (Tables 5 and 6)", ["", *LENGTHS, "length"]),
        "quality": part("Quality (Table 7)", ["", *QUALITY]),
        "diversity": part("Diversity (Table 12)", ["", *DIVERSITY]),
        "scaling": part("More pairs (Table 13)", ["", *SCALING]),
    }


def read(
    data: Path, scale: str
) -> tuple[Comparison, Callable[[ExperimentSpec], Dataset], Mapping[str, Mapping[str, object]]]:
    """The comparison on a folder of data, what each of its systems is trained and measured on, and the scale's
    arguments for recipes."""
    arguments = SCALES[scale]
    paraphrases = read_paraphrases(data, PAIRS[scale], arguments["reference-classifier"])
    return comparison(list(paraphrases.tables)), paraphrases.dataset_of, arguments


def of_results(records: Mapping[str, Sequence[Mapping[str, Any]]]) -> Comparison:
    """The comparison whose stored results these are."""
    systems = dict.fromkeys(row["system"] for row in records["cells"])
    tables = list(dict.fromkeys(system.partition(" ")[2] for system in systems if "," not in system))
    return comparison(tables)


# How the translations of a table differ from their references, beside the paper's numbers.

PUBLISHED = {  # Table 9: reference less translation, all data
    "unigram entropy": 0.46,
    "trigram entropy": 0.74,
    "unigram repetition": -2.80,
    "trigram repetition": -2.26,
}
PUBLISHED_RHO = {  # Table 10: Spearman's rho x 100 with P(reference)
    "unigram repetition": -35.1,
    "trigram repetition": -18.4,
    "average IDF": 27.8,
    "words": -34.0,
}
SIGNS = {"unigram repetition": -1, "trigram repetition": -1, "average IDF": 1}  # as in the paper

Row = dict[str, Any]


def table_statistics(datasets: Mapping[str, Dataset], out: Path, device: str) -> list[Row]:
    """Those of the random pairs of each table of back-translations."""
    tables = [data for data in datasets.values() if isinstance(data, SelectedPairs) and data.is_random]
    return [row for data in tables if data.table.columns == TRANSLATED for row in text_statistics(data, out, device)]


def text_statistics(data: SelectedPairs, out: Path, device: str) -> list[Row]:
    """One row per statistic of these pairs, kept in `out`; none where they are not selected yet.

    With the classifier's correlations where that table has a classifier.
    """
    pairs, classifier = data.path(out), data.classifier_folder(out)
    if not pairs.exists():
        return []
    trained = (classifier / SETTINGS).exists() and any(classifier.glob("step-*"))
    path = pairs.with_name(pairs.name.replace(".tsv.zst", f"-statistics{'-classified' * trained}.json"))
    if not path.exists():
        models = {"classifier": ReferenceProbability.load(classifier, device)} if trained else {}
        references, translations = zip(*read_pairs(pairs, ("a", "b"), Skipped()), strict=True)
        comparison = compare(references, translations, models=models)
        rows = [statistic_row(data.name, comparison.pairs, statistic) for statistic in comparison.statistics]
        write_text(path, json.dumps(rows))
    return json.loads(path.read_text(encoding="utf-8"))


def statistic_row(table: str, pairs: int, statistic: Statistic) -> Row:
    """A row as it is stored."""
    row: Row = {
        "table": table,
        "pairs": pairs,
        "statistic": statistic.name,
        "unit": statistic.unit,
        "reference": statistic.reference,
        "translation": statistic.translation,
        "published": PUBLISHED.get(statistic.name),
        "rho_published": PUBLISHED_RHO.get(statistic.name),
    }
    if isinstance(statistic.difference, Estimate):
        value, low, high, _ = statistic.difference
        row |= {"difference": value, "ci_low": low, "ci_high": high}
        if sign := SIGNS.get(statistic.name):
            least, most = sorted((sign * low, sign * high))
            row["verdict"] = HOLDS if least > 0 else FAILS if most < 0 else NOT_SEPARABLE
    else:
        row["difference"] = statistic.difference
    if rho := statistic.correlation:
        row |= {"rho": rho.value, "rho_low": rho.low, "rho_high": rho.high}
    return row
