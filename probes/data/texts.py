"""Text without labels: the sentences of a language, and their translations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bgt_core.data.columns import split_langs
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.text import normalise
from bgt_core.data.textfile import text_lines
from bgt_core.errors import DataError, UsageError


@dataclass(frozen=True)
class Text:
    """N distinct normalised sentences; those of a group are translations, directly or in a chain."""

    sentences: list[str]
    groups: list[int]


def read_sentences(file: Path, column: int | None = None) -> list[str]:
    """Read the normalised, distinct sentences of a text file with one sentence per line, or of a column (from 1) of a
    TSV.

    The file may end in .gz, .xz or .zst. Raises NotFound or DataError, with the line, for a file that is absent,
    damaged, not UTF-8 or without that column; UsageError for a TSV without `column`.
    """
    sentences = []
    with_tab = "\t" in next(text_lines(file), (1, ""))[1]  # the error below says more of these
    for number, line in text_lines(file, sentences=column is None and not with_tab):
        cells = line.split("\t")
        if column is None and len(cells) > 1:
            text = f"is needed: {file}:{number} has {len(cells)} columns; give the column of the sentences, from 1."
            raise UsageError(text, parameter="column")
        if column is not None and not 1 <= column <= len(cells):
            raise DataError(f"{column} is missing: {file}:{number} has {len(cells)} columns.", parameter="column")
        sentences.append(normalise(cells[(column or 1) - 1]))
    return list(dict.fromkeys(filter(None, sentences)))


def read_texts(files: Sequence[Path], langs: Sequence[str], column: int | None = None) -> dict[str, Text]:
    """Read the sentences of each language in all files.

    A file named like en-fr.corpus.tsv holds translations, in the order of its name; others hold text of one language,
    one sentence per line, or in `column` of a TSV. Parallel corpora repeat sentences with other translations, and
    near-copies in one language share a translation: sentences connected by a chain of translations form a group. Raises
    DataError with file and line, UsageError for a file whose language is unclear.
    """
    parents: dict[tuple[str, str], tuple[str, str]] = {}  # (language, sentence) -> another of its group (union-find)

    def head(node: tuple[str, str]) -> tuple[str, str]:
        parents.setdefault(node, node)
        while parents[node] != node:
            parents[node] = node = parents[parents[node]]
        return node

    for file in files:
        pair = pair_of(file)
        if pair and column is None:
            for left, right in read_pairs(file, pair, Skipped(), strict=True):
                parents[head((pair[0], left))] = head((pair[1], right))
        elif len(langs) == 1:
            for sentence in read_sentences(file, column):
                head((langs[0], sentence))
        else:
            lang = file.name.partition(".")[0]
            if lang not in langs:
                raise UsageError(f"{file}: its language is unclear; name it en.txt, or en-fr.tsv for translations.")
            for sentence in read_sentences(file):
                head((lang, sentence))
    texts = {lang: Text([], []) for lang in langs}
    numbers: dict[tuple[str, str], int] = {}  # head of a group -> its number
    for node in list(parents):
        group = numbers.setdefault(head(node), len(numbers))
        lang, sentence = node
        if lang in texts:
            texts[lang].sentences.append(sentence)
            texts[lang].groups.append(group)
    return texts


def pair_of(file: Path) -> tuple[str, str] | None:
    """The languages of a TSV of translations, from its name: en-fr.corpus.tsv.xz -> (en, fr)."""
    name, *rest = file.name.split(".")
    langs = split_langs(name)
    primary = [lang.partition("-")[0] for lang in langs]
    return (langs[0], langs[1]) if "tsv" in rest and list(map(len, primary)) == [2, 2] else None
