"""Tree edit distance: the minimum number of insertions, deletions and relabellings between two ordered, labelled trees.

This is the dynamic program of Zhang and Shasha (1989), compiled by numba. Libraries in pure Python take 0.1 to 0.5
seconds per pair of sentences. That is too slow for the upper bound of the task `syntax`, which needs the distances of
all pairs.
"""

from collections.abc import Sequence

import numba
import numpy as np

OrderedTree = tuple[Sequence[str], Sequence[int]]  # for each node, in postorder: label; index of its leftmost leaf


def distances(left: Sequence[OrderedTree], right: Sequence[OrderedTree]) -> np.ndarray:
    """Return the number of edits between each of M trees and each of N trees, (M, N) int32."""
    codes: dict[str, int] = {}
    sides = [[_arrays(tree, codes) for tree in trees] for trees in (left, right)]
    return np.array([[_distance(*one, *two) for two in sides[1]] for one in sides[0]], dtype=np.int32)


def _arrays(tree: OrderedTree, codes: dict[str, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each node's label code, each node's leftmost leaf, and the keyroots: the last node with each such leaf."""
    labels, first = tree
    keyroots = sorted({leaf: node for node, leaf in enumerate(first)}.values())
    numbers = [codes.setdefault(label, len(codes)) for label in labels]
    return np.array(numbers), np.array(first), np.array(keyroots)


@numba.njit(cache=True)
def _distance(
    labels: np.ndarray, first: np.ndarray, keyroots: np.ndarray,
    other_labels: np.ndarray, other_first: np.ndarray, other_keyroots: np.ndarray,
) -> int:  # fmt: skip
    trees = np.empty((len(labels), len(other_labels)), np.int32)  # trees[x, y]: number of edits between the subtrees of
    # nodes x and y; forests[p, q]: number of edits between the first p and the first q nodes of the two trees
    forests = np.empty((len(labels) + 1, len(other_labels) + 1), np.int32)
    for i in keyroots:
        for j in other_keyroots:
            start, other_start = first[i], other_first[j]
            for p in range(i - start + 2):
                forests[p, 0] = p
            for q in range(j - other_start + 2):
                forests[0, q] = q
            for x in range(start, i + 1):
                for y in range(other_start, j + 1):
                    p, q = x - start, y - other_start
                    edits = min(forests[p, q + 1], forests[p + 1, q]) + 1
                    if first[x] == start and other_first[y] == other_start:  # if both forests are trees
                        edits = min(edits, forests[p, q] + (labels[x] != other_labels[y]))
                        trees[x, y] = edits
                    else:
                        below = forests[first[x] - start, other_first[y] - other_start]
                        edits = min(edits, below + trees[x, y])
                    forests[p + 1, q + 1] = edits
    return trees[-1, -1]
