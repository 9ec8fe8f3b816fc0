"""The list of tasks, without what measuring needs, which takes seconds to import."""

from __future__ import annotations

from bgt_core.tables import show
from probes.tasks import TASKS


def print_tasks() -> None:
    """Print each task with its languages and its question."""
    show(["task", "languages", "question"], [[t.name, ", ".join(t.langs) or "any", t.about] for t in TASKS.values()])
