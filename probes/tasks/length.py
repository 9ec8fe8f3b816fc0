"""Length: the bin of the number of words (paper, sec. 5.2).

Words as in `words`: in Japanese and Chinese a character is one. SentEval's own set has the bins 5-8, 9-12, 13-16,
17-20, 21-25 and 26-28; from text, bins follow the lengths that there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from probes.task import Items, ProbeTask
from probes.words import words

BINS = 6


def edges(lengths: Sequence[int], bins: int = BINS) -> list[int]:
    """The largest length of each bin, bins as equally frequent as whole lengths allow."""
    counts = sorted(Counter(lengths).items())
    left, found, inside = len(lengths), [], 0
    for place, (length, count) in enumerate(counts):
        inside += count
        following = counts[place + 1][1] if place + 1 < len(counts) else 0
        share = left / (bins - len(found))
        # close the bin here when taking the next length would overshoot more than stopping now falls short
        if len(found) < bins - 1 and inside + following - share > share - inside:
            found.append(length)
            left, inside = left - inside, 0
    return found if found and found[-1] == counts[-1][0] else [*found, counts[-1][0]]


def build(sentences: Sequence[str], lang: str, rng: Random) -> Items:
    """Every sentence with a word; the label names the lengths of its bin, as in "7-9"."""
    counted = [(place, count) for place, sentence in enumerate(sentences) if (count := words(sentence))]
    if not counted:
        return Items([], [], [])
    names, low = {}, min(count for _, count in counted)
    for high in edges([count for _, count in counted]):
        name = str(low) if low == high else f"{low}-{high}"
        names |= dict.fromkeys(range(low, high + 1), name)
        low = high + 1
    places = [place for place, _ in counted]
    return Items([sentences[place] for place in places], [names[count] for _, count in counted], places)


LENGTH = ProbeTask(
    "length",
    f"how many words? ({BINS} bins of about equal frequency)",
    {"text": build},
    file="sentence_length",
    classes=BINS,
)
