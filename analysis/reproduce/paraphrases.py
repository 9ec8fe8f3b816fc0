"""Select training pairs by filters from tables of back-translations and human paraphrases (analysis/reproduce.md).

In each table, a third of the references, with all their translations, is set aside. The reference classifier and the
language model are trained on this third. Pairs are selected from the other references.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from analysis.reproduce.comparisons import Comparison, ExperimentSpec, Selection
from analysis.reproduce.datasets import PARAPHRASES, RULES, Dataset, content_hash, read_sts, say
from bgt_core import recipes, training
from bgt_core.data.clean import clean, hashes, key
from bgt_core.data.columns import Source
from bgt_core.data.parallel import TABLES, Skipped, pair_file, read_pairs
from bgt_core.data.scores import Perplexity, ScoreRange, SentenceScore, pair_scores
from bgt_core.data.textfile import number
from bgt_core.encoders.distances import ReferenceProbability
from bgt_core.errors import DataError, NotFound
from bgt_core.evaluation.backtranslation import Statistic, compare
from bgt_core.evaluation.bootstrap import FAILS, HOLDS, NOT_SEPARABLE
from bgt_core.evaluation.sts_files import StsSet
from bgt_core.files import record_path, write_text
from bgt_core.tables import Estimate
from bgt_core.training.setup import SETTINGS

TRANSLATED = ("reference", "translation", "cost", "_")  # column names of a table of back-translations
HUMAN = ("reference", "translation")  # column names of a table of human paraphrases
SET_ASIDE = 3  # one in three references is set aside, to train the classifier and the language model
PER_PAIR = 5  # minimum number of references per selected pair, so that filters have enough to choose from
SAMPLE = 5_000  # number of references from which the quantiles of a filter's limits are computed
CLASSIFIER = "reference-classifier"  # the recipe of the classifier that tells references from translations


@dataclass(frozen=True)
class ParaphraseTable:
    """A file of paraphrases, with its columns and its number of references (texts that people wrote)."""

    path: Path
    columns: tuple[str, ...]
    references: int
    content: str  # SHA-256 hash of the file and the test data


@dataclass(frozen=True)
class Paraphrases:
    """The paraphrase files that a comparison uses, and the number of training pairs to select from each."""

    tables: Mapping[str, ParaphraseTable]
    sets: Sequence[StsSet]
    pairs: int
    classifier: Mapping[str, object]  # settings of the recipe of the classifier

    def dataset(self, system: ExperimentSpec) -> SelectedPairs | None:
        """Return the training and test data of a system; None if the file that it selects pairs from is missing."""
        selection = system.selection
        if not selection or selection.table not in self.tables:
            return None
        table, count = self.tables[selection.table], self.pairs * selection.times
        classifier = self.classifier if selection.keep.startswith("classifier") else {}
        settings = json.dumps([asdict(selection), count, dict(classifier)], sort_keys=True)
        sha256 = hashlib.sha256(f"{table.content} {settings}".encode()).hexdigest()
        return SelectedPairs(
            selection.table, PARAPHRASES, [table.path], self.sets, {}, sha256, False,
            table=table, selection=selection, count=count, classifier=self.classifier,
        )  # fmt: skip


def read_paraphrases(folder: Path, comparison: Comparison, scale: str) -> Paraphrases:
    """Read the tables in `folder`. The scale sets the number of pairs to select, but this is at most a fifth of the
    number of references in the smallest table. Raises NotFound if back-translations or all STS years are missing."""
    if not folder.is_dir():
        raise NotFound(f"{folder}: no such folder; pass the folder that contains the data.")
    sets = read_sts(folder, "stsb-dev", "sick-test")
    if not any(data.year == "sick" for data in sets):
        sets = read_sts(folder, "stsb-dev", "sick-train")
    tables: dict[str, ParaphraseTable] = {}
    for name in dict.fromkeys(system.selection.table for system in comparison.systems if system.selection):
        for place, columns in ((f"backtranslated/{name}", TRANSLATED), (f"paraphrase/en.{name}", HUMAN)):
            for ending in TABLES:
                if (path := folder / f"{place}{ending}").exists():
                    references = len({row[0] for row in read_pairs(path, columns, Skipped())})
                    tables[name] = ParaphraseTable(path, columns, references, content_hash([path], sets, {}))
    if not any(table.columns == TRANSLATED for table in tables.values()):
        raise NotFound(f"{folder}: no back-translations; add a table such as backtranslated/fr-news.tsv.xz.")
    smallest = min(tables.values(), key=lambda table: table.references)
    if smallest.references < PER_PAIR:
        raise DataError(f"{smallest.path} must have at least {PER_PAIR} references (got {smallest.references})")
    pairs = min(comparison.pairs[scale], smallest.references // PER_PAIR)
    return Paraphrases(tables, sets, pairs, comparison.scales[scale].get(CLASSIFIER, {}))


@dataclass(frozen=True, kw_only=True)
class SelectedPairs(Dataset):
    """The training pairs that a filter selects from one table of paraphrases; `name` is the table's name."""

    table: ParaphraseTable
    selection: Selection
    count: int  # number of pairs to select
    classifier: Mapping[str, object]

    @property
    def with_cost(self) -> bool:
        """Whether the filter uses the translator's costs. If not, their column is not read, because it may be empty."""
        return self.selection.keep.startswith("cost")

    @property
    def file_columns(self) -> tuple[str, ...]:
        """Names of the columns in the files that `part` returns: the two texts, and the cost if the filter uses it."""
        return (*HUMAN, *(["cost", "_"] if self.with_cost else ["_"] * (len(self.table.columns) - len(HUMAN))))

    def path(self, out: Path) -> Path:
        """Return the path of the file of selected pairs."""
        return out / f"{self.name}-{self.sha256[:10]}.tsv.zst"

    def pairs(self, out: Path, device: str) -> Source:
        """Return the file of selected pairs; select them if it is missing. Raises DataError if too few pass a
        filter."""
        path = self.path(out)
        if not path.exists():
            say(f"{self.name}: selecting {self.count:,} pairs {self.selection.keep}".rstrip())
            models = self.models(out, device)
            keep = (self.range(out, models),) if self.selection.keep else ()
            rules = replace(RULES, max_pairs=self.count, keep=keep, first_of_reference=True)
            columns = [*PARAPHRASES, *("cost:label" if name == "cost" else name for name in self.file_columns[2:])]
            new = path.with_name(f"new-{path.name}")
            done = clean([self.part(out, "mined")], columns, new, rules, exclude=[self.evaluated(out)], models=models)
            if done.kept < self.count:
                selection = f"{self.name} {self.selection.keep}"
                raise DataError(f"{selection}: only {done.kept:,} pairs pass; every filter needs {self.count:,}.")
            record_path(new).replace(record_path(path))
            new.replace(path)
        return Source(path, ("a", "b", "_") if self.with_cost else ("a", "b"))

    def text(self, out: Path, device: str) -> Source:
        """Return the file of all pairs that filters can select, so that all filters use one tokenizer per table."""
        path = out / f"{self.name}-{self.table.content[:10]}-text.tsv.zst"
        if not path.exists():
            columns = [*PARAPHRASES, *["_"] * (len(self.table.columns) - len(HUMAN))]
            clean([self.part(out, "mined")], columns, path, RULES, exclude=[self.evaluated(out)])
        return Source(path, ("a", "b"))

    def part(self, out: Path, part: str) -> Path:
        """Return the file of the rows from which pairs are selected ("mined"), or of the rows that are set aside
        ("set-aside"). If either file is missing, write both."""
        paths = {name: out / f"{self.name}-{self.table.content[:10]}-{name}.tsv.zst" for name in ("mined", "set-aside")}
        if not all(path.exists() for path in paths.values()):
            columns = ["_column" if column == "_" else column for column in self.table.columns]
            with pair_file(paths["mined"]) as add_mined, pair_file(paths["set-aside"]) as add_others:
                pairs = read_pairs(self.table.path, columns, Skipped())
                while rows := list(islice(pairs, 10_000)):
                    aside = hashes([key(row[0]) for row in rows], 0) % np.uint64(SET_ASIDE) == 0
                    for add, chosen in ((add_mined, ~aside), (add_others, aside)):
                        add([[cell.encode() for cell in rows[index]] for index in np.flatnonzero(chosen)])
        return paths[part]

    def models(self, out: Path, device: str) -> dict[str, SentenceScore]:
        """Return the model that computes the filter's score. Train it on the rows set aside, or resume its training."""
        score = self.selection.keep.partition("=")[0]
        if score == "perplexity":
            rows = read_pairs(self.part(out, "set-aside"), self.file_columns, Skipped())
            return {score: Perplexity(dict.fromkeys(row[0] for row in rows))}
        if score != "classifier":
            return {}
        folder = self.classifier_folder(out)
        if (folder / SETTINGS).exists():
            training.resume(folder, device=device)
        else:
            shutil.rmtree(folder, ignore_errors=True)  # a killed process may have left an incomplete folder
            say(f"{self.name}: training a classifier of references")
            recipe = recipes.configure(CLASSIFIER, dict(self.classifier))
            training.train(recipe, [Source(self.part(out, "set-aside"), self.file_columns)], folder, device=device)
        return {score: ReferenceProbability.load(folder, device)}

    def classifier_folder(self, out: Path) -> Path:
        """Return the run folder of the classifier that is trained on this table."""
        settings = json.dumps([self.table.content, dict(self.classifier)], sort_keys=True)
        return out / f"{self.name}-{hashlib.sha256(settings.encode()).hexdigest()[:10]}-classifier"

    def range(self, out: Path, models: Mapping[str, SentenceScore]) -> ScoreRange:
        """Return the lowest and the highest score that the filter keeps. If a limit is a quantile, compute it from the
        first translation of each of `SAMPLE` references."""
        if "%" not in self.selection.keep:
            return ScoreRange.parse(self.selection.keep)
        score = self.selection.keep.partition("=")[0]
        firsts: dict[str, tuple[str, ...]] = {}  # reference -> the row with its first translation
        for row in read_pairs(self.part(out, "mined"), self.file_columns, Skipped()):
            if len(firsts) == SAMPLE and row[0] not in firsts:
                break
            firsts.setdefault(row[0], row)
        rows = list(firsts.values())
        costs = np.array([number(row[2]) if self.with_cost else np.nan for row in rows])
        scores = pair_scores(models)[score]([row[:2] for row in rows], costs)
        if not np.isfinite(scores).any():
            raise DataError(f"{self.table.path}: no candidate has a {score}; remove the filter on this score.")
        limits = re.sub(
            r"(\d+)%", lambda quantile: f"{np.nanpercentile(scores, int(quantile[1])):.4f}", self.selection.keep
        )
        return ScoreRange.parse(limits)


# Table 9 of Wieting et al. (2017): statistic of the references minus statistic of the translations, on all data
PUBLISHED = {"unigram entropy": 0.46, "trigram entropy": 0.74, "unigram repetition": -2.80, "trigram repetition": -2.26}
# Table 10 of that paper: Spearman's rho x 100 between the statistic and P(reference)
PUBLISHED_RHO = {"unigram repetition": -35.1, "trigram repetition": -18.4, "average IDF": 27.8, "words": -34.0}
SIGNS = {"unigram repetition": -1, "trigram repetition": -1, "average IDF": 1}  # sign of the difference in the paper


def text_statistics(datasets: Mapping[str, Dataset], out: Path, device: str) -> list[dict[str, Any]]:
    """Compute statistics on the pairs selected at random from each table of back-translations: a row per statistic.

    Results are cached in `out`. If the classifier of the table is trained, they include correlations with P(reference).
    Tables from which no pairs have been selected without a filter are skipped.
    """
    rows = []
    for data in datasets.values():
        if not isinstance(data, SelectedPairs) or data.selection != Selection(data.name):
            continue
        if data.table.columns != TRANSLATED or not (pairs := data.path(out)).exists():
            continue
        classifier = data.classifier_folder(out)
        trained = (classifier / SETTINGS).exists() and any(classifier.glob("step-*"))
        path = pairs.with_name(pairs.name.replace(".tsv.zst", f"-statistics{'-classified' * trained}.json"))
        if not path.exists():
            models = {"classifier": ReferenceProbability.load(classifier, device)} if trained else {}
            references, translations = zip(*read_pairs(pairs, ("a", "b"), Skipped()), strict=True)
            statistics = compare(references, translations, models=models)
            made = [statistic_row(data.name, len(references), statistic) for statistic in statistics.values()]
            write_text(path, json.dumps(made))
        rows += json.loads(path.read_text(encoding="utf-8"))
    return rows


def statistic_row(table: str, pairs: int, statistic: Statistic) -> dict[str, Any]:
    """Return the row of the results file for a statistic."""
    fields = "unit", "reference", "translation"
    row: dict[str, Any] = {"table": table, "pairs": pairs, "statistic": statistic.name}
    row |= {name: getattr(statistic, name) for name in fields}
    row |= {"published": PUBLISHED.get(statistic.name), "rho_published": PUBLISHED_RHO.get(statistic.name)}
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
