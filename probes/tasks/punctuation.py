"""The probing tasks `punct-num` and `punct-first`: how many marks has a sentence, and which is first? (BGT paper, 5.2)

The paper counts ASCII's 32 marks, which include $ + < = > ^ ` | ~. Here, Unicode's punctuation also counts, such as «,
¿, 。 and ؟; for English in ASCII this makes no difference. Each character counts: "..." is three marks, "…" is one
mark, and so is the apostrophe of l'eau. Sentences without a mark are skipped.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random

from probes.task import Items, ProbeTask, is_punctuation

MOST = 10  # largest number of punctuation marks with its own label; the labels are 1 to 10, and 11+
AT_MOST = 20_000  # maximum number of sentences per label, in all splits together (BGT paper)


def count_marks(sentences: Sequence[str], lang: str, rng: Random) -> Items:
    """Label sentences by their number of punctuation marks; draw at most `AT_MOST` per label at random."""
    items = Items()
    used: Counter[str] = Counter()
    for index in rng.sample(range(len(sentences)), len(sentences)):
        count = sum(map(is_punctuation, sentences[index]))
        label = str(count) if count <= MOST else f"{MOST + 1}+"
        if not count or used[label] == AT_MOST:
            continue
        used[label] += 1
        items.add(sentences[index], label, index)
    return items


def first_mark(sentences: Sequence[str], lang: str, rng: Random) -> Items:
    """Label every sentence that has a punctuation mark by its first one."""
    items = Items()
    for index, sentence in enumerate(sentences):
        if first := next(filter(is_punctuation, sentence), None):
            items.add(sentence, first, index)
    return items


PUNCT_NUM = ProbeTask(
    "punct-num", "how many punctuation marks? (1 to 10, 11+)", {"text": count_marks}, classes=MOST + 1, group="surface"
)
PUNCT_FIRST = ProbeTask("punct-first", "which punctuation mark comes first?", {"text": first_mark}, group="surface")
