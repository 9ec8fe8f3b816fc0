"""Measure whether a sentence and its nearest neighbour have the same syntactic structure (Chen et al. 2019).

    files -> `read_treebank` -> `pair_up`: queries and candidates of each length -> neighbours -> three measures

Each measure is a ratio of two counts, which are summed over all queries before they are divided: 2 x shared brackets
(for dependencies, arcs) / all brackets of both sentences; tree edits / nodes of both trees; words with the same part of
speech / words. Brackets are (label, start, end) and are compared as multisets. The outermost bracket counts, as in the
evaluation of Chen et al.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.textfile import uncompressed
from bgt_core.data.trees import ROOTS, Parsed, Tree, Word, read_conllu, read_trees
from bgt_core.errors import DataError, UsageError, check_least, needs
from bgt_core.evaluation.bootstrap import ItemSample, share
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.systems import System, systems
from bgt_core.evaluation.task import Lang, Latent, Task, read_lengths
from bgt_core.vectors.arrays import nearest

CONSTITUENTS, DEPENDENCIES = "constituents", "dependencies"
STRUCTURE = {CONSTITUENTS: "labelled F1", DEPENDENCIES: "labelled attachment"}
EDITS, TAGS = "tree edit distance", "POS accuracy"
RANDOM, UPPER_BOUND = "random neighbour", "upper bound"
EXPLAINED = {
    CONSTITUENTS: "labelled F1 of brackets: micro-averaged, ROOT counted, parts of speech not",
    DEPENDENCIES: "labelled attachment: words with the same head and relation, subtypes cut off",
}
LENGTHS = (1, 29)  # minimum and maximum number of words in the evaluation of Chen et al.
LONGEST = 200  # largest number of words that users may allow


class ParsedSentence(NamedTuple):
    """A sentence with its parts of speech and its syntactic structure."""

    text: str
    tags: Sequence[str]  # part of speech of each word
    structure: Sequence[tuple[str | int, ...]]  # brackets (label, start, end) or arcs (word, head, relation)
    labels: Sequence[str]  # labels of the nodes of the sentence's tree, in postorder
    first: Sequence[int]  # index in postorder of the leftmost leaf below each node
    kind: str = CONSTITUENTS


Group = tuple[Sequence[ParsedSentence], Sequence[ParsedSentence]]  # queries and candidates of one length


def read_treebank(files: Sequence[Path], lang: str = "en") -> list[ParsedSentence]:
    """Read the sentences of files (.gz, .xz, .zst or plain): CoNLL-U if the name ends in .conllu, else bracketed trees.

    `lang` decides how the words of bracketed trees are joined to text. Raises UsageError if there are no files or files
    of both kinds, DataError, with file and line, for an invalid parse, and NotFound for a missing file.
    """
    if not files:
        raise UsageError("is missing; give one or more files of bracketed trees or CoNLL-U.", parameter="files")
    conllu = [file for file in files if Path(uncompressed(file.name)).suffix == ".conllu"]
    if conllu and len(conllu) < len(files):
        other = next(file for file in files if file not in conllu)
        raise UsageError(f"{conllu[0]} is CoNLL-U and {other} is not, so their scores differ; give files of one kind.")
    if conllu:
        return [of_dependencies(parsed) for parsed in read_conllu(files)]
    return [of_constituents(tree, lang) for tree in read_trees(files)]


def of_constituents(tree: Tree, lang: str) -> ParsedSentence:
    """Convert a constituency tree, and add a ROOT above it. Parts of speech become nodes, but not brackets."""
    brackets: list[tuple[str | int, ...]] = []
    labels: list[str] = []
    first: list[int] = []

    def walk(node: Tree, start: int) -> int:
        """Add a node that starts at word `start`, and all nodes below it; return the index after its last word."""
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
    """Convert a dependency parse to arcs and an ordered tree whose labels are relations without subtypes ("nsubj")."""
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
    """Queries and candidates, grouped by number of words; and the number of sentences omitted for each reason."""

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
    """Group queries with the candidates that have the same number of words.

    If `candidates` is None, a random half of the sentences are queries, and the others are candidates. A sentence that
    repeats an earlier sentence, ignoring case, is left out, because any encoder would find the copy. `limit` is the
    maximum number of queries, which are drawn at random. Raises UsageError if lengths or limit are out of range, or if
    only queries or only candidates have dependency parses. Raises DataError if fewer than two queries have a candidate.
    """
    shortest, longest = lengths
    if not 1 <= shortest <= longest <= LONGEST:
        raise UsageError(f"{shortest}-{longest}: expected a range within 1-{LONGEST}, as in 1-29.", parameter="lengths")
    check_least(2, limit=limit)
    if sentences and candidates and candidates[0].kind != sentences[0].kind:
        raise UsageError(f"Queries have {sentences[0].kind}, but candidates have {candidates[0].kind}; give one kind.")
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
    groups: list[Group] = []
    for length in sorted({len(query.tags) for query in answerable}):
        queries, others = ([each for each in side if len(each.tags) == length] for side in (answerable, offered))
        groups.append((queries, others))
    return Pairing(groups, left_out)


class SyntaxKey(NamedTuple):
    score: str
    queries: int


@dataclass(frozen=True)
class Syntax(Task[Pairing]):
    """Syntax: does the nearest sentence of the same length have the same structure?

    Bracketed trees, as in the Penn Treebank, are compared by labelled F1 of brackets. Traces and functions are ignored
    (NP-SBJ counts as NP). CoNLL-U is compared by labelled attachment. Both are compared by tree edit distance (lower is
    better) and part-of-speech accuracy. Copies of a sentence are left out. There are two reference systems: one chooses
    a random candidate, the other the candidates with the best score.
    """

    data = "Parsed sentences: CoNLL-U if the name ends in .conllu, else bracketed trees."
    across = "score"

    candidates: Annotated[list[Path] | None, "File of candidates, by default half of DATA. Repeatable."] = None
    lang: Lang = "en"
    latent: Latent = None
    lengths: Annotated[str, "Minimum and maximum number of words of a sentence, as in 1-29."] = "1-29"
    limit: Annotated[int | None, "Maximum number of queries, drawn at random."] = None

    def load(self, paths: Sequence[Path], *, seed: int) -> Pairing:
        needs("numba", "syntax")
        lengths, queries = read_lengths(self.lengths), read_treebank(paths, self.lang)
        candidates = read_treebank(self.candidates, self.lang) if self.candidates else None
        return pair_up(queries, candidates, lengths=lengths, limit=self.limit, seed=seed)

    def statistic(self, items: Pairing, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Compare the parses of queries and their nearest neighbours. The bootstrap draws queries with neighbours.

        The score of a random neighbour is the exact mean over all candidates. The upper bound is the best score that
        any choice of candidates reaches, for each measure; the bound is not tested against other systems.
        """
        rows = systems(encoders, [self.lang], self.latent, reserved=(RANDOM, UPPER_BOUND))
        choices = [neighbours(system, items, self.lang) for system in rows]
        by_group = [counts(*group) for group in items.groups]
        queries, candidates = (sum(len(group[side]) for group in items.groups) for side in (0, 1))
        sums: dict[SyntaxKey, Counts] = {}
        for measure in by_group[0]:
            parts = [group[measure] for group in by_group]
            upper = best_choice(parts, lowest=measure == EDITS)
            expected = [(part.mean(1, dtype=np.float64), whole.mean(1, dtype=np.float64)) for part, whole in parts]
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
    """Find each query's nearest candidate with as many words, or the first of several: indices (N,) for each length."""
    vectors = system.embed([each.text for group in pairing.groups for side in group for each in side], lang)
    rows = []
    for group in pairing.groups:
        queries, candidates, vectors = np.split(vectors, np.cumsum([len(side) for side in group]))
        rows.append(nearest(queries, candidates, system.encoder.similarity))
    return rows


# Numerators and denominators of a measure: (N, M) for all pairs of N queries and M candidates, (N,) for N chosen pairs.
Counts = tuple[np.ndarray, np.ndarray]


def counts(queries: Sequence[ParsedSentence], candidates: Sequence[ParsedSentence]) -> dict[str, Counts]:
    """Compare N queries with M candidates of the same length: {measure: (numerators, denominators)}, (N, M) each."""
    needs("numba", "syntax")
    from bgt_core.evaluation.edit_distance import distances

    sides = queries, candidates
    brackets, nodes = (
        np.add.outer(*([len(getattr(each, field)) for each in side] for side in sides))
        for field in ("structure", "labels")
    )
    edits = distances(*([(each.labels, each.first) for each in side] for side in sides))
    tags = [np.array([each.tags for each in side]) for side in sides]
    alike = (tags[0][:, None] == tags[1]).sum(2)  # number of words with the same part of speech
    both = {
        STRUCTURE[queries[0].kind]: (2 * shared(queries, candidates), brackets),
        EDITS: (edits, nodes),
        TAGS: (alike, np.full_like(alike, len(queries[0].tags))),
    }
    return {name: (part.astype(np.float32), whole.astype(np.float32)) for name, (part, whole) in both.items()}


def shared(queries: Sequence[ParsedSentence], candidates: Sequence[ParsedSentence]) -> np.ndarray:
    """Count the brackets or dependency arcs that each query shares with each candidate, as multisets: (N, M)."""

    def occurrences(sentence: ParsedSentence) -> list[tuple[object, int]]:
        """Number equal brackets or arcs 0, 1, ..., so that no two are equal: (bracket or arc, number)."""
        return [(item, nth) for item, count in Counter(sentence.structure).items() for nth in range(count)]

    counter = CountVectorizer(analyzer=occurrences, dtype=np.int32)
    left = counter.fit_transform(queries)
    return (left @ counter.transform(candidates).T).toarray()


def best_choice(parts: Sequence[Counts], *, lowest: bool) -> list[np.ndarray]:
    """Choose candidates, (N,) for each group, so that the measure over all queries, a ratio of sums, is best.

    The candidate with the best ratio for a query is not always the best choice, because the score is a ratio of sums.
    The algorithm is Dinkelbach's (1967): while the ratio improves, choose for each query the candidate whose numerator
    most exceeds its denominator x the last ratio.
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
    """Divide the sum of the numerators by the sum of the denominators, for the chosen candidates of all queries."""
    part, whole = chosen(parts, choices)
    return float(part.sum() / whole.sum())


def chosen(parts: Sequence[Counts], choices: Sequence[np.ndarray]) -> Counts:
    """Return a measure's numerators and denominators, (N,) float64 each, for the candidates chosen in all groups."""
    rows = zip(parts, choices, strict=True)
    return joined([(part[np.arange(len(own)), own], whole[np.arange(len(own)), own]) for (part, whole), own in rows])


def joined(parts: Iterable[Counts]) -> Counts:
    """Concatenate the numerators of all groups, and their denominators: (N,) float64 each."""
    part, whole = (np.concatenate(column).astype(np.float64) for column in zip(*parts, strict=True))
    return part, whole
