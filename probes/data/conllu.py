"""CoNLL-U (universaldependencies.org/format.html): parsed sentences, checked as they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bgt_core.data.parallel import lines
from bgt_core.data.text import normalise
from bgt_core.errors import DataError


@dataclass(frozen=True)
class Word:
    """One syntactic word; `head` is the number of its head, 0 for the root."""

    number: int  # from 1, its place in the sentence
    form: str
    upos: str
    feats: dict[str, str]
    head: int
    relation: str  # with its subtype, as in nsubj:pass

    def is_a(self, relation: str) -> bool:
        """Whether the relation to the head is this one, whatever its subtype."""
        return self.relation.partition(":")[0] == relation


@dataclass(frozen=True)
class Surface:
    """What is written: one word, or several as one (French "du", words 3 and 4)."""

    first: int
    last: int
    form: str
    space: bool  # follows


@dataclass(frozen=True)
class Parsed:
    """A sentence: one root, no cycle."""

    words: list[Word]
    surfaces: list[Surface]

    @cached_property
    def children(self) -> dict[int, list[Word]]:
        """Number of a head -> its dependents in order; 0 -> the root alone."""
        found: dict[int, list[Word]] = {number: [] for number in range(len(self.words) + 1)}
        for word in self.words:
            found[word.head].append(word)
        return found

    @property
    def root(self) -> Word:
        return self.children[0][0]

    def under(self, word: Word) -> set[int]:
        """Numbers of a word and of all below it."""
        found, left = set(), [word]
        while left:
            found.add(left[-1].number)
            left += self.children[left.pop().number]
        return found

    def text(self, surfaces: Sequence[Surface] | None = None) -> str:
        """The sentence, or part of it, as written."""
        parts = self.surfaces if surfaces is None else surfaces
        return normalise("".join(part.form + " " * part.space for part in parts))


def read_conllu(files: Sequence[Path]) -> list[Parsed]:
    """The sentences of all files (plain, .gz, .xz, .zst); BgtError with file and line for a bad one."""
    return [sentence for file in files for sentence in _sentences(file)]


def _sentences(file: Path) -> Iterator[Parsed]:
    rows: list[list[str]] = []
    number = 0
    for number, line in enumerate(lines(file), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise DataError(f"{file}:{number}: not UTF-8; convert the file to UTF-8.") from None
        if text.startswith("#"):
            continue
        if text.strip():
            cells = text.split("\t")
            if len(cells) != 10:
                raise DataError(f"{file}:{number}: {len(cells)} columns; CoNLL-U has 10, separated by tabs.")
            rows.append(cells)
        elif rows:
            yield _parsed(rows, f"{file}:{number - len(rows)}")
            rows = []
    if rows:
        yield _parsed(rows, f"{file}:{number - len(rows) + 1}")


def _parsed(rows: list[list[str]], place: str) -> Parsed:
    """`place` is the file and the first line of the sentence."""
    words: list[Word] = []
    surfaces: list[Surface] = []
    for number, form, _, upos, _, feats, head, relation, _, misc in rows:
        if "." in number:  # an empty node is not written
            continue
        space = "SpaceAfter=No" not in misc.split("|")
        try:
            if "-" in number:
                first, last = map(int, number.split("-"))
                surfaces.append(Surface(first, last, form, space))
                continue
            marks = {} if feats == "_" else dict(mark.split("=", 1) for mark in feats.split("|"))
            words.append(Word(int(number), form, upos, marks, int(head), relation))
        except ValueError:
            raise DataError(
                f"{place}: sentence with a bad number or feature: {number} {form} {feats} {head}."
            ) from None
        if not (surfaces and surfaces[-1].first <= words[-1].number <= surfaces[-1].last):
            surfaces.append(Surface(words[-1].number, words[-1].number, form, space))
    heads = [word.head for word in words]
    if [word.number for word in words] != list(range(1, len(words) + 1)):
        raise DataError(f"{place}: sentence whose words are not numbered 1, 2, 3, ...")
    if heads.count(0) != 1 or not all(0 <= head <= len(words) for head in heads):
        raise DataError(f"{place}: sentence with {heads.count(0)} roots or a head that is no word; expected one root.")
    parsed = Parsed(words, surfaces)
    if len(parsed.under(parsed.root)) < len(words):
        raise DataError(f"{place}: sentence with a cycle of heads; expected a tree.")
    return parsed
