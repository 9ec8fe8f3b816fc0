"""Subject number: is the subject of the main clause singular or plural? (paper, table 3; rules in `number`)"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from probes.task import Items, ProbeTask
from probes.tasks.number import LANGS, number

if TYPE_CHECKING:
    from bgt_core.data.conllu import Parsed


def build(parsed: Sequence[Parsed], lang: str, rng: Random) -> Items:
    """Sentences whose root has one subject, a common noun."""
    return number(parsed, "nsubj", rng)


SUBJ_NUM = ProbeTask(
    "subj-num", "is the subject singular or plural?", {"conllu": build}, langs=LANGS, file="subj_number"
)
