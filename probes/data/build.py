"""From text to the splits of a probe: reading sentences, and who is trained and tested on what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from bgt_core.data.parallel import lines
from bgt_core.data.text import normalise
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.grammar import pairs
from probes.data.items import RARE as RARE  # of the splits made here too

DEFAULT = 6_000  # sentences of the grammar
FOLDS = 10  # a tenth is tested, a tenth chooses the strength, the rest trains


def default_sentences(lang: str, seed: int = 0) -> list[str]:
    """Sentences of the built-in grammar; BgtError for a language that it does not have."""
    made = pairs(DEFAULT, seed)
    if lang not in made[0].texts:
        raise NotFound(
            f"No built-in sentences for '{lang}' (there are for {', '.join(made[0].texts)}): give --data FILE."
        )
    return [pair.texts[lang] for pair in made]


def read_sentences(file: Path, column: int | None = None) -> list[str]:
    """Normalised, different sentences of a text file, one a line, or of a column (from 1) of a TSV.

    The file may end in .gz, .xz or .zst. Raises BgtError for a file that is absent, damaged, not UTF-8,
    or lacks that column, and names the line.
    """
    sentences = []
    for number, line in enumerate(lines(file), 1):
        try:
            cells = line.decode().split("\t")
        except UnicodeDecodeError:
            raise DataError(f"{file}:{number}: not UTF-8; convert the file to UTF-8.") from None
        if column is None and len(cells) > 1:
            raise UsageError(f"{file}:{number}: {len(cells)} columns; say which holds the sentences, as in --column 1.")
        if column is not None and not 1 <= column <= len(cells):
            raise DataError(f"{file}:{number}: {len(cells)} columns, so there is no --column {column}.")
        sentences.append(normalise(cells[(column or 1) - 1]))
    return list(dict.fromkeys(filter(None, sentences)))


def splits(groups: Sequence[int], seeds: int, seed: int = 0) -> Iterator[tuple[list[int], list[int], list[int]]]:
    """(train, dev, test) rows for each of at most 10 seeds; a group is never divided.

    Groups are shuffled once and cut into tenths; seed k tests on the k-th tenth and chooses on the next.
    No item is tested twice, so test items of several seeds can be counted together.
    """
    order = list(dict.fromkeys(groups))
    Random(seed).shuffle(order)
    fold = {group: place % FOLDS for place, group in enumerate(order)}
    rows = [[row for row, group in enumerate(groups) if fold[group] == tenth] for tenth in range(FOLDS)]
    for k in range(seeds):
        dev = (k + 1) % FOLDS
        train = sorted(row for tenth in range(FOLDS) if tenth not in (k, dev) for row in rows[tenth])
        yield train, rows[dev], rows[k]
