"""Parsed sentences as they are compared: text for the encoder, tags, labelled structure and an ordered tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bgt_core.data.conllu import Parsed, Word, read_conllu
from bgt_core.data.textfile import uncompressed
from bgt_core.data.trees import ROOTS, Tree, read_trees
from bgt_core.errors import UsageError

CONSTITUENTS, DEPENDENCIES = "constituents", "dependencies"
ROOT = "ROOT"


class OrderedTree(NamedTuple):
    """N nodes in postorder."""

    labels: Sequence[str]
    first: Sequence[int]  # the leftmost leaf below each node


@dataclass(frozen=True, eq=False)
class ParsedSentence:
    """A sentence of L words and its parse."""

    text: str
    tags: Sequence[str]  # (L,) parts of speech
    structure: Sequence[tuple[str | int, ...]]  # brackets (label, start, end), or arcs (word, head, relation)
    tree: OrderedTree


@dataclass(frozen=True, eq=False)
class Treebank:
    """Sentences with the same kind of parse."""

    kind: str  # CONSTITUENTS or DEPENDENCIES
    sentences: Sequence[ParsedSentence]


def read_treebank(files: Sequence[Path], lang: str = "en") -> Treebank:
    """Read the sentences of files, plain, .gz, .xz or .zst: CoNLL-U if named .conllu, else bracketed trees.

    `lang` decides how the words of bracketed trees are joined to text. Raises UsageError without files and for files of
    both kinds, DataError with file and line for a bad parse, NotFound for an absent file.
    """
    if not files:
        raise UsageError("is missing: expected one or more files of bracketed trees or CoNLL-U.", parameter="files")
    conllu = [file for file in files if Path(uncompressed(file.name)).suffix == ".conllu"]
    if conllu and len(conllu) < len(files):
        other = next(file for file in files if file not in conllu)
        raise UsageError(f"{conllu[0]} is CoNLL-U and {other} is not: the two are measured differently; give one kind.")
    if conllu:
        return Treebank(DEPENDENCIES, [of_dependencies(parsed) for parsed in read_conllu(files)])
    return Treebank(CONSTITUENTS, [of_constituents(tree, lang) for tree in read_trees(files)])


def of_constituents(tree: Tree, lang: str) -> ParsedSentence:
    """Put one ROOT above the top constituent, whether or not the file has it, as an outermost bracket counts.

    The nodes of the ordered tree are constituents and parts of speech, not words; parts of speech are not brackets.
    """
    brackets: list[tuple[str | int, ...]] = []
    labels: list[str] = []
    first: list[int] = []

    def walk(node: Tree, start: int) -> int:
        """Add a node that begins with word `start`, and all below it; return the word after it."""
        leaf, end = len(labels), start
        for child in node.children:
            end = walk(child, end)
        if node.children:
            brackets.append((node.label, start, end))
        labels.append(node.label)
        first.append(leaf)
        return end if node.children else start + 1

    walk(Tree(ROOT, tree.children if tree.label in ROOTS else (tree,)), 0)
    tags = [leaf.label for leaf in tree.leaves]
    return ParsedSentence(tree.text(lang), tags, brackets, OrderedTree(labels, first))


def of_dependencies(parsed: Parsed) -> ParsedSentence:
    """Relations without subtypes ("nsubj" for "nsubj:pass"); they also label the nodes of the tree of ordered
    dependents."""
    labels: list[str] = []
    first: list[int] = []

    def walk(word: Word) -> None:
        leaf = len(labels)
        for child in parsed.children[word.number]:
            walk(child)
        labels.append(relation(word))
        first.append(leaf)

    walk(parsed.root)
    arcs = [(word.number, word.head, relation(word)) for word in parsed.words]
    return ParsedSentence(parsed.text(), [word.upos for word in parsed.words], arcs, OrderedTree(labels, first))


def relation(word: Word) -> str:
    return word.relation.partition(":")[0]
