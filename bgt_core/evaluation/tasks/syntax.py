"""Measure whether a sentence's nearest neighbour by an encoder has the same syntactic structure (Chen et al. 2019).

    files -> `read_treebank` -> `pair_up`: queries and candidates by length -> neighbours -> three measures of parses

A language or syntactic latent should find sentences of the same structure; a semantic one need not. Each measure is a
ratio of two counts summed over queries: 2 x shared / all brackets of both (micro-averaged labelled F1), or the share of
words with the same head and relation, which for dependencies is the same formula; edits / nodes of both trees, 0 for
equal trees and below 1 always; words with the same part of speech / words. Brackets are (label, start, end), matched as
multisets; parts of speech are not brackets, and the outermost one counts, as in the evaluation of the VGVAE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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


class ParsedSentence(NamedTuple):
    """A sentence, with all that its parse contributes to the measures."""

    text: str
    tags: Sequence[str]  # parts of speech, one of each word
    structure: Sequence[tuple[str | int, ...]]  # brackets (label, start, end), or arcs (word, head, relation)
    labels: Sequence[str]  # of the nodes of its tree, in postorder
    first: Sequence[int]  # the leftmost leaf below each node
    kind: str = CONSTITUENTS


Group = tuple[Sequence[ParsedSentence], Sequence[ParsedSentence]]  # queries and candidates of one length


def read_treebank(files: Sequence[Path], lang: str = "en") -> list[ParsedSentence]:
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
        return [of_dependencies(parsed) for parsed in read_conllu(files)]
    return [of_constituents(tree, lang) for tree in read_trees(files)]


def of_constituents(tree: Tree, lang: str) -> ParsedSentence:
    """Convert a tree, with one ROOT above the top constituent whether or not the file has it, because it counts.

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
    return ParsedSentence(tree.text(lang), [leaf.label for leaf in tree.leaves], brackets, labels, first)


def of_dependencies(parsed: Parsed) -> ParsedSentence:
    """Convert a dependency parse. Relations lose subtypes ("nsubj" for "nsubj:pass"), and label the nodes of the tree
    of ordered dependents."""
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
    return ParsedSentence(parsed.text(), [word.upos for word in parsed.words], arcs, labels, first, DEPENDENCIES)


@dataclass(frozen=True, eq=False)
class Pairing:
    """Queries and candidates by their number of words, and the number of sentences left out, by reason."""

    groups: Sequence[Group]
    left_out: dict[str, int]


def pair_up(
    sentences: Sequence[ParsedSentence],
    candidates: Sequence[ParsedSentence] | None = None,
    *,
    lengths: tuple[int, int] = LENGTHS,
    limit: int | None = None,
    seed: int = 0,
) -> Pairing:
    """Pair queries with candidates of as many words.

    Without `candidates`, a random half of the sentences are queries and the others candidates. Of sentences that differ
    only in case the first is kept, and no candidate is also a query: a copy would be nearest for any encoder. `limit`
    draws at most that many queries. Raises UsageError for impossible lengths or limits and for parses of two kinds,
    DataError if fewer than two queries have a candidate.
    """
    shortest, longest = lengths
    if not 1 <= shortest <= longest <= LONGEST:
        raise UsageError(f"{shortest}-{longest}: expected from 1 to {LONGEST} words, as in 1-29.", parameter="lengths")
    check_least(2, limit=limit)
    if sentences and candidates and candidates[0].kind != sentences[0].kind:
        raise UsageError(f"Queries have {sentences[0].kind} and candidates {candidates[0].kind}; give one kind.")
    both = [(side, each) for side, of in enumerate((sentences, candidates or ())) for each in of]
    fitting = [(side, each) for side, each in both if shortest <= len(each.tags) <= longest]
    kept: dict[str, tuple[int, ParsedSentence]] = {}
    for side, each in fitting:
        kept.setdefault(each.text.casefold(), (side, each))
    queries, offered = ([each for side, each in kept.values() if side == wanted] for wanted in (0, 1))
    left_out = {"of another length": len(both) - len(fitting), "copies": len(fitting) - len(kept)}
    rng = np.random.default_rng([seed, 0])
    if candidates is None:
        halves = np.array_split(rng.permutation(len(queries)), 2)
        queries, offered = ([queries[row] for row in np.sort(half)] for half in halves)
    known = {len(each.tags) for each in offered}
    answerable = [query for query in queries if len(query.tags) in known]
    left_out["queries without a candidate of their length"] = len(queries) - len(answerable)
    if limit is not None and limit < len(answerable):
        drawn = np.sort(rng.permutation(len(answerable))[:limit])
        left_out["queries beyond the limit"] = len(answerable) - limit
        answerable = [answerable[row] for row in drawn]
    if len(answerable) < 2:
        raise DataError(
            f"{len(answerable)} of {len(both)} sentences are queries with a candidate of their length "
            f"({shortest} to {longest} words); expected 2 or more. "
            + "; ".join(f"{count} {why}" for why, count in left_out.items())
        )
    groups = [
        (
            [each for each in answerable if len(each.tags) == length],
            [each for each in offered if len(each.tags) == length],
        )
        for length in sorted({len(query.tags) for query in answerable})
    ]
    return Pairing(groups, left_out)


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
        by_group = [counts(*group) for group in items.groups]
        queries, candidates = (sum(len(group[side]) for group in items.groups) for side in (0, 1))
        sums: dict[SyntaxKey, Counts] = {}
        for measure in by_group[0]:
            parts = [group[measure] for group in by_group]
            upper = best_choice(parts, lowest=measure == EDITS)
            expected = [tuple(each.mean(1, dtype=np.float64) for each in group) for group in parts]  # of any candidate
            of_rows = [joined(expected), *(chosen(parts, choice) for choice in (*choices, upper))]
            part, whole = (np.stack(column) for column in zip(*of_rows, strict=True))
            sums[SyntaxKey(measure, queries)] = part, whole
        names = [RANDOM, *(system.name for system in rows)]
        explained = EXPLAINED[items.groups[0][0][0].kind]
        left_out = "; ".join(f"{count:,} {why}" for why, count in items.left_out.items() if count)
        return Statistic(
            systems=[*names, UPPER_BOUND],
            scores=lambda weights: {key: share(weights[0], *both) for key, both in sums.items()},
            samples=[ItemSample(queries, (1,))],
            about=f"{queries:,} queries, {candidates:,} candidates of their lengths"
            f"{f' (left out: {left_out})' if left_out else ''}; {explained}; tree edit distance (lower is "
            "better): edits per 100 nodes of both trees, words left out; all are ratios of sums over queries",
            compared=names,
            lower_is_better=[SyntaxKey(EDITS, queries)],
        )


TASK = Syntax


def neighbours(system: System, pairing: Pairing, lang: str) -> list[np.ndarray]:
    """Find each query's nearest candidate of its length, the first if several tie: indices (N,) for each group."""
    vectors = system.embed([each.text for group in pairing.groups for side in group for each in side], lang)
    rows = []
    for group in pairing.groups:
        queries, candidates, vectors = np.split(vectors, np.cumsum([len(side) for side in group]))
        rows.append(nearest(queries, candidates, system.encoder.similarity))
    return rows


# Both counts of one measure, for each of N queries with each of M candidates, (N, M), or with one, (N,).
Counts = tuple[np.ndarray, np.ndarray]


def counts(queries: Sequence[ParsedSentence], candidates: Sequence[ParsedSentence]) -> dict[str, Counts]:
    """Compare queries with candidates of the same length, by measure: (N, M) float32.

    Raises NotFound if numba is not installed.
    """
    needs("numba", "syntax")
    from bgt_core.evaluation.edit_distance import distances

    sides = queries, candidates
    brackets, nodes = (
        np.add.outer(*([len(getattr(each, field)) for each in side] for side in sides))
        for field in ("structure", "labels")
    )
    edits = distances(*([(each.labels, each.first) for each in side] for side in sides))
    tags = [np.array([each.tags for each in side]) for side in sides]
    alike = (tags[0][:, None] == tags[1]).sum(2)  # words with the same part of speech
    both = {
        STRUCTURE[queries[0].kind]: (2 * shared(queries, candidates), brackets),
        EDITS: (edits, nodes),
        TAGS: (alike, np.full_like(alike, len(queries[0].tags))),
    }
    return {name: (part.astype(np.float32), whole.astype(np.float32)) for name, (part, whole) in both.items()}


def shared(queries: Sequence[ParsedSentence], candidates: Sequence[ParsedSentence]) -> np.ndarray:
    """Count the brackets or arcs that each query shares with each candidate, as multisets: (N, M)."""
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
    """Choose the candidates, (N,) for each group, that together maximise the ratio over all queries exactly.

    The best candidate of each single query is not enough, because the score is a ratio of sums. Dinkelbach (1967):
    while the score improves, choose the candidates that exceed the last ratio most.
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
    """Return the ratio for these choices."""
    part, whole = chosen(parts, choices)
    return float(part.sum() / whole.sum())


def chosen(parts: Sequence[Counts], choices: Sequence[np.ndarray]) -> Counts:
    """Return the counts of each query with its choice, over all groups: (N,) float64."""
    rows = zip(parts, choices, strict=True)
    return joined([(part[np.arange(len(own)), own], whole[np.arange(len(own)), own]) for (part, whole), own in rows])


def joined(parts: Iterable[Counts]) -> Counts:
    """Concatenate the counts of all groups: (N,) float64."""
    part, whole = (np.concatenate(column).astype(np.float64) for column in zip(*parts, strict=True))
    return part, whole
