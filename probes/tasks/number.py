"""The probing tasks `subj-num` and `obj-num`: is the main clause's subject, or object, singular or plural?

The label is the feature Number (CoNLL-U), Sing or Plur, of the only subject or object of the root. Only common nouns
are used (NOUN, as in SentEval); pronouns, names, dual and collective numbers, and coordinated nouns are skipped. Both
labels have the same number of items. Sentences with the same noun form are one group: as in SentEval, no noun form is
in two splits, so that a probe can't memorise whether a noun is singular or plural. SentEval's limits on a noun's
frequency are not used, because treebanks are too small. The tasks are in table 3 of the BGT paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from probes.task import Items, ProbeTask, balance, distinct

if TYPE_CHECKING:
    from bgt_core.data.trees import Parsed

LANGS = ("en", "fr", "es", "de", "tr", "ar")  # all but Japanese, whose nouns have no number


def build(relation: str, parsed: Sequence[Parsed], lang: str, rng: Random) -> Items:
    """Use sentences whose root has exactly one dependent in this relation ("nsubj", "obj"), if it is a common noun."""
    items = Items()
    groups: dict[str, int] = {}  # noun form -> group of its sentences
    for sentence in parsed:
        nouns = [word for word in sentence.children[sentence.root.number] if word.is_a(relation)]
        if len(nouns) != 1 or nouns[0].upos != "NOUN" or nouns[0].feats.get("Number") not in ("Sing", "Plur"):
            continue
        if any(below.is_a("conj") for below in sentence.children[nouns[0].number]):
            continue
        items.add(sentence.text(), nouns[0].feats["Number"], groups.setdefault(nouns[0].form.casefold(), len(groups)))
    return balance(distinct(items), rng)


SUBJ_NUM, OBJ_NUM = (
    ProbeTask(
        f"{short}-num",
        f"is the {noun} singular or plural?",
        {"conllu": partial(build, relation)},
        langs=LANGS,
        file=f"{short}_number",
        group="semantic",
    )
    for short, noun, relation in (("subj", "subject", "nsubj"), ("obj", "object", "obj"))
)
