"""Sentence type: a statement, a question or an exclamation, by its closing mark.

The label is the mark ( . ? ! in any script), read past quotes and brackets; sentences with another end are skipped.
The semantic encoders of `bgt-bound` do not see it.
"""

from __future__ import annotations

from probes.data.items import by_property
from probes.task import ProbeTask

SENTENCE_TYPE = ProbeTask(
    "sentence-type",
    "statement, question or exclamation, by the closing mark?",
    {"text": by_property("sentence-type")},
    group="style",
)
