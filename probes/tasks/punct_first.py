"""Punctuation first: which punctuation mark comes first? (paper, sec. 5.2)

The label is the mark itself; marks as in `punct_num`. Sentences without any are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from probes.task import Items, ProbeTask
from probes.tasks.punct_num import is_mark


def build(sentences: Sequence[str], lang: str, rng: Random) -> Items:
    """Every sentence with a mark."""
    items = Items([], [], [])
    for place, sentence in enumerate(sentences):
        first = next(filter(is_mark, sentence), None)
        if first:
            items.sentences.append(sentence)
            items.labels.append(first)
            items.groups.append(place)
    return items


PUNCT_FIRST = ProbeTask("punct-first", "which punctuation mark comes first?", {"text": build})
