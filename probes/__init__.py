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
    "Cell": "results.store",
    "Items": "task",
    "ProbeConfig": "measures.measure",
    "ProbeResult": "results.store",
    "ProbeTable": "grid",
    "ProbeTask": "task",
    "TASKS": "tasks",
    "measure_cell": "grid",
    "run": "probe",
    "table": "grid",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from probes.grid import ProbeTable as ProbeTable
    from probes.grid import measure_cell as measure_cell
    from probes.grid import table as table
    from probes.measures.measure import ProbeConfig as ProbeConfig
    from probes.probe import run as run
    from probes.results.store import Cell as Cell
    from probes.results.store import ProbeResult as ProbeResult
    from probes.task import Items as Items
    from probes.task import ProbeTask as ProbeTask
    from probes.tasks import TASKS as TASKS


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'probes' has no attribute '{name}'")
    return getattr(import_module(f"probes.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
