"""The probing task `top-const`: which constituents make up the sentence? (BGT paper, table 3; SentEval)

The label is the sequence of the labels of the top constituent's children, such as NP_VP_ and a full stop. All
sequences except the 19 most frequent have the label OTHER. As in SentEval, a sequence must end in a full stop, and must
not contain other punctuation or quotes. Each label has at most a twentieth of the paper's number of items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from probes.task import SIZES, Items, ProbeTask, distinct

if TYPE_CHECKING:
    from bgt_core.data.trees import Tree

CLASSES = 20
AT_MOST = sum(SIZES.values()) // CLASSES  # maximum number of items per label
OTHER = "OTHER"


def build(trees: Sequence[Tree], lang: str, rng: Random) -> Items:
    """Use sentences that end in a full stop, without punctuation between their top constituents."""
    kept = [
        tree
        for tree in trees
        if len(tree.children) > 1
        and tree.children[-1].label == "."
        and all(child.label.replace("$", "").isalpha() for child in tree.children[:-1])
    ]
    labels = ["_".join(child.label for child in tree.children) for tree in kept]
    items = distinct(Items([tree.text(lang) for tree in kept], labels, list(range(len(kept)))))
    common = {label for label, _ in Counter(items.labels).most_common(CLASSES - 1)}
    used: Counter[str] = Counter()
    chosen = Items()
    for row in rng.sample(range(len(items.labels)), len(items.labels)):
        label = items.labels[row] if items.labels[row] in common else OTHER
        used[label] += 1
        if used[label] <= AT_MOST:
            chosen.add(items.sentences[row], label, items.groups[row])
    return chosen


TOP_CONST = ProbeTask(
    "top-const",
    "which constituents make up the sentence? (19 sequences, OTHER)",
    {"trees": build},
    file="top_constituents",
    classes=CLASSES,
    group="syntax",
)
