"""Three measures of the similarity of two parses, each the ratio of two counts summed over queries.

    structure  2 x shared / all brackets of both (micro-averaged labelled F1); or the share of words with the same head
               and relation, which for dependencies is the same formula
    tree edit distance  edits / nodes of both trees: 0 for equal trees, below 1 always
    POS accuracy        words with the same part of speech / words

Brackets are (label, start, end), matched as multisets; parts of speech are not brackets, and the outermost one counts,
as in the evaluation of the VGVAE (Chen et al. 2019).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from bgt_core.errors import needs
from bgt_core.evaluation.syntax.pairing import CONSTITUENTS, DEPENDENCIES, Group, ParsedSentence

STRUCTURE = {CONSTITUENTS: "labelled F1", DEPENDENCIES: "labelled attachment"}
EDITS, TAGS = "tree edit distance", "POS accuracy"
LOWER_IS_BETTER = frozenset({EDITS})


class Counts(NamedTuple):
    """Both counts of one measure, for each of N queries with each of M candidates, (N, M), or with one, (N,)."""

    part: np.ndarray
    whole: np.ndarray


def measures(kind: str) -> tuple[str, str, str]:
    """Their names, in the order of the table."""
    return STRUCTURE[kind], EDITS, TAGS


def counts(group: Group, kind: str) -> dict[str, Counts]:
    """Compare every query of a group with every candidate, by measure: (N, M) float32.

    Raises NotFound if numba is not installed.
    """
    needs("numba", "syntax")
    from bgt_core.evaluation.syntax.edit_distance import distances

    queries, candidates = group
    brackets = [np.array([len(each.structure) for each in side]) for side in group]
    nodes = [np.array([len(each.tree.labels) for each in side]) for side in group]
    edits = distances([each.tree for each in queries], [each.tree for each in candidates])
    alike = same_tags(queries, candidates)
    return {
        STRUCTURE[kind]: pair(2 * shared(queries, candidates), np.add.outer(*brackets)),
        EDITS: pair(edits, np.add.outer(*nodes)),
        TAGS: pair(alike, np.full_like(alike, len(queries[0].tags))),
    }


def pair(part: np.ndarray, whole: np.ndarray) -> Counts:
    return Counts(part.astype(np.float32), whole.astype(np.float32))


def shared(queries: Sequence[ParsedSentence], candidates: Sequence[ParsedSentence]) -> np.ndarray:
    """Size of the structure that each query has in common with each candidate, as multisets: (N, M)."""
    numbers: dict[tuple[object, int], int] = {}
    left, right = (
        [
            [
                numbers.setdefault((item, again), len(numbers))
                for item, count in Counter(each.structure).items()
                for again in range(count)
            ]
            for each in side
        ]
        for side in (queries, candidates)
    )
    matrices = [
        sparse.csr_array(
            (
                np.ones(sum(map(len, rows)), dtype=np.int32),
                np.array([number for row in rows for number in row]),
                np.cumsum([0, *map(len, rows)]),
            ),
            shape=(len(rows), len(numbers)),
        )
        for rows in (left, right)
    ]
    return (matrices[0] @ matrices[1].T).toarray()


def same_tags(queries: Sequence[ParsedSentence], candidates: Sequence[ParsedSentence]) -> np.ndarray:
    """Number of words of each query with the same part of speech as the candidate's word at that position: (N, M)."""
    codes: dict[str, int] = {}
    left, right = (
        np.array([[codes.setdefault(tag, len(codes)) for tag in each.tags] for each in side])
        for side in (queries, candidates)
    )
    same = np.zeros((len(left), len(right)), dtype=np.int32)
    for left_word, right_word in zip(left.T, right.T, strict=True):
        same += np.equal.outer(left_word, right_word)
    return same


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
