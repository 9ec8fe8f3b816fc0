"""The probing task `depth`: how deep is the syntax tree? (BGT paper, table 3; SentEval, tree_depth)

In bracketed trees, depth is the number of constituents above the deepest word (see `bgt_core.data.trees`). In CoNLL-U,
it is the number of words on the longest path down from the root, without punctuation. A label has at most an eighth of
the paper's number of items, as in SentEval's data set, which balances eight depths. Unlike in SentEval, depth is
correlated with length, so compare the score with the length baseline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING

from probes.task import SIZES, Items, ProbeTask, distinct

if TYPE_CHECKING:
    from bgt_core.data.trees import Parsed, Tree

AT_MOST = sum(SIZES.values()) // 8  # maximum number of items per label


def from_trees(trees: Sequence[Tree], lang: str, rng: Random) -> Items:
    return _labelled(((tree.text(lang), tree.depth) for tree in trees), rng)


def from_conllu(parsed: Sequence[Parsed], lang: str, rng: Random) -> Items:
    return _labelled(((sentence.text(), depth(sentence)) for sentence in parsed), rng)


def depth(sentence: Parsed) -> int:
    """Count the words on the longest path from the root to a leaf, without punctuation."""
    deepest, level = 0, [sentence.root]
    while level:
        deepest += 1
        below = (child for word in level for child in sentence.children[word.number])
        level = [word for word in below if word.upos != "PUNCT" and not word.is_a("punct")]
    return deepest


def _labelled(depths: Iterable[tuple[str, int]], rng: Random) -> Items:
    sentences, numbers = [], []
    for sentence, count in depths:
        sentences.append(sentence)
        numbers.append(str(count))
    items = distinct(Items(sentences, numbers, list(range(len(sentences)))))
    used: Counter[str] = Counter()
    rows = []
    for row in rng.sample(range(len(items.labels)), len(items.labels)):
        used[items.labels[row]] += 1
        if used[items.labels[row]] <= AT_MOST:
            rows.append(row)
    return items.take(sorted(rows))


DEPTH = ProbeTask(
    "depth", "how deep is the tree?", {"trees": from_trees, "conllu": from_conllu}, file="tree_depth", group="syntax"
)
