"""How long the trainings of a list still take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from bgt_core import checkpoint
from bgt_core.reproduce import runner
from bgt_core.reproduce.cells import Cell
from bgt_core.reproduce.results import error


def left(place: runner.Place, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Of each: name, state, error, seconds so far, and seconds left.

    What is begun goes on as fast as it went; the rest takes what finished ones of its recipe took on the mean, or of
    all recipes. None where nothing is known.
    """
    found = []
    for cell in cells:
        folder, state = place.folder(cell), runner.state(place, cell)
        row = {"name": cell.name, "state": state, "error": error(place, cell), "seconds": runner.seconds(folder)}
        found.append(row | {"done": 1.0 if state == runner.FINISHED else done(folder)})
    finished = [
        (cell.recipe, row["seconds"]) for cell, row in zip(cells, found, strict=True) if row["state"] == runner.FINISHED
    ]
    for cell, row in zip(cells, found, strict=True):
        share = row.pop("done")
        alike = [time for recipe, time in finished if recipe == cell.recipe] or [time for _, time in finished]
        if row["state"] in (runner.FINISHED, runner.FAILED, runner.OUTDATED):
            row["left"] = 0.0
        elif share:
            row["left"] = row["seconds"] * (1 - share) / share
        else:
            row["left"] = fmean(alike) if alike else None
    return found


def done(folder: Path) -> float:
    """The share of its updates that a run has reported."""
    metrics = folder / checkpoint.METRICS
    lines = metrics.read_text(encoding="utf-8").splitlines(keepends=True) if metrics.exists() else []
    whole = [json.loads(line) for line in lines if line.endswith("\n")]
    return whole[-1]["step"] / whole[-1]["steps"] if whole else 0.0
