"""A folder of labelled pairs of questions, which the variational siamese network is compared on.

    FOLDER/quora/train.tsv.xz   label, 1 or 0, and two questions: what is trained on
    FOLDER/quora/dev.tsv.xz     likewise: what is measured on

A first stage reads all rows, and takes those outside its share of labels for no duplicates, so that their questions are
repeated and never reformulated; a second stage reads the rows of its share. All have one tokenizer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from analysis.reproduce.datasets import Dataset, Say
from analysis.reproduce.pair_scores import score_pairs
from bgt_core.data.columns import Source
from bgt_core.data.manifest import facts
from bgt_core.embedder import Embedder
from bgt_core.errors import NotFound
from bgt_core.evaluation.pairs.files import LabelledPairs, read_labelled
from bgt_core.evaluation.sts.score import StsSet
from bgt_core.files import write_text
from bgt_core.recipes.var_siamese import COLUMNS

SEED = 1  # seed of the choice of labelled rows; a smaller share is a subset of a larger one


@dataclass(frozen=True)
class LabelledQuestions(Dataset):
    """The training rows of one stage with one share of labels, and the test pairs."""

    train: LabelledPairs
    test: LabelledPairs
    share: float  # of the training rows whose labels are known
    all_rows: bool  # the others too, as no duplicates

    @property
    def name(self) -> str:
        """What its files begin with."""
        return "questions"

    @property
    def evaluation_sets(self) -> Sequence[StsSet]:
        """None: duplicates are told apart, and no similarity is graded."""
        return []

    @cached_property
    def labelled(self) -> LabelledPairs:
        """The rows whose labels are known, in their order."""
        count = round(self.share * len(self.train))
        rows = np.sort(np.random.default_rng(SEED).permutation(len(self.train))[:count])
        left, right = ([side[row] for row in rows] for side in (self.train.left, self.train.right))
        return LabelledPairs(f"{100 * self.share:g}% of {self.train.name}", self.train.labels[rows], left, right)

    @cached_property
    def rows(self) -> list[str]:
        """What is trained on: lines of a label and two questions."""
        if not self.all_rows:
            return lines(self.labelled)
        known = set(lines(self.labelled))
        return [line if line in known else "0" + line[1:] for line in lines(self.train)]

    def pairs(self, out: Path, say: Say, device: str) -> Source:
        """As they are given: nothing is cleaned away."""
        return written(out / f"{self.name}-{self.sha256[:10]}.tsv", self.rows)

    def text(self, out: Path, say: Say, device: str) -> Source:
        """All questions, whatever the share of labels."""
        return written(out / f"{self.name}-text.tsv", lines(self.train))

    def pair_scores(self, embedder: Embedder) -> Mapping[str, np.ndarray]:
        """Of the test pairs."""
        return score_pairs(embedder, self.labelled, self.test)


def lines(pairs: LabelledPairs) -> list[str]:
    """Label and both questions of each pair, between tabs."""
    rows = zip(pairs.labels, pairs.left, pairs.right, strict=True)
    return [f"{int(label)}\t{left}\t{right}" for label, left, right in rows]


def written(path: Path, rows: Sequence[str]) -> Source:
    """A file of these rows, made where it is missing."""
    if not path.exists():
        write_text(path, "\n".join(rows) + "\n")
    return Source(path, tuple(column.partition(":")[0] for column in COLUMNS))


@dataclass(frozen=True)
class QuestionFiles:
    """What a folder has."""

    train: LabelledPairs
    test: LabelledPairs
    sources: Sequence[Path]

    def dataset(self, share: float, all_rows: bool) -> LabelledQuestions:
        """For one stage with a share of labels."""
        parts = [*(facts(path)["sha256"] for path in self.sources), str(share), str(all_rows), str(SEED)]
        sha256 = hashlib.sha256(" ".join(parts).encode()).hexdigest()
        return LabelledQuestions(COLUMNS, self.sources, [], {}, sha256, self.train, self.test, share, all_rows)


def read_questions(folder: Path) -> QuestionFiles:
    """Raises NotFound where a file is missing, DataError for one that can't be read."""
    sources = []
    for name in ("train", "dev"):
        found = sorted(folder.glob(f"quora/{name}.tsv*"))
        if not found:
            raise NotFound(f"{folder}: no labelled questions; expected quora/{name}.tsv.xz.")
        sources.append(found[0])
    train, test = map(read_labelled, sources)
    return QuestionFiles(train, test, sources)
