"""Question form: which of the three ways to ask is used?

French: est-ce que, inversion of the verb and its pronoun, or the order of a statement ("intonation"), with or without a
question word (Coveney 2002, Variability in spoken French). Questions whose subject is the question word, or with
another order, are skipped. Of 100 questions labelled by hand the rule spoke for 79, and 78 of those were right.
"""

from __future__ import annotations

from bgt_core.data.properties import PROPERTIES
from probes.data.items import by_property
from probes.task import ProbeTask

QUESTION_FORM = ProbeTask(
    "question-form",
    "est-ce que, inversion, or the order of a statement?",
    {"text": by_property("question-form")},
    tuple(PROPERTIES["question-form"].rules),
    group="style",
)
