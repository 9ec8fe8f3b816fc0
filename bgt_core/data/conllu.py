"""CoNLL-U (universaldependencies.org/format.html): read parsed sentences, and check that they are trees."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

import conllu
from conllu.exceptions import ParseException

from bgt_core.data.text import normalise
from bgt_core.data.textfile import text_lines
from bgt_core.errors import DataError

COLUMNS = 10
FIELDS = ("id", "form", "upos", "feats", "head", "deprel", "misc")  # that are read here


@dataclass(frozen=True)
class Word:
    """One syntactic word; `head` is the number of its head, 0 for the root."""

    number: int  # from 1, in the order of the sentence
    form: str
    upos: str
    feats: dict[str, str]
    head: int
    relation: str  # with its subtype, as in nsubj:pass

    def is_a(self, relation: str) -> bool:
        """Whether this is the relation to the head, whatever its subtype."""
        return self.relation.partition(":")[0] == relation


@dataclass(frozen=True)
class Surface:
    """A run of written text: one word, or several as one (French "du", words 3 and 4)."""

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
        dependents: dict[int, list[Word]] = {number: [] for number in range(len(self.words) + 1)}
        for word in self.words:
            dependents[word.head].append(word)
        return dependents

    @property
    def root(self) -> Word:
        return self.children[0][0]

    def under(self, word: Word) -> set[int]:
        """Numbers of a word and of all its descendants."""
        numbers, stack = set(), [word]
        while stack:
            numbers.add(stack[-1].number)
            stack += self.children[stack.pop().number]
        return numbers

    def text(self, surfaces: Sequence[Surface] | None = None) -> str:
        """The sentence, or part of it, as written."""
        parts = self.surfaces if surfaces is None else surfaces
        return normalise("".join(part.form + " " * part.space for part in parts))


def read_conllu(files: Sequence[Path]) -> list[Parsed]:
    """The sentences of all files (plain, .gz, .xz, .zst).

    Raises DataError with file and line for a sentence that is not CoNLL-U or not a tree.
    """
    return [sentence for file in files for sentence in _sentences(file)]


def _sentences(file: Path) -> Iterator[Parsed]:
    for blank, lines in groupby(_rows(file), lambda row: not row[1].strip()):
        rows = [] if blank else list(lines)
        if rows:
            yield _parsed([line for _, line in rows], f"{file}:{rows[0][0]}")


def _rows(file: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of words, and the blank ones between sentences."""
    for number, line in text_lines(file):
        columns = line.count("\t") + 1
        if line.strip() and not line.startswith("#"):
            if columns != COLUMNS:
                raise DataError(f"{file}:{number}: {columns} columns; CoNLL-U has {COLUMNS}, separated by tabs.")
            yield number, re.sub(" {2,}", " ", line)  # the library would take two spaces for a tab
        elif not line.strip():
            yield number, ""


def _parsed(rows: list[str], location: str) -> Parsed:
    """`location` is the file and the first word's line."""
    words: list[Word] = []
    surfaces: list[Surface] = []
    try:
        (tokens,) = conllu.parse("\n".join(rows))
    except (ParseException, ValueError) as error:
        raise DataError(f"{location}: sentence with a bad number: {error}") from None
    for token in tokens:
        if missing := [name for name in FIELDS if name not in token]:
            raise DataError(f"{location}: sentence with a word that has no {missing[0]}.")
        space = (token["misc"] or {}).get("SpaceAfter") != "No"
        number = token["id"]
        if not isinstance(number, int):
            if number and number[1] == "-":  # "3-4": two words written as one; "4.1", an empty node, is not written
                surfaces.append(Surface(number[0], number[2], token["form"], space))
            continue
        feats = token["feats"] or {}
        if token["head"] is None or not all(feats.values()):
            raise DataError(f"{location}: sentence with a bad number or feature: word {number}, {token['form']}.")
        words.append(Word(number, token["form"], token["upos"], feats, token["head"], token["deprel"]))
        if not (surfaces and surfaces[-1].first <= number <= surfaces[-1].last):
            surfaces.append(Surface(number, number, token["form"], space))
    parsed = Parsed(words, surfaces)
    _check_tree(parsed, location)
    return parsed


def _check_tree(parsed: Parsed, location: str) -> None:
    """DataError unless words are numbered and hang on one root."""
    words = parsed.words
    roots = sum(word.head == 0 for word in words)
    if [word.number for word in words] != list(range(1, len(words) + 1)):
        raise DataError(f"{location}: sentence whose words are not numbered 1, 2, 3, ...")
    if roots != 1 or not all(0 <= word.head <= len(words) for word in words):
        raise DataError(f"{location}: sentence with {roots} roots or a head that is not a word; expected one root.")
    if len(parsed.under(parsed.root)) < len(words):
        raise DataError(f"{location}: sentence with a cycle; expected a tree.")
