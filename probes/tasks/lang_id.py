"""Language identity: which language is the sentence in?

From text of two or more languages, named together as in en-fr; the label is the language, in which the sentence is also
to be embedded. As many items of one language as of another. Translations share a group and so a split: where the text
is parallel, the topics of the languages are the same. A sentence that occurs in two languages ("Internet.") is skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING

from probes.data.items import balance
from probes.task import Items, ProbeTask

if TYPE_CHECKING:
    from probes.data.sources import Text


def build(texts: Mapping[str, Text], lang: str, rng: Random) -> Items:
    """The sentences of every language, those of the larger texts drawn at random."""
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
