"""Every task; a new one is a file here and a line below."""

from __future__ import annotations

from bgt_core.errors import UsageError, did_you_mean
from probes.task import ProbeTask
from probes.tasks.bigram_shift import BIGRAM_SHIFT
from probes.tasks.coord_inv import COORD_INV
from probes.tasks.depth import DEPTH
from probes.tasks.gender import GENDER
from probes.tasks.lang_id import LANG_ID
from probes.tasks.length import LENGTH
from probes.tasks.obj_num import OBJ_NUM
from probes.tasks.punct_first import PUNCT_FIRST
from probes.tasks.punct_num import PUNCT_NUM
from probes.tasks.subj_num import SUBJ_NUM
from probes.tasks.tense import TENSE
from probes.tasks.top_const import TOP_CONST
from probes.tasks.word_content import WORD_CONTENT

TASKS: dict[str, ProbeTask] = {
    "subj-num": SUBJ_NUM,
    "obj-num": OBJ_NUM,
    "depth": DEPTH,
    "top-const": TOP_CONST,
    "word-content": WORD_CONTENT,
    "length": LENGTH,
    "punct-num": PUNCT_NUM,
    "punct-first": PUNCT_FIRST,
    "gender": GENDER,
    "tense": TENSE,
    "bigram-shift": BIGRAM_SHIFT,
    "coord-inv": COORD_INV,
    "lang-id": LANG_ID,
}

# "paper" in the order of its table 3; surface, syntax and semantic as in SentEval, the others where they fit best
GROUPS: dict[str, tuple[str, ...]] = {
    "paper": tuple(TASKS)[:9],
    "surface": ("word-content", "length", "punct-num", "punct-first", "lang-id"),
    "syntax": ("depth", "top-const", "bigram-shift", "gender"),
    "semantic": ("subj-num", "obj-num", "tense", "coord-inv"),
    "all": tuple(TASKS),
}


def find(name: str) -> ProbeTask:
    """The task called `name`; UsageError suggests the nearest name."""
    if name in TASKS:
        return TASKS[name]
    names = [*TASKS, *GROUPS]
    hint = did_you_mean(name, names) or f" Choose from {', '.join(names)}."
    raise UsageError(f"Unknown task '{name}'.{hint}")
