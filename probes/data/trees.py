"""Bracketed constituency trees, as the Penn Treebank writes them: (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bgt_core.data.textfile import text_lines
from bgt_core.errors import DataError
from probes.data.detokenise import detokenise

_PART = re.compile(r"[()]|[^\s()]+")
_ROOTS = frozenset({"", "ROOT", "TOP", "S1"})  # brackets around the whole sentence, without meaning
_EMPTY = "-NONE-"  # label of a trace


@dataclass(frozen=True)
class Tree:
    """One sentence; labels without function ("NP" for "NP-SBJ"), without traces and constituents of traces alone."""

    sentence: str
    label: str  # of the top constituent
    children: tuple[str, ...]  # labels of its children
    depth: int  # constituents above the deepest word; parts of speech and the outermost bracket don't count


@dataclass
class _Open:
    """A bracket being read."""

    location: str  # file and line
    label: str = ""
    word: str = ""
    children: list[_Open] = field(default_factory=list)
    depth: int = 0


def read_trees(files: Sequence[Path], lang: str) -> list[Tree]:
    """The trees of all files, on one line or several each; DataError with file and line for a bad one."""
    return [tree for file in files for tree in _trees(file, lang)]


def _trees(file: Path, lang: str) -> Iterator[Tree]:
    stack: list[_Open] = []
    words: list[str] = []
    after_bracket = False
    for number, line in text_lines(file):
        location = f"{file}:{number}"
        for part in _PART.findall(line):
            if part == "(":
                if stack and stack[-1].word:
                    raise DataError(f"{location}: a bracket after the word '{stack[-1].word}'; expected ')'.")
                stack.append(_Open(location))
            elif not stack:
                raise DataError(f"{location}: '{part}' outside any bracket; expected a tree, as in (S (NN Rain)).")
            elif part == ")":
                closed = stack.pop()
                if _keep(closed, words) and stack:
                    stack[-1].children.append(closed)
                    stack[-1].depth = max(stack[-1].depth, closed.depth + 1)
                if not stack and words:
                    yield _tree(closed, detokenise(" ".join(words), lang))
                    words = []
            elif after_bracket:
                stack[-1].label = part
            elif stack[-1].word or stack[-1].children or not stack[-1].label:
                raise DataError(f"{location}: word '{part}' without a part of speech; expected one, as in (NN {part}).")
            else:
                stack[-1].word = part
            after_bracket = part == "("
    if stack:
        raise DataError(f"{stack[0].location}: a bracket that is never closed.")


def _keep(node: _Open, words: list[str]) -> bool:
    """Whether a closed bracket holds a word, which is then added to `words`."""
    if node.word and node.label != _EMPTY:
        words.append(node.word)
        return True
    return bool(node.children)


def _tree(top: _Open, sentence: str) -> Tree:
    while top.label in _ROOTS and len(top.children) == 1:
        top = top.children[0]
    return Tree(sentence, _plain(top.label), tuple(_plain(child.label) for child in top.children), top.depth)


def _plain(label: str) -> str:
    """The label without function and number: NP-SBJ-1 -> NP, S=2 -> S; -LRB- stays."""
    return label if label.startswith("-") else re.split("[-=|]", label)[0]
