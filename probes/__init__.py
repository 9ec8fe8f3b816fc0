"""Probe latents: train small classifiers on an encoder's vectors, and compare them with baselines.

In Python:

    import bgt_core, probes

    bgt = bgt_core.load()
    result = probes.run(bgt, "length", lang="en", config=probes.ProbeConfig(seeds=3))  # one task in one language
    table = probes.table({"mine": bgt}, ["surface"], ["en", "fr"])  # several tasks and languages, as in `bgt-probe`
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# The module that defines each name. It is imported on first use, so that `bgt-probe --help` does not import torch.
_HOMES = {
    "ProbeTable": "grid", "measure_cell": "grid", "table": "grid", "run": "probe", "ProbeConfig": "measures.measure",
    "Cell": "results.store", "ProbeResult": "results.store", "Items": "task", "ProbeTask": "task", "TASKS": "tasks",
}  # fmt: skip

__all__ = [
    "TASKS", "Cell", "Items", "ProbeConfig", "ProbeResult", "ProbeTable", "ProbeTask", "measure_cell", "run", "table",
]  # fmt: skip

if TYPE_CHECKING:
    from probes.grid import ProbeTable, measure_cell, table
    from probes.measures.measure import ProbeConfig
    from probes.probe import run
    from probes.results.store import Cell, ProbeResult
    from probes.task import Items, ProbeTask
    from probes.tasks import TASKS


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'probes' has no attribute '{name}'")
    return getattr(import_module(f"probes.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
