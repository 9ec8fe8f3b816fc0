"""Contraction: is a verb or a negation contracted, or could it be?

English: a contraction (don't, it's, we'll), against a full form that allows one (do not, it is, we will): Quirk et al.
1985, sec. 3.23 and 3.32. A noun with 's is neither, nor is a verb at the end of its clause. Sentences with both or
neither are skipped. On 100 sentences labelled by hand the rule was right wherever it spoke, and spoke for 55 of the 57
that have one or could.
"""

from __future__ import annotations

from bgt_core.data.properties import PROPERTIES
from probes.data.items import by_property
from probes.task import ProbeTask

CONTRACTION = ProbeTask(
    "contraction",
    "is a verb or negation contracted, where it could be (it's, it is)?",
    {"text": by_property("contraction")},
    tuple(PROPERTIES["contraction"].rules),
    group="style",
)
