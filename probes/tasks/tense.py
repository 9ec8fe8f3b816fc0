"""The probing task `tense`: is the main verb in the past or in the present? (SentEval, past_present)

The label is the feature Tense (CoNLL-U) of the root, if this is a finite verb without an auxiliary, or of its finite
copula. The imperfect and the pluperfect count as past. Sentences with auxiliaries are skipped, because the auxiliary of
a compound past is in the present (il a mangé). Words with Tense but without VerbForm count as finite, because Turkish
treebanks have such words. Both labels have the same number of items. Sentences with the same verb form are one group,
so that no verb form is in two splits, as in SentEval.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from probes.task import Items, ProbeTask, balance, distinct

if TYPE_CHECKING:
    from bgt_core.data.trees import Parsed

LABELS = {"Past": "Past", "Imp": "Past", "Pqp": "Past", "Pres": "Pres"}  # value of the feature Tense -> label


def build(parsed: Sequence[Parsed], lang: str, rng: Random) -> Items:
    """Use sentences whose main clause has only one finite verb, which is in the past or the present."""
    items = Items()
    groups: dict[str, int] = {}  # verb form -> group of its sentences
    for sentence in parsed:
        below = sentence.children[sentence.root.number]
        copulas = [word for word in below if word.is_a("cop")]
        if any(word.is_a("aux") for word in below) or len(copulas) > 1:
            continue
        verb = copulas[0] if copulas else sentence.root
        label = LABELS.get(verb.feats.get("Tense", ""))
        if label is None or verb.upos not in ("VERB", "AUX") or verb.feats.get("VerbForm", "Fin") != "Fin":
            continue
        items.add(sentence.text(), label, groups.setdefault(verb.form.casefold(), len(groups)))
    return balance(distinct(items), rng)


TENSE = ProbeTask(
    "tense",
    "is the main verb in the past or present?",
    {"conllu": build},
    langs=("en", "fr", "es", "de", "tr"),  # not ja and ar, whose treebanks mark no tense, at most aspect
    file="past_present",
    group="semantic",
)
