"""Syntactic evaluation of any encoder: does a sentence's nearest neighbour have the same structure? (Chen et al. 2019)

    files -> `read_treebank` -> `pair_up`: queries and candidates by length -> neighbours -> three measures of parses

A language or syntactic latent should find sentences of the same structure; a semantic one need not. Each measure is
the ratio of two counts summed over queries:

    structure  2 x shared / all brackets of both (micro-averaged labelled F1); or the share of words with the same head
               and relation, which for dependencies is the same formula
    tree edit distance  edits / nodes of both trees: 0 for equal trees, below 1 always
    POS accuracy        words with the same part of speech / words

Brackets are (label, start, end), matched as multisets; parts of speech are not brackets, and the outermost one counts,
as in the evaluation of the VGVAE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from scipy import sparse

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.textfile import uncompressed
from bgt_core.data.trees import ROOTS, Parsed, Tree, Word, read_conllu, read_trees
from bgt_core.errors import DataError, UsageError, check_least, needs
from bgt_core.evaluation.bootstrap import ItemSample, share
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.systems import System, systems
from bgt_core.evaluation.task import Lang, Latent, Task, read_lengths
from bgt_core.vectors.compare import nearest

CONSTITUENTS, DEPENDENCIES = "constituents", "dependencies"
STRUCTURE = {CONSTITUENTS: "labelled F1", DEPENDENCIES: "labelled attachment"}
EDITS, TAGS = "tree edit distance", "POS accuracy"
RANDOM, UPPER_BOUND = "random neighbour", "upper bound"
EXPLAINED = {
    CONSTITUENTS: "labelled F1 of brackets: micro-averaged, ROOT counted, parts of speech not",
    DEPENDENCIES: "labelled attachment: words with the same head and relation, subtypes cut off",
}
LENGTHS = (1, 29)  # minimum and maximum number of words in the VGVAE paper's evaluation
LONGEST = 200


# Parsed sentences as they are compared: text for the encoder, tags, labelled structure and an ordered tree.


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


class Treebank(NamedTuple):
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

    walk(Tree("ROOT", tree.children if tree.label in ROOTS else (tree,)), 0)
    tags = [leaf.label for leaf in tree.leaves]
    return ParsedSentence(tree.text(lang), tags, brackets, OrderedTree(labels, first))


def of_dependencies(parsed: Parsed) -> ParsedSentence:
    """Relations without subtypes ("nsubj" for "nsubj:pass"); they also label the nodes of the tree of ordered
    dependents."""
    relations = {word.number: word.relation.partition(":")[0] for word in parsed.words}
    labels: list[str] = []
    first: list[int] = []

    def walk(word: Word) -> None:
        leaf = len(labels)
        for child in parsed.children[word.number]:
            walk(child)
        labels.append(relations[word.number])
        first.append(leaf)

    walk(parsed.root)
    arcs = [(word.number, word.head, relations[word.number]) for word in parsed.words]
    return ParsedSentence(parsed.text(), [word.upos for word in parsed.words], arcs, OrderedTree(labels, first))


# Queries and candidates: a neighbour has as many words as its query.


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
    pools = [sentences.sentences, *([candidates.sentences] if candidates else [])]
    fitting = [[each for each in pool if shortest <= len(each.tags) <= longest] for pool in pools]
    kept: dict[str, tuple[int, ParsedSentence]] = {}  # by their text: the first, with its pool
    for number, pool in enumerate(fitting):
        for each in pool:
            kept.setdefault(each.text.casefold(), (number, each))
    queries, offered = ([each for number, each in kept.values() if number == pool] for pool in (0, 1))
    left_out = {
        "of another length": sum(map(len, pools)) - sum(map(len, fitting)),
        "copies": sum(map(len, fitting)) - len(kept),
    }
    rng = np.random.default_rng([seed, 0])
    if not candidates:
        halves = np.array_split(rng.permutation(len(queries)), 2)
        queries, offered = ([queries[row] for row in np.sort(half)] for half in halves)
    lengths_of_candidates = {len(each.tags) for each in offered}
    answerable = [query for query in queries if len(query.tags) in lengths_of_candidates]
    left_out["queries without a candidate of their length"] = len(queries) - len(answerable)
    if limit is not None and limit < len(answerable):
        drawn = np.sort(rng.permutation(len(answerable))[:limit])
        left_out["queries beyond the limit"] = len(answerable) - limit
        answerable = [answerable[row] for row in drawn]
    if len(answerable) < 2:
        raise DataError(
            f"{len(answerable)} of {sum(map(len, pools))} sentences are queries with a candidate of their length "
            f"({shortest} to {longest} words); expected 2 or more. "
            + "; ".join(f"{count} {why}" for why, count in left_out.items())
        )
    groups = [
        Group(*([each for each in side if len(each.tags) == length] for side in (answerable, offered)))
        for length in sorted({len(query.tags) for query in answerable})
    ]
    return Pairing(sentences.kind, groups, left_out)


class SyntaxKey(NamedTuple):
    score: str
    queries: int


@dataclass(frozen=True)
class Syntax(Task[Pairing]):
    """Syntax: does the nearest sentence of the same length have the same structure?

    Bracketed trees, as in the Penn Treebank, lose functions (NP-SBJ is NP) and traces: labelled F1 of brackets.
    CoNLL-U: labelled attachment instead. With both: tree edit distance, lower is better, and part-of-speech accuracy.
    Copies of a sentence are left out. Reference rows: a random neighbour, and the best choice of candidates by each
    measure.
    """

    data = "Parsed sentences: CoNLL-U if called .conllu, else bracketed trees."
    across = "score"

    candidates: Annotated[list[Path] | None, "Files of the sentences to find, by default half of DATA; repeatable."] = (
        None
    )
    lang: Lang = "en"
    latent: Latent = None
    lengths: Annotated[str, "Words of the sentences, as in 1-29."] = "1-29"
    limit: Annotated[int | None, "At most this many queries, drawn by the seed."] = None

    def load(self, paths: Sequence[Path], *, seed: int) -> Pairing:
        """Read the trees and draw the queries."""
        needs("numba", "syntax")
        lengths, queries = read_lengths(self.lengths), read_treebank(paths, self.lang)
        candidates = read_treebank(self.candidates, self.lang) if self.candidates else None
        return pair_up(queries, candidates, lengths=lengths, limit=self.limit, seed=seed)

    def statistic(self, items: Pairing, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Compare the parses of queries and their neighbours; queries are resampled, neighbours stay.

        The score of a random neighbour is the exact mean over all candidates. The upper bound is, for each measure, the
        best choice of candidates; it is not tested against the others.
        """
        rows = systems(encoders, [self.lang], self.latent, reserved=(RANDOM, UPPER_BOUND))
        choices = [neighbours(system, items, self.lang) for system in rows]
        by_group = [counts(group, items.kind) for group in items.groups]
        queries, candidates = len(items.queries), len(items.candidates)
        sums: dict[SyntaxKey, Counts] = {}
        for measure in by_group[0]:
            parts = [group[measure] for group in by_group]
            upper = best_choice(parts, lowest=measure == EDITS)
            of_rows = [expected(parts), *(chosen(parts, choice) for choice in (*choices, upper))]
            sums[SyntaxKey(measure, queries)] = Counts(*(np.stack(column) for column in zip(*of_rows, strict=True)))
        names = [RANDOM, *(system.name for system in rows)]
        left_out = "; ".join(f"{count:,} {why}" for why, count in items.left_out.items() if count)
        return Statistic(
            systems=[*names, UPPER_BOUND],
            scores=lambda weights: {key: share(weights[0], *both) for key, both in sums.items()},
            samples=[ItemSample(queries, (1,))],
            about=f"{queries:,} queries, {candidates:,} candidates of their lengths"
            f"{f' (left out: {left_out})' if left_out else ''}; {EXPLAINED[items.kind]}; tree edit distance (lower is "
            "better): edits per 100 nodes of both trees, words left out; all are ratios of sums over queries",
            counts={"queries": queries, "candidates": candidates, **items.left_out},
            compared=names,
            lower_is_better=[SyntaxKey(EDITS, queries)],
        )


TASK = Syntax


def neighbours(system: System, pairing: Pairing, lang: str) -> list[np.ndarray]:
    """The index of each query's nearest candidate of its length, the first if several tie: (N,) for each group."""
    vectors = system.embed([each.text for group in pairing.groups for side in group for each in side], lang)
    rows = []
    for group in pairing.groups:
        queries, candidates, vectors = np.split(vectors, np.cumsum([len(side) for side in group]))
        rows.append(nearest(queries, candidates, system.encoder.similarity))
    return rows


# Measures of queries and candidates.


class Counts(NamedTuple):
    """Both counts of one measure, for each of N queries with each of M candidates, (N, M), or with one, (N,)."""

    part: np.ndarray
    whole: np.ndarray


def counts(group: Group, kind: str) -> dict[str, Counts]:
    """Compare every query of a group with every candidate, by measure: (N, M) float32.

    Raises NotFound if numba is not installed.
    """
    needs("numba", "syntax")
    from bgt_core.evaluation.edit_distance import distances

    queries, candidates = group
    brackets = [np.array([len(each.structure) for each in side]) for side in group]
    nodes = [np.array([len(each.tree.labels) for each in side]) for side in group]
    edits = distances([each.tree for each in queries], [each.tree for each in candidates])
    tags = [np.array([each.tags for each in side]) for side in group]
    alike = np.array([(tags[1] == of_query).sum(1) for of_query in tags[0]])  # words with the same part of speech
    both = {
        STRUCTURE[kind]: (2 * shared(queries, candidates), np.add.outer(*brackets)),
        EDITS: (edits, np.add.outer(*nodes)),
        TAGS: (alike, np.full_like(alike, len(queries[0].tags))),
    }
    return {name: Counts(part.astype(np.float32), whole.astype(np.float32)) for name, (part, whole) in both.items()}


def shared(queries: Sequence[ParsedSentence], candidates: Sequence[ParsedSentence]) -> np.ndarray:
    """Size of the structure that each query has in common with each candidate, as multisets: (N, M)."""
    numbers: dict[tuple[object, int], int] = {}  # of the first, the second, ... occurrence of an item in a sentence
    sides = [
        [
            [
                numbers.setdefault((item, again), len(numbers))
                for item, count in Counter(each.structure).items()
                for again in range(count)
            ]
            for each in side
        ]
        for side in (queries, candidates)
    ]
    left, right = (
        sparse.csr_array(
            (np.ones(sum(map(len, rows)), dtype=np.int32), np.concatenate(rows), np.cumsum([0, *map(len, rows)])),
            shape=(len(rows), len(numbers)),
        )
        for rows in sides
    )
    return (left @ right.T).toarray()


def best_choice(parts: Sequence[Counts], *, lowest: bool) -> list[np.ndarray]:
    """The candidate of each query, (N,) for each group, that maximises the ratio over all queries together; exact.

    The best candidate of each query alone would not do, because the score is a ratio of sums. Dinkelbach (1967): while
    the score improves, choose the candidates that exceed the last ratio most.
    """
    sign = -1 if lowest else 1
    choices = [(sign * part / whole).argmax(1) for part, whole in parts]
    share = total(parts, choices)
    while True:
        above = [(sign * (part.astype(np.float64) - share * whole)).argmax(1) for part, whole in parts]
        better = total(parts, above)
        if sign * better <= sign * share:
            return choices
        choices, share = above, better


def total(parts: Sequence[Counts], choices: Sequence[np.ndarray]) -> float:
    """The ratio for these choices."""
    part, whole = chosen(parts, choices)
    return float(part.sum() / whole.sum())


def chosen(parts: Sequence[Counts], choices: Sequence[np.ndarray]) -> Counts:
    """The counts of each query with its choice, over all groups: (N,) float64."""
    picked = [[each[np.arange(len(own)), own] for each in group] for group, own in zip(parts, choices, strict=True)]
    return Counts(*(np.concatenate(column).astype(np.float64) for column in zip(*picked, strict=True)))


def expected(parts: Sequence[Counts]) -> Counts:
    """The counts of each query with a random candidate, on average: (N,) float64."""
    means = [[each.mean(1, dtype=np.float64) for each in group] for group in parts]
    return Counts(*(np.concatenate(column) for column in zip(*means, strict=True)))
