"""The probing task `lang-id`: which language is the sentence in?

The task needs text in two or more languages, which users name together, as in `--lang en-fr`. The label of a sentence
is its language, in which it is also embedded. All languages have the same number of items. Translations are in one
group, and so in one split. Parallel text is preferable, because all languages have the same topics. A sentence that
occurs in two languages ("Internet.") is skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING

from probes.task import Items, ProbeTask, balance

if TYPE_CHECKING:
    from probes.data.load import Text


def build(texts: Mapping[str, Text], lang: str, rng: Random) -> Items:
    """Draw the same number of sentences at random from every language."""
    used = Counter(sentence for text in texts.values() for sentence in text.sentences)
    items = Items()
    for label, text in texts.items():
        for sentence, group in zip(text.sentences, text.groups, strict=True):
            if used[sentence] == 1:
                items.add(sentence, label, group)
    return balance(items, rng)


LANG_ID = ProbeTask(
    "lang-id", "which language is it in? (of those named together, as in en-fr)", {"texts": build}, group="surface"
)
