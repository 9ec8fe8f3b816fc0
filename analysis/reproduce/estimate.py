"""How long a list of trainings will still take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from analysis.reproduce import runner
from analysis.reproduce.results import error
from analysis.reproduce.trainings import Training
from bgt_core import checkpoint


def time_left(workspace: runner.Workspace, trainings: Sequence[Training]) -> list[dict[str, Any]]:
    """Of each: name, state, error, seconds so far, and seconds left as "left".

    A training in progress continues at its own pace; one not begun takes the mean time of the finished ones of its
    recipe, or of all recipes. None where no training is finished.
    """
    states = [runner.state(workspace, training) for training in trainings]
    folders = [workspace.folder(training) for training in trainings]
    spent = [runner.seconds(folder) for folder in folders]
    finished = [
        (training.recipe, seconds)
        for training, state, seconds in zip(trainings, states, spent, strict=True)
        if state == runner.FINISHED
    ]
    rows = []
    for training, state, folder, seconds in zip(trainings, states, folders, spent, strict=True):
        row = {"name": training.name, "state": state, "error": error(workspace, training), "seconds": seconds}
        share = progress(folder)
        alike = [time for recipe, time in finished if recipe == training.recipe] or [time for _, time in finished]
        left: float | None = fmean(alike) if alike else None
        if state in (runner.FINISHED, runner.FAILED, runner.OUTDATED):
            left = 0.0
        elif share:
            left = seconds * (1 - share) / share
        rows.append(row | {"left": left})
    return rows


def progress(folder: Path) -> float:
    """The share of its updates that a run has reported, 0 to 1."""
    metrics = folder / checkpoint.METRICS
    lines = metrics.read_text(encoding="utf-8").splitlines(keepends=True) if metrics.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("\n")]
    return rows[-1]["step"] / rows[-1]["steps"] if rows else 0.0
