"""Punctuation number: how many punctuation marks? (paper, sec. 5.2 and footnotes 13, 14)

The paper's marks are the 32 of ASCII, $ + < = > ^ ` | ~ among them; here so are those of Unicode's punctuation, for
«, ¿, 。 and ؟, which changes nothing in English typed on a keyboard. Each character counts: "..." is three marks, "…"
is one, the apostrophe of l'eau is one. Sentences without any are skipped.
"""

from __future__ import annotations

import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from random import Random

from probes.task import Items, ProbeTask

MOST = 10  # labels are 1 to 10, and 11+
AT_MOST = 20_000  # sentences a label, all splits together (paper)


@cache
def is_mark(char: str) -> bool:
    """Whether a character is a punctuation mark."""
    return char in string.punctuation or unicodedata.category(char).startswith("P")


def build(sentences: Sequence[str], lang: str, rng: Random) -> Items:
    """At most `AT_MOST` sentences a label, drawn at random."""
    items, used = Items([], [], []), Counter()
    for place in rng.sample(range(len(sentences)), len(sentences)):
        count = sum(map(is_mark, sentences[place]))
        label = str(count) if count <= MOST else f"{MOST + 1}+"
        if not count or used[label] == AT_MOST:
            continue
        used[label] += 1
        items.sentences.append(sentences[place])
        items.labels.append(label)
        items.groups.append(place)
    return items


PUNCT_NUM = ProbeTask("punct-num", "how many punctuation marks? (1 to 10, 11+)", {"text": build}, classes=MOST + 1)
