"""Punctuation: the number of punctuation marks (paper, sec. 5.2 and footnote 13).

Marks are ASCII punctuation and the usual French and Spanish ones. Each character counts: "..." is three
marks, "…" is one, the apostrophe of l'eau is one. Sentences without any are skipped.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from random import Random

from probes.task import Items, ProbeTask

MARKS = frozenset(string.punctuation + "«»¿¡…’‘“”–—")
MOST = 10  # labels are 1 to 10, and 11+
AT_MOST = 20_000  # sentences a label (paper)


def build(sentences: Sequence[str], lang: str, rng: Random) -> Items:
    """At most `AT_MOST` sentences a label, drawn at random."""
    items, used = Items([], [], []), Counter()
    for sentence in rng.sample(sentences, len(sentences)):
        count = sum(char in MARKS for char in sentence)
        label = str(count) if count <= MOST else f"{MOST + 1}+"
        if not count or used[label] == AT_MOST:
            continue
        used[label] += 1
        items.groups.append(len(items.groups))
        items.sentences.append(sentence)
        items.labels.append(label)
    return items


PUNCTUATION = ProbeTask("punctuation", "how many punctuation marks? (1 to 10, 11+)", build)
