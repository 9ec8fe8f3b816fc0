"""Every task; a new one is a file here and a line below."""

from __future__ import annotations

from difflib import get_close_matches

from bgt_core.errors import BadInput
from probes.task import ProbeTask
from probes.tasks.gender import GENDER
from probes.tasks.length import LENGTH
from probes.tasks.punctuation import PUNCTUATION

TASKS: dict[str, ProbeTask] = {
    "gender": GENDER,
    "length": LENGTH,
    "punctuation": PUNCTUATION,
}


def find(name: str) -> ProbeTask:
    """The task called `name`; BadInput suggests the nearest name."""
    if name in TASKS:
        return TASKS[name]
    near = get_close_matches(name, TASKS, n=1)
    hint = f"Did you mean '{near[0]}'?" if near else f"Choose from {', '.join(TASKS)}."
    raise BadInput(f"Unknown task '{name}'. {hint}", 2)
