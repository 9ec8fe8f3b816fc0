"""Bracketed constituency trees, as the Penn Treebank writes them: (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bgt_core.data.detokenise import detokenise
from bgt_core.data.textfile import text_lines
from bgt_core.errors import DataError

DEEPEST = 200  # nested brackets: real sentences have fewer, and a tree is walked by recursion
_PART = re.compile(r"[()]|[^\s()]+")
ROOTS = frozenset({"", "ROOT", "TOP", "S1"})  # labels of brackets around the whole sentence
_EMPTY = "-NONE-"  # label of a trace


@dataclass(frozen=True)
class Tree:
    """A constituent with its parts, or a part of speech with its word; a sentence is its top constituent.

    Labels have no function ("NP" for "NP-SBJ"); traces, and constituents of traces alone, are left out.
    """

    label: str
    children: tuple[Tree, ...] = ()
    word: str = ""  # only for a part of speech, which has no children

    @property
    def leaves(self) -> list[Tree]:
        """The parts of speech with their words, in order."""
        return [leaf for child in self.children for leaf in child.leaves] if self.children else [self]

    @property
    def depth(self) -> int:
        """Depth in constituents of the deepest word; its part of speech does not count."""
        return 1 + max(child.depth for child in self.children) if self.children else 0

    def text(self, lang: str) -> str:
        """Join the words to ordinary text."""
        return detokenise(" ".join(leaf.word for leaf in self.leaves), lang)


@dataclass
class _Open:
    """A bracket being read."""

    location: str  # file and line
    label: str = ""
    word: str = ""
    children: list[Tree] = field(default_factory=list)


def read_trees(files: Sequence[Path]) -> list[Tree]:
    """Read the trees of all files (plain, .gz, .xz, .zst), on one line or several each, without a bracket around the
    whole sentence such as (ROOT ...).

    Raises DataError with file and line for a bad one.
    """
    return [tree for file in files for tree in _trees(file)]


def _trees(file: Path) -> Iterator[Tree]:
    stack: list[_Open] = []
    after_bracket = False
    for number, line in text_lines(file):
        location = f"{file}:{number}"
        for part in _PART.findall(line):
            if part == "(":
                if stack and stack[-1].word:
                    raise DataError(f"{location}: a bracket after the word '{stack[-1].word}'; expected ')'.")
                if len(stack) == DEEPEST:
                    raise DataError(f"{location}: {DEEPEST} open brackets; expected the tree of one sentence.")
                stack.append(_Open(location))
            elif not stack:
                raise DataError(f"{location}: '{part}' outside any bracket; expected a tree, as in (S (NN Rain)).")
            elif part == ")":
                tree = _closed(stack.pop())
                if tree and stack:
                    stack[-1].children.append(tree)
                elif tree:
                    yield _top(tree)
            elif after_bracket:
                stack[-1].label = part
            elif stack[-1].word or stack[-1].children or not stack[-1].label:
                raise DataError(f"{location}: word '{part}' without a part of speech; expected one, as in (NN {part}).")
            else:
                stack[-1].word = part
            after_bracket = part == "("
    if stack:
        raise DataError(f"{stack[0].location}: a bracket that is never closed.")


def _closed(bracket: _Open) -> Tree | None:
    """The node of a closed bracket; None without a word."""
    if bracket.children:
        return Tree(_plain(bracket.label), tuple(bracket.children))
    return Tree(_plain(bracket.label), word=bracket.word) if bracket.word and bracket.label != _EMPTY else None


def _top(tree: Tree) -> Tree:
    while tree.label in ROOTS and len(tree.children) == 1:
        tree = tree.children[0]
    return tree


def _plain(label: str) -> str:
    """The label without function and number: NP-SBJ-1 -> NP, S=2 -> S; -LRB- stays."""
    return label if label.startswith("-") else re.split("[-=|]", label)[0] or label
