"""The probing task `bigram-shift`: have two neighbouring words changed places? (SentEval, bigram_shift)

In half of the sentences, a random pair of neighbouring words is exchanged. The two words differ, only a space is
between them, and neither is the first word of the sentence. Sentences without such a pair are skipped. As in SentEval,
sentences with double quotes are skipped, too. No sentence is used in both orders.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from random import Random

from bgt_core.data.text import LETTERS
from probes.task import Items, ProbeTask

ORIGINAL, SHIFTED = "O", "I"
_WORD = re.compile(LETTERS)  # includes apostrophes and hyphens, so that only whole words are exchanged
_QUOTES = re.compile(r'["“”„«»]')


def pairs(sentence: str) -> list[tuple[re.Match[str], re.Match[str]]]:
    """List the pairs of neighbouring words of a sentence that may be exchanged."""
    return [
        (left, right)
        for left, right in pairwise(list(_WORD.finditer(sentence))[1:])
        if sentence[left.end() : right.start()] == " " and left[0].casefold() != right[0].casefold()
    ]


def build(sentences: Sequence[str], lang: str, rng: Random) -> Items:
    """Exchange a pair of words from `pairs` in half of the sentences that have one, and leave the others unchanged."""
    items, known = Items(), set(sentences)
    shift = False
    for index in rng.sample(range(len(sentences)), len(sentences)):
        sentence = sentences[index]
        movable = [] if _QUOTES.search(sentence) else pairs(sentence)
        if not movable:
            continue
        left, right = rng.choice(movable)
        shifted = f"{sentence[: left.start()]}{right[0]} {left[0]}{sentence[right.end() :]}"
        if shifted in known:  # skip an exchange that gives another sentence of the text
            continue
        items.add(shifted if shift else sentence, SHIFTED if shift else ORIGINAL, index)
        known.add(shifted)
        shift = not shift
    return items


BIGRAM_SHIFT = ProbeTask(
    "bigram-shift",
    "have two neighbouring words changed places?",
    {"text": build},
    langs=("en", "fr", "es", "de", "tr", "ar"),  # not Japanese, which is written without spaces
    file="bigram_shift",
    reordered=True,
    group="syntax",
)
