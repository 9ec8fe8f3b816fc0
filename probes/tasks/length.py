"""The probing task `length`: in which bin is the number of words? (BGT paper, sec. 5.2)

Words are counted as in `probes.task`: in Japanese and Chinese, each character is a word. SentEval's data set has the
bins 5-8, 9-12, 13-16, 17-20, 21-25 and 26-28; for other text, the bins depend on the lengths that occur.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random

from probes.task import Items, ProbeTask, count_words

BINS = 6


def bin_edges(lengths: Sequence[int]) -> list[int]:
    """Divide lengths into bins that are as equally frequent as possible; return the largest length of each bin."""
    counts = sorted(Counter(lengths).items())
    edges: list[int] = []
    remaining, size = len(lengths), 0  # numbers of sentences that are in no finished bin, and in the current bin
    for index, (length, count) in enumerate(counts):
        size += count
        next_count = counts[index + 1][1] if index + 1 < len(counts) else 0
        target = remaining / (BINS - len(edges))
        # finish the bin if its size would be farther from the target with the next length than without it
        if len(edges) < BINS - 1 and size + next_count - target > target - size:
            edges.append(length)
            remaining, size = remaining - size, 0
    longest = counts[-1][0]
    return edges if edges and edges[-1] == longest else [*edges, longest]


def build(sentences: Sequence[str], lang: str, rng: Random) -> Items:
    """Use every sentence that has a word. Its label is the range of word counts of its bin, as in "7-9"."""
    lengths = {index: count for index, sentence in enumerate(sentences) if (count := count_words(sentence))}
    if not lengths:
        return Items()
    bins: dict[int, str] = {}  # number of words -> its bin
    low = min(lengths.values())
    for high in bin_edges(list(lengths.values())):
        bins |= dict.fromkeys(range(low, high + 1), str(low) if low == high else f"{low}-{high}")
        low = high + 1
    return Items([sentences[index] for index in lengths], [bins[count] for count in lengths.values()], list(lengths))


LENGTH = ProbeTask(
    "length",
    f"how many words? ({BINS} bins of about equal frequency)",
    {"text": build},
    file="sentence_length",
    classes=BINS,
    group="surface",
)
