"""Tree edit distance: the minimum number of insertions, deletions and relabellings between two ordered, labelled trees.

It uses the dynamic program of Zhang and Shasha (1989), for all pairs of two sets of trees, compiled by numba.
Libraries in pure Python take a tenth to half a second per pair of sentences, and an upper bound needs all pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np

from bgt_core.evaluation.tasks.syntax import OrderedTree


class Forest(NamedTuple):
    """Concatenated trees: their nodes, (N,), and the first node of each tree, followed by N, (T + 1,)."""

    labels: np.ndarray
    first: np.ndarray  # counted within each tree
    keyroots: np.ndarray  # bool: whether a node is the last one with its leftmost leaf
    starts: np.ndarray


def distances(left: Sequence[OrderedTree], right: Sequence[OrderedTree]) -> np.ndarray:
    """Edits between each of M trees and each of N: (M, N) int32."""
    codes: dict[str, int] = {}
    return _distances(*_forest(left, codes), *_forest(right, codes))


def _forest(trees: Sequence[OrderedTree], codes: dict[str, int]) -> Forest:
    """Encode trees; `codes` are the numbers of labels, and new labels are added to it."""
    labels = [codes.setdefault(label, len(codes)) for tree in trees for label in tree.labels]
    keyroots: list[bool] = []
    for tree in trees:
        last = {leaf: node for node, leaf in enumerate(tree.first)}  # the last node of each leftmost leaf
        keyroots += [last[leaf] == node for node, leaf in enumerate(tree.first)]
    return Forest(
        np.array(labels, dtype=np.int32),
        np.array([node for tree in trees for node in tree.first], dtype=np.int32),
        np.array(keyroots, dtype=np.bool_),
        np.cumsum([0, *(len(tree.labels) for tree in trees)]),
    )


@numba.njit(cache=True)
def _distances(
    labels: np.ndarray, first: np.ndarray, keyroots: np.ndarray, starts: np.ndarray,
    other_labels: np.ndarray, other_first: np.ndarray, other_keyroots: np.ndarray, other_starts: np.ndarray,
) -> np.ndarray:  # fmt: skip
    edits = np.empty((len(starts) - 1, len(other_starts) - 1), dtype=np.int32)
    sizes = np.diff(starts).max(), np.diff(other_starts).max()
    trees = np.empty(sizes, dtype=np.int32)
    forests = np.empty((sizes[0] + 1, sizes[1] + 1), dtype=np.int32)
    for row in range(len(starts) - 1):
        a = slice(starts[row], starts[row + 1])
        for column in range(len(other_starts) - 1):
            b = slice(other_starts[column], other_starts[column + 1])
            edits[row, column] = _distance(
                labels[a], first[a], keyroots[a], other_labels[b], other_first[b], other_keyroots[b], trees, forests
            )
    return edits


@numba.njit(cache=True)
def _distance(
    labels: np.ndarray, first: np.ndarray, keyroots: np.ndarray,
    other_labels: np.ndarray, other_first: np.ndarray, other_keyroots: np.ndarray,
    trees: np.ndarray, forests: np.ndarray,
) -> int:  # fmt: skip
    """Fill two buffers: `trees`, the edits between the trees under two nodes; and `forests`, for two keyroots, the
    edits between the forests of their first p and first q nodes."""
    for i in range(len(labels)):
        for j in range(len(other_labels)):
            if not (keyroots[i] and other_keyroots[j]):
                continue
            start, other_start = first[i], other_first[j]
            for p in range(i - start + 2):
                forests[p, 0] = p
            for q in range(j - other_start + 2):
                forests[0, q] = q
            for x in range(start, i + 1):
                for y in range(other_start, j + 1):
                    p, q = x - start, y - other_start
                    edits = min(forests[p, q + 1], forests[p + 1, q]) + 1
                    if first[x] == start and other_first[y] == other_start:  # both forests are trees
                        edits = min(edits, forests[p, q] + (labels[x] != other_labels[y]))
                        trees[x, y] = edits
                    else:
                        below = forests[first[x] - start, other_first[y] - other_start]
                        edits = min(edits, below + trees[x, y])
                    forests[p + 1, q + 1] = edits
    return trees[len(labels) - 1, len(other_labels) - 1]
