"""The probing task `word-content`: which of 1,000 words is in the sentence? (BGT paper, table 3; SentEval)

As in SentEval's data set, words are lower-cased and ranked by frequency, and the labels are the first k words after
rank 2k that have 4 letters or more. A sentence is used if it contains exactly one of these words, and only once. k is
1,000 or, if there is less text, the largest of 500, 250, ... for which all labels are frequent enough to be learnt.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

from probes.task import RARE, Items, ProbeTask, split_words

MOST = 1_000  # maximum number of labels
SHORTEST = 4  # minimum number of letters of a label


def targets(counts: Mapping[str, int], most: int = MOST) -> set[str]:
    """Choose the target words, which become labels, given the number of sentences that contain each word."""
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    while most > 1:
        chosen = [word for word in ranked[2 * most :] if len(word) >= SHORTEST and word.isalpha()][:most]
        if len(chosen) == most and counts[chosen[-1]] >= RARE:
            return set(chosen)
        most //= 2
    return set()


def build(sentences: Sequence[str], lang: str, rng: Random) -> Items:
    """Use the sentences that contain exactly one of the target words, and only once."""
    if lang == "tr":  # Turkish lower-cases I to ı, and İ to i
        sentences = [sentence.replace("İ", "i").replace("I", "ı") for sentence in sentences]
    split = [split_words(sentence.lower()) for sentence in sentences]
    labels = targets(Counter(word for words in split for word in set(words)))
    items = Items()
    for index, words in enumerate(split):
        matches = [word for word in words if word in labels]
        if len(matches) == 1:
            items.add(sentences[index], matches[0], index)
    return items


WORD_CONTENT = ProbeTask(
    "word-content",
    "which of 1,000 words is in it?",
    {"text": build},
    langs=("en", "fr", "es", "de", "tr", "ar"),  # not Japanese, which is written without spaces
    file="word_content",
    classes=MOST,
    group="surface",
)
