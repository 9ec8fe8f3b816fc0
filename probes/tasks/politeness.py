"""Politeness: is the sentence in polite or plain form?

Japanese: the last predicate ends in a form of desu or masu, or in a plain one (Shibatani 1990, The languages of Japan,
ch. 12). What has no predicate is skipped. Of 100 sentences labelled by hand the rule spoke for 91, and 90 of those were
right.
"""

from __future__ import annotations

from bgt_core.data.properties import PROPERTIES
from probes.data.items import by_property
from probes.task import ProbeTask

POLITENESS = ProbeTask(
    "politeness",
    "is the sentence in polite or plain form (desu, masu)?",
    {"text": by_property("politeness")},
    tuple(PROPERTIES["politeness"].rules),
    group="style",
)
