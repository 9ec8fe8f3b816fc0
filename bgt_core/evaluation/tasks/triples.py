"""Triples: is a sentence nearer to its paraphrase than to a sentence with almost the same words and another meaning?

file, or held-out triples of the grammar -> `Triples` -> similarities -> accuracy for each kind of altered sentence
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.textfile import text_lines
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.systems import System, systems
from bgt_core.evaluation.task import Lang, Latent, Task, one_path, tsv_rows
from bgt_core.grammar import LANGS, triples
from bgt_core.vectors.arrays import above

ALL = "all"  # name of the score over all kinds of altered sentences
COLUMNS = ("kind", "sentence", "paraphrase", "altered sentence")


@dataclass(frozen=True)
class Triples:
    """N triples of sentences in one language. Raises DataError if there are no triples."""

    name: str
    kinds: Sequence[str]  # how each altered sentence was made, such as by negation; "" if unknown
    sentences: Sequence[str]
    paraphrases: Sequence[str]
    altered: Sequence[str]

    def __post_init__(self) -> None:
        if not self.sentences:
            raise DataError(f"{self.name}: no triples; expected lines of kind, sentence, paraphrase, altered sentence.")


def read_triples(path: Path) -> Triples:
    """Read a TSV without header and quotes: kind (optional), sentence, paraphrase and altered sentence.

    Rows with an empty paraphrase are skipped. Raises NotFound if the file is missing. Raises DataError if the file is
    damaged, if all rows are skipped, or if a row has the wrong number of columns or an empty sentence.
    """
    first = next((line for _, line in text_lines(path)), "")
    columns = COLUMNS if first.count("\t") == 3 else COLUMNS[1:]
    rows = []
    for number, fields in tsv_rows(path, columns):
        kind, sentence, paraphrase, altered = ["", *(field.strip() for field in fields)][-4:]
        if not sentence or not altered:
            raise DataError(f"{path}:{number}: an empty sentence; remove the line.")
        if paraphrase:
            rows.append((kind, sentence, paraphrase, altered))
    return Triples(path.name, *([row[column] for row in rows] for column in range(4)))


class TriplesKey(NamedTuple):
    kind: str
    triples: int


@dataclass(frozen=True)
class TriplesTask(Task[Triples]):
    """Triples: is a paraphrase nearer to a sentence than an altered sentence with the same words?

    In the altered sentence, roles or attributes are swapped, or a negation is added or removed. Ties count half.
    """

    data = (
        "TSV (.gz .xz .zst) of kind, sentence, paraphrase and altered sentence, or of the last three; by default "
        "held-out triples of the built-in grammar."
    )

    count: Annotated[int | None, "Number of triples of the grammar, used if DATA is missing; by default 1,000."] = None
    lang: Lang = "en"
    latent: Latent = None

    def load(self, paths: Sequence[Path], *, seed: int) -> Triples:
        if paths and self.count is not None:
            raise UsageError("only applies to triples of the grammar; leave it out, or the file.", parameter="count")
        if paths:
            return read_triples(one_path(paths, "one file of triples"))
        if self.lang not in LANGS:
            languages = " and ".join(LANGS)
            raise UsageError(f"{self.lang}: the built-in triples are in {languages}; give a file.", parameter="lang")
        drawn = triples(1_000 if self.count is None else self.count, seed, held_out=True)
        first, second, third = ([triple.texts[self.lang][column] for triple in drawn] for column in range(3))
        kinds = [triple.kind for triple in drawn]
        return Triples(f"held-out triples of the grammar ({self.lang})", kinds, first, second, third)

    def statistic(self, items: Triples, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Measure how often the paraphrase of a sentence is nearer to it than the altered sentence."""
        rows = systems(encoders, [self.lang], self.latent)
        nearer = np.stack([paraphrase_nearer(system, items, self.lang) for system in rows])  # (S, N)
        kinds = list(dict.fromkeys(items.kinds))
        several = kinds if len(kinds) > 1 else []
        by_kind = {kind: np.flatnonzero([each == kind for each in items.kinds]) for kind in several}
        by_kind[ALL] = np.arange(len(items.kinds))
        return Statistic(
            systems=[system.name for system in rows],
            hits={TriplesKey(kind, len(chosen)): nearer[:, chosen] for kind, chosen in by_kind.items()},
            about=f"{items.name}: {len(items.kinds):,} triples; x 100: triples whose paraphrase is nearer to the "
            "sentence than the altered sentence is, ties count half",
        )


TASK = TriplesTask


def paraphrase_nearer(system: System, items: Triples, lang: str) -> np.ndarray:
    """Score each triple: 1 if the paraphrase is nearer, 0 if the altered sentence is, 0.5 for a tie, (N,)."""
    columns = items.sentences, items.paraphrases, items.altered
    sentence, paraphrase, altered = np.split(system.embed([text for each in columns for text in each], lang), 3)
    compare = system.encoder.similarity_pairwise
    return above(compare(sentence, paraphrase), compare(sentence, altered))
