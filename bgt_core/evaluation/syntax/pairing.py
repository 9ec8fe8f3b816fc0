"""Parsed sentences as they are compared: text for the encoder, tags, labelled structure and an ordered tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bgt_core.data.conllu import Parsed, Word, read_conllu
from bgt_core.data.textfile import uncompressed
from bgt_core.data.trees import ROOTS, Tree, read_trees
from bgt_core.errors import DataError, UsageError, check_least

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


# Choose queries and candidates: a neighbour has as many words as its query.

LENGTHS = (1, 29)  # minimum and maximum number of words in the VGVAE paper's evaluation
LONGEST = 200


class Group(NamedTuple):
    """The sentences of one length."""

    queries: Sequence[ParsedSentence]
    candidates: Sequence[ParsedSentence]


@dataclass(frozen=True, eq=False)
class Pairing:
    """Groups by length, and the number of sentences left out, by reason."""

    kind: str  # of the treebank
    groups: Sequence[Group]
    left_out: dict[str, int]

    @property
    def queries(self) -> list[ParsedSentence]:
        """All queries, group by group: the order of all counts by query."""
        return [query for group in self.groups for query in group.queries]

    @property
    def candidates(self) -> list[ParsedSentence]:
        return [candidate for group in self.groups for candidate in group.candidates]


def pair_up(
    sentences: Treebank,
    candidates: Treebank | None = None,
    *,
    lengths: tuple[int, int] = LENGTHS,
    limit: int | None = None,
    seed: int = 0,
) -> Pairing:
    """Pair queries with candidates. Without `candidates`, a random half of the sentences are queries and the others
    candidates.

    Of sentences that differ only in case the first is kept, and no candidate is also a query: a copy would be nearest
    for any encoder. `limit` draws at most that many queries. Raises UsageError for impossible lengths or limits and for
    treebanks of two kinds, DataError if fewer than two queries have a candidate.
    """
    shortest, longest = lengths
    if not 1 <= shortest <= longest <= LONGEST:
        raise UsageError(f"{shortest}-{longest}: expected from 1 to {LONGEST} words, as in 1-29.", parameter="lengths")
    check_least(2, limit=limit)
    if candidates and candidates.kind != sentences.kind:
        raise UsageError(f"Queries have {sentences.kind} and candidates {candidates.kind}; give one kind.")
    pools = [[*sentences.sentences], [*candidates.sentences]] if candidates else [[*sentences.sentences]]
    fitting = [[each for each in pool if shortest <= len(each.tags) <= longest] for pool in pools]
    distinct = without_copies(fitting)
    left_out = {
        "of another length": sum(map(len, pools)) - sum(map(len, fitting)),
        "copies": sum(map(len, fitting)) - sum(map(len, distinct)),
    }
    rng = np.random.default_rng([seed, 0])
    if candidates:
        queries, offered = distinct
    else:
        (pool,) = distinct
        order = rng.permutation(len(pool))
        queries, offered = ([pool[row] for row in np.sort(part)] for part in np.array_split(order, 2))
    lengths_of_candidates = {len(each.tags) for each in offered}
    answerable = [query for query in queries if len(query.tags) in lengths_of_candidates]
    left_out["queries without a candidate of their length"] = len(queries) - len(answerable)
    if limit is not None and limit < len(answerable):
        chosen = np.sort(rng.permutation(len(answerable))[:limit])
        left_out["queries beyond the limit"] = len(answerable) - limit
        answerable = [answerable[row] for row in chosen]
    if len(answerable) < 2:
        raise DataError(
            f"{len(answerable)} of {sum(map(len, pools))} sentences are queries with a candidate of their length "
            f"({shortest} to {longest} words); expected 2 or more. "
            + "; ".join(f"{count} {why}" for why, count in left_out.items())
        )
    return Pairing(sentences.kind, by_length(answerable, offered), left_out)


def without_copies(pools: Iterable[Sequence[ParsedSentence]]) -> list[list[ParsedSentence]]:
    """The pools without sentences that equal, except for case, an earlier one in this pool or before it."""
    seen: set[str] = set()
    kept = []
    for pool in pools:
        new = []
        for sentence in pool:
            if sentence.text.casefold() not in seen:
                seen.add(sentence.text.casefold())
                new.append(sentence)
        kept.append(new)
    return kept


def by_length(queries: Sequence[ParsedSentence], candidates: Sequence[ParsedSentence]) -> list[Group]:
    groups = []
    for length in sorted({len(query.tags) for query in queries}):
        groups.append(Group(*([each for each in side if len(each.tags) == length] for side in (queries, candidates))))
    return groups
