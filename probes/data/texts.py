"""Text without labels: the sentences of a language, and which of them say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.errors import UsageError
from probes.data.build import read_sentences


@dataclass(frozen=True)
class Text:
    """N different normalised sentences; those of one group are translations, directly or in a chain."""

    sentences: list[str]
    groups: list[int]


def read_texts(files: Sequence[Path], langs: Sequence[str], column: int | None = None) -> dict[str, Text]:
    """The sentences of each language in all files.

    A file named like en-fr.corpus.tsv holds translations, in the order of its name; others hold text of the one
    language, one sentence a line, or in `column` of a TSV. Parallel corpora hold a sentence many times, with other
    translations, and near-copies of it in one language share a translation: what a chain of translations joins is
    one group. Raises BgtError with file and line.
    """
    parents: dict[tuple[str, str], tuple[str, str]] = {}  # (language, sentence) -> another of its group

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
                raise UsageError(f"{file}: whose text is this? Name it en.txt, or en-fr.tsv for translations.")
            for sentence in read_sentences(file):
                head((lang, sentence))
    texts, numbers = {lang: Text([], []) for lang in langs}, {}
    for node in list(parents):
        group = numbers.setdefault(head(node), len(numbers))
        if node[0] in texts:
            texts[node[0]].sentences.append(node[1])
            texts[node[0]].groups.append(group)
    return texts


def pair_of(file: Path) -> tuple[str, str] | None:
    """The languages of a TSV of translations, from its name: en-fr.corpus.tsv.xz -> (en, fr)."""
    name, *rest = file.name.split(".")
    left, _, right = name.partition("-")
    return (left, right) if "tsv" in rest and len(left) == len(right) == 2 else None
