"""A folder of paraphrases: tables of back-translations and of what people wrote, and what filters select of them.

    FOLDER/backtranslated/fr-news.tsv.xz   reference, translation, cost, row, as `bgt data backtranslate` writes them,
                                           several translations of a reference one after another, the cheapest first
    FOLDER/paraphrase/en.NAME.tsv.xz       two sentences of one meaning that people wrote; may be absent
    FOLDER/...                             STS and STS Benchmark's dev set as in `datasets`, and SICK

A third of each table's references is set aside, with all their translations: the classifier of references and the
language model learn from them. Selections are of the others.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import ClassVar

import numpy as np

from analysis.reproduce.datasets import RULES, Dataset, Say, content_hash, optional_set, read_years
from analysis.reproduce.experiments import ExperimentSpec, Selection
from bgt_core import recipes, training
from bgt_core.data import filters
from bgt_core.data.clean import clean
from bgt_core.data.columns import Source
from bgt_core.data.filters import Candidates
from bgt_core.data.manifest import card_path
from bgt_core.data.parallel import TABLES, Skipped, pair_file, read_pairs
from bgt_core.data.scores import Perplexity, ScoreRange, SentenceScore, pair_scores
from bgt_core.data.textfile import number
from bgt_core.encoders.distances import ReferenceProbability
from bgt_core.errors import DataError, NotFound
from bgt_core.evaluation.sts_files import StsSet
from bgt_core.training.settings import SETTINGS

COLUMNS = ("a:en", "b:en")  # columns of the training files
TRANSLATED = ("reference", "translation", "cost", "_")  # columns of a table of back-translations
HUMAN = ("reference", "translation")  # columns of a table written by people
SET_ASIDE = 3  # set aside one of this many references
PER_PAIR = 5  # references of a table for each pair of a selection, so that filters can choose
SAMPLE = 5_000  # references from whose scores quantiles are computed

Row = tuple[str, ...]


@dataclass(frozen=True)
class ParaphraseTable:
    """A file of paraphrases, and how many references it has."""

    name: str
    path: Path
    columns: tuple[str, ...]
    references: int
    content: str  # SHA-256 of the file and of the evaluation data


@dataclass(frozen=True)
class Paraphrases:
    """What a folder has, back-translations first, the largest table first; and how many pairs a selection has."""

    tables: Mapping[str, ParaphraseTable]
    sets: Sequence[StsSet]
    pairs: int
    classifier: Mapping[str, object]  # settings of the recipe `reference-classifier`

    def dataset_of(self, system: ExperimentSpec) -> SelectedPairs:
        """What a system is trained and measured on."""
        assert system.selection
        return self.select(system.selection)

    def select(self, selection: Selection) -> SelectedPairs:
        """These pairs, as data of a training."""
        table, count = self.tables[selection.table], self.pairs * selection.times
        classifier = self.classifier if selection.keep.startswith("classifier") else {}
        settings = json.dumps([asdict(selection), count, dict(classifier)], sort_keys=True)
        sha256 = hashlib.sha256(f"{table.content} {settings}".encode()).hexdigest()
        return SelectedPairs(
            COLUMNS, [table.path], self.sets, {}, sha256, table, selection, self.pairs, self.classifier
        )


def read_paraphrases(folder: Path, most: int, classifier: Mapping[str, object]) -> Paraphrases:
    """What `folder` has; a selection has `most` pairs, or a fifth of the references of the smallest table.

    Raises NotFound where the folder, its back-translations or an STS year are missing, and DataError for files that
    can't be read.
    """
    if not folder.is_dir():
        raise NotFound(f"{folder}: no such folder.")
    sets = [*read_years(folder), *optional_set(folder, "stsb-dev")]
    sets += optional_set(folder, "sick-test") or optional_set(folder, "sick-train")
    tables = tables_in(folder, "backtranslated", "", TRANSLATED, sets)
    if not tables:
        raise NotFound(f"{folder}: no back-translations; expected backtranslated/fr-news.tsv.xz or such.")
    tables += tables_in(folder, "paraphrase", "en.", HUMAN, sets)
    pairs = min(most, *(table.references // PER_PAIR for table in tables))
    if not pairs:
        smallest = min(tables, key=lambda table: table.references)
        raise DataError(f"{smallest.path}: {smallest.references} references; expected {PER_PAIR} or more.")
    return Paraphrases({table.name: table for table in tables}, sets, pairs, classifier)


def tables_in(
    folder: Path, below: str, prefix: str, columns: tuple[str, ...], sets: Sequence[StsSet]
) -> list[ParaphraseTable]:
    """The tables of one kind, the one with most references first."""
    tables = []
    for path in sorted(folder.glob(f"{below}/{prefix}*")):
        name = path.name.removeprefix(prefix).partition(".tsv")[0]
        if path.name.endswith(TABLES[:-1]):  # a Parquet file would need its own column names
            references = len({row[0] for row in read_pairs(path, columns, Skipped())})
            tables.append(ParaphraseTable(name, path, columns, references, content_hash([path], sets, {})))
    return sorted(tables, key=lambda table: -table.references)


@dataclass(frozen=True)
class SelectedPairs(Dataset):
    """Pairs of one table. Columns, sets and hash are those of every dataset."""

    table: ParaphraseTable
    selection: Selection
    base: int  # pairs of a selection that is not larger than others
    classifier: Mapping[str, object]

    @property
    def name(self) -> str:
        """That of the table."""
        return self.table.name

    hard: ClassVar[bool] = False  # this paper does not know Hard STS

    @property
    def with_cost(self) -> bool:
        """Whether costs are read: where nothing asks for them, they may be missing."""
        return self.selection.keep.startswith("cost")

    @property
    def is_random(self) -> bool:
        """Whether they are neither filtered nor more than usual."""
        return self.selection == Selection(self.name)

    def path(self, out: Path) -> Path:
        """The file of its pairs."""
        return out / f"{self.name}-{self.sha256[:10]}.tsv.zst"

    def pairs(self, out: Path, say: Say, device: str) -> Source:
        """The pairs, selected where the file is missing; DataError where the filter keeps too few."""
        path, wanted = self.path(out), self.base * self.selection.times
        if not path.exists():
            say(f"{self.name}: selecting {wanted:,} pairs {self.selection.keep}".rstrip())
            models = self.models(out, say, device)
            keep = (self.range(out, models),) if self.selection.keep else ()
            rules = replace(RULES, max_pairs=wanted, keep=keep, first_of_reference=True)
            columns = [*COLUMNS, "cost:label", "_"] if self.with_cost else [*COLUMNS, *self.unread]
            new = path.with_name(f"new-{path.name}")
            done = clean([self.part(out, "mined")], columns, new, rules, exclude=[self.evaluated(out)], models=models)
            if done.kept < wanted:
                raise DataError(
                    f"{self.name} {self.selection.keep}: {done.kept:,} pairs; every filter needs {wanted:,}."
                )
            card_path(new).replace(card_path(path))
            new.replace(path)
        return Source(path, ("a", "b", "_") if self.with_cost else ("a", "b"))

    def text(self, out: Path, say: Say, device: str) -> Source:
        """All that could be selected, so that the filters of a table share their tokens."""
        path = out / f"{self.name}-{self.table.content[:10]}-text.tsv.zst"
        if not path.exists():
            columns = [*COLUMNS, *self.unread]
            clean([self.part(out, "mined")], columns, path, RULES, exclude=[self.evaluated(out)])
        return Source(path, ("a", "b"))

    def part(self, out: Path, part: str) -> Path:
        """The table's "mined" rows, or those "set-aside" for models; both are written where they are missing."""
        paths = {name: out / f"{self.name}-{self.table.content[:10]}-{name}.tsv.zst" for name in ("mined", "set-aside")}
        if not all(path.exists() for path in paths.values()):
            columns = ["_column" if column == "_" else column for column in self.table.columns]
            with (
                pair_file(paths["mined"], columns) as add_mined,
                pair_file(paths["set-aside"], columns) as add_others,
            ):
                pairs = read_pairs(self.table.path, columns, Skipped())
                while rows := list(islice(pairs, 10_000)):
                    aside = filters.hashes([filters.key(row[0]) for row in rows], 0) % np.uint64(SET_ASIDE) == 0
                    for add, chosen in ((add_mined, ~aside), (add_others, aside)):
                        add([[cell.encode() for cell in rows[index]] for index in np.flatnonzero(chosen)])
        return paths[part]

    def models(self, out: Path, say: Say, device: str) -> dict[str, SentenceScore]:
        """The model that its filter scores by, trained on what is set aside."""
        score = self.selection.keep.partition("=")[0]
        if score == "perplexity":
            rows = read_pairs(self.part(out, "set-aside"), self.file_columns, Skipped())
            return {score: Perplexity(dict.fromkeys(row[0] for row in rows))}
        if score == "classifier":
            return {score: ReferenceProbability.load(self.trained_classifier(out, say, device), device)}
        return {}

    @property
    def unread(self) -> list[str]:
        """As many columns as the table has beside its texts."""
        return ["_"] * (len(self.table.columns) - len(HUMAN))

    @property
    def file_columns(self) -> tuple[str, ...]:
        """Names of the columns of a part, the texts alone read."""
        return (*HUMAN, *self.unread)

    def classifier_folder(self, out: Path) -> Path:
        """The run of the classifier of this table's references."""
        settings = json.dumps([self.table.content, dict(self.classifier)], sort_keys=True)
        return out / f"{self.name}-{hashlib.sha256(settings.encode()).hexdigest()[:10]}-classifier"

    def trained_classifier(self, out: Path, say: Say, device: str) -> Path:
        """Its run, trained from where it stopped."""
        folder = self.classifier_folder(out)
        if (folder / SETTINGS).exists():
            training.resume(folder, device=device)
            return folder
        shutil.rmtree(folder, ignore_errors=True)  # leftovers of a killed process
        say(f"{self.name}: training a classifier of references")
        recipe = recipes.build("reference-classifier", dict(self.classifier))
        training.train(recipe, [Source(self.part(out, "set-aside"), self.file_columns)], folder, device=device)
        return folder

    def range(self, out: Path, models: Mapping[str, SentenceScore]) -> ScoreRange:
        """What the filter keeps, quantiles made numbers by the first candidates of some references."""
        if "%" not in self.selection.keep:
            return ScoreRange.parse(self.selection.keep)
        score = self.selection.keep.partition("=")[0]
        columns = TRANSLATED if self.with_cost else self.file_columns
        rows = list(islice(first_of_reference(read_pairs(self.part(out, "mined"), columns, Skipped())), SAMPLE))
        costs = np.array([number(row[2]) for row in rows]) if self.with_cost else None
        candidates = Candidates([row[:2] for row in rows], np.zeros((len(rows), 2)), numbers=costs)
        scores = pair_scores("spaces", models)[score](candidates)
        if not np.isfinite(scores).any():
            raise DataError(f"{self.table.path}: no candidate has a {score}; leave the filter out.")
        return ScoreRange.parse(
            re.sub(
                r"(\d+)%",
                lambda quantile: f"{np.nanpercentile(scores, int(quantile[1])):.4f}",
                self.selection.keep,
            )
        )


def first_of_reference(rows: Iterator[Row]) -> Iterator[Row]:
    """The first row of each reference."""
    seen: set[str] = set()
    for row in rows:
        if row[0] not in seen:
            seen.add(row[0])
            yield row
