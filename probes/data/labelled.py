"""SentEval's format of labelled sentences: split TAB label TAB anything TAB tokens (their data/probing)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from bgt_core.data.textfile import column_hint, text_lines
from bgt_core.data.trees import detokenise
from bgt_core.errors import DataError
from probes.task import Items
from probes.words import split_words

SPLIT_NAMES = {"tr": "train", "va": "dev", "te": "test"}
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


def read_labelled(file: Path, lang: str, reordered: bool = False, verbatim: bool = False) -> Items:
    """Read every row of a file (plain, .gz, .xz, .zst) in order, labels unchanged, tokens joined to text.

    The first cell is the split, the second the label, the last the sentence, as in SentEval. Rows with the same words
    in the same order form a group; with `reordered`, rows with the same words in any order. Quotes that a CSV writer
    added are removed. With `verbatim` quotes stay, and tokens are joined by single spaces, as for SentEval's users.
    Raises DataError with file and line.
    """
    items = Items()
    splits: list[str] = []
    groups: dict[tuple[str, ...], int] = {}  # words -> group
    for number, line in text_lines(file):
        cells = line.rstrip().split("\t")
        if len(cells) < 3:
            hint = column_hint(line, 3)
            raise DataError(f"{file}:{number}: {len(cells)} of 3 columns; expected split, label, sentence{hint}.")
        if cells[0] not in SPLIT_NAMES:
            raise DataError(f"{file}:{number}: split '{cells[0]}'; expected {', '.join(SPLIT_NAMES)}.")
        sentence = " ".join(cells[-1].split()) if verbatim else _text(cells[-1], lang)
        if not (sentence and cells[1].strip()):
            raise DataError(f"{file}:{number}: an empty {'label' if sentence else 'sentence'}; expected text.")
        words = split_words(sentence.casefold())
        group = groups.setdefault(tuple(sorted(words) if reordered else words), len(groups))
        items.add(sentence, cells[1] if verbatim else cells[1].strip(), group)
        splits.append(SPLIT_NAMES[cells[0]])
    if not items.labels:
        raise DataError(f"{file} is empty; expected lines of split, label, sentence.")
    return replace(items, splits=splits)


def _text(tokens: str, lang: str) -> str:
    """Join tokens to ordinary text."""
    if '""' in tokens and _QUOTED.fullmatch(tokens):
        tokens = tokens[1:-1].replace('""', '"')
    return detokenise(tokens, lang)
