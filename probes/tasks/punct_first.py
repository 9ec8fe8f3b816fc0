"""Punctuation first: which punctuation mark comes first? (paper, sec. 5.2)

The label is the mark itself; marks as in `probes.task`. Sentences without any are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from probes.task import Items, ProbeTask, is_punctuation


def build(sentences: Sequence[str], lang: str, rng: Random) -> Items:
    """Every sentence with a mark."""
    items = Items()
    for index, sentence in enumerate(sentences):
        first = next(filter(is_punctuation, sentence), None)
        if first:
            items.add(sentence, first, index)
    return items


PUNCT_FIRST = ProbeTask("punct-first", "which punctuation mark comes first?", {"text": build}, group="surface")
