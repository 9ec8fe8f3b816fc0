"""Is a sentence nearer to its paraphrase than to a sentence with almost the same words and another meaning?

file, or the grammar's held-out part -> `Triples` -> similarity of each pair -> shares by kind, intervals, differences
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.textfile import column_hint, text_lines
from bgt_core.errors import DataError, UsageError, did_you_mean
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.systems import System, systems
from bgt_core.evaluation.task import Lang, Latent, Task, one_path
from bgt_core.grammar import LANGS, triples
from bgt_core.vectors.compare import above

ALL = "all"  # the score over triples of every kind
BLOCK = 2_048  # triples embedded at once, to bound memory


@dataclass(frozen=True)
class Triples:
    """N triples of sentences of one language. Raises DataError for an empty set."""

    name: str
    kinds: Sequence[str]  # of each triple; "" without kinds
    sentences: Sequence[str]
    paraphrases: Sequence[str]
    altered: Sequence[str]
    skipped: int = 0  # rows of the file without a paraphrase

    def __post_init__(self) -> None:
        if not self.sentences:
            raise DataError(f"{self.name}: no triples; expected lines of kind, sentence, paraphrase, altered sentence.")
        if len({len(column) for column in (self.kinds, self.sentences, self.paraphrases, self.altered)}) > 1:
            raise DataError(f"{self.name}: columns of different lengths; each triple needs an entry in all of them.")

    def __len__(self) -> int:
        return len(self.sentences)


def read_triples(path: Path | str, kinds: Sequence[str] = ()) -> Triples:
    """Read triples from a TSV without header and quotes, plain, .gz, .xz or .zst.

    Args:
        path: Lines of kind, sentence, paraphrase and altered sentence, or of the last three.
        kinds: Kinds to keep; none keeps all.

    Returns:
        The triples, in the order of the file. Rows with an empty paraphrase are skipped and counted.

    Raises:
        UsageError: A kind that no row has.
        NotFound: The file is absent.
        DataError: The file is damaged, no row is left, or, by file and line, a line has another number of columns or
            no sentence.
    """
    rows: list[list[str]] = []
    width = 0  # columns of the first line
    for number, line in text_lines(Path(path)):
        fields = [field.strip() for field in line.split("\t")]
        width = width or len(fields)
        if len(fields) != width or width not in (3, 4):
            columns = "kind, sentence, paraphrase and altered sentence, or the last three, in every line"
            hint = column_hint(line, 4) or column_hint(line, 3)
            raise DataError(f"{path}:{number}: {len(fields)} columns; expected {columns}{hint}.")
        kind, sentence, paraphrase, altered = fields if len(fields) == 4 else ["", *fields]
        if not sentence or not altered:
            raise DataError(f"{path}:{number}: an empty sentence; remove the line.")
        rows.append([kind, sentence, paraphrase, altered])
    known = sorted({row[0] for row in rows})
    if unknown := [kind for kind in kinds if kind not in known]:
        guess = did_you_mean(unknown[0], known)
        raise UsageError(f"{path}: no triples of kind '{unknown[0]}'; its kinds: {', '.join(known)}.{guess}")
    chosen = [row for row in rows if not kinds or row[0] in kinds]
    kept = [row for row in chosen if row[2]]
    kind_of, first, second, third = ([row[column] for row in kept] for column in range(4))
    return Triples(Path(path).name, kind_of, first, second, third, len(chosen) - len(kept))


class TriplesKey(NamedTuple):
    kind: str
    triples: int


@dataclass(frozen=True)
class TriplesTask(Task[Triples]):
    """Triples: is a paraphrase nearer to a sentence than an altered sentence of the same words?

    The altered sentence swaps roles or attributes, or changes a negation. Ties count half.
    """

    data = (
        "TSV (.gz .xz .zst) of kind, sentence, paraphrase and altered sentence, or of the last three; by default "
        "held-out triples of the built-in grammar."
    )

    kinds: Annotated[str | None, "Kinds of DATA, with commas, as swap_obj,swap_att; by default all."] = None
    count: Annotated[int | None, "Number of triples of the grammar, without DATA; by default 1,000."] = None
    lang: Lang = "en"
    latent: Latent = None

    def load(self, paths: Sequence[Path], *, seed: int) -> Triples:
        """Read a file, or draw from the grammar."""
        if paths and self.count is not None:
            raise UsageError(
                "is for the grammar's triples; a file is used as a whole. Leave one of them out.", parameter="count"
            )
        if self.kinds and not paths:
            raise UsageError("chooses rows of a file; give DATA.", parameter="kinds")
        if paths:
            return read_triples(one_path(paths, "one file of triples"), self.kinds.split(",") if self.kinds else ())
        if self.lang not in LANGS:
            languages = " and ".join(LANGS)
            raise UsageError(f"{self.lang}: the grammar's triples are in {languages}; give a file.", parameter="lang")
        drawn = triples(1_000 if self.count is None else self.count, seed, held_out=True)
        first, second, third = ([triple.texts[self.lang][column] for triple in drawn] for column in range(3))
        kinds = [triple.kind for triple in drawn]
        return Triples(f"held-out triples of the grammar ({self.lang})", kinds, first, second, third)

    def statistic(self, items: Triples, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Compare both sentences of every triple with the first."""
        rows = systems(encoders, [self.lang], self.latent)
        nearer = np.stack([paraphrase_nearer(system, items, self.lang) for system in rows])  # (S, N)
        kinds = list(dict.fromkeys(items.kinds))
        several = kinds if len(kinds) > 1 else []
        by_kind = {kind: np.flatnonzero([each == kind for each in items.kinds]) for kind in several}
        by_kind[ALL] = np.arange(len(items))
        skipped = f"; {items.skipped:,} rows without a paraphrase skipped" if items.skipped else ""
        return Statistic(
            systems=[system.name for system in rows],
            hits={TriplesKey(kind, len(chosen)): nearer[:, chosen] for kind, chosen in by_kind.items()},
            about=f"{items.name}: {len(items):,} triples{skipped}; x 100: triples whose paraphrase is nearer to the "
            "sentence than the altered sentence is, ties count half",
            counts={"triples": len(items), "skipped": items.skipped},
        )


TASK = TriplesTask


def paraphrase_nearer(system: System, items: Triples, lang: str) -> np.ndarray:
    """For each triple 1 if the paraphrase is nearer, 0 if the altered sentence is, 0.5 for a tie: (N,).

    Similarities that differ only by rounding are a tie.
    """
    nearer = []
    for start in range(0, len(items), BLOCK):
        columns = [each[start : start + BLOCK] for each in (items.sentences, items.paraphrases, items.altered)]
        sentence, paraphrase, altered = np.split(system.embed([text for each in columns for text in each], lang), 3)
        compare = system.encoder.similarity_pairwise
        nearer.append(above(compare(sentence, paraphrase), compare(sentence, altered)))
    return np.concatenate(nearer)
