"""The probing task `gender`: is the article of the right gender? (BGT paper, sec. 5.2)

Every sentence is used twice: as written, and with one article changed to the other gender (`bgt_core.data.properties`).
So the labels are balanced, and the two versions differ only in one article. No probe can reach 100 %, because some
nouns have both genders.
"""

from collections.abc import Sequence
from random import Random

from bgt_core.data.properties import ARTICLES, swap
from probes.task import Items, ProbeTask

LABELS = ("correct", "swapped")


def build(sentences: Sequence[str], lang: str, rng: Random) -> Items:
    """Add both versions of each sentence as a group. A sentence is skipped if either version was added before."""
    items = Items()
    seen: set[str] = set()
    for group, sentence in enumerate(sentences):
        swapped = swap(sentence, lang, rng)
        if swapped is None or not seen.isdisjoint({sentence, swapped}):
            continue
        seen |= {sentence, swapped}
        for text, label in zip((sentence, swapped), LABELS, strict=True):
            items.add(text, label, group)
    return items


GENDER = ProbeTask(
    "gender",
    "has one article been swapped to the other gender?",
    {"text": build},
    tuple(sorted(ARTICLES, reverse=True)),
    group="syntax",
)
