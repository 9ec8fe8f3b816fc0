"""Cells to finished folders: each is trained, measured and marked, once, whoever else is at it.

    OUT/cells/NAME/           a run's folder, and
        final/                the last weights, once it is trained; the other checkpoints are gone by then
        cosines.parquet       of every pair, by latent
        hits.json             of every translation
        result.json           what it is and what it took; written last: with it the cell is finished
        error.json            why it failed, instead
        time.json             seconds of training so far
        lock                  held by the process that is at it

A cell that was stopped goes on from its newest checkpoint.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import bgt_core
from bgt_core import checkpoint, run
from bgt_core.data.store import Corpus
from bgt_core.errors import Interrupted
from bgt_core.evaluation.sts.parquet import write_scores
from bgt_core.recipes import Recipe
from bgt_core.reproduce import measure
from bgt_core.reproduce.cells import Cell, changed
from bgt_core.reproduce.datasets import Langs, Material, prepared
from bgt_core.reproduce.locks import locked

RESULT, ERROR, TIME, COSINES, HITS, FINAL, LOCK = (
    "result.json",
    "error.json",
    "time.json",
    "cosines.parquet",
    "hits.json",
    "final",
    "lock",
)
FINISHED, FAILED, OUTDATED, RUNNING, STOPPED, WAITING = "finished failed outdated running stopped waiting".split()


@dataclass(frozen=True)
class Place:
    """Where cells are kept, and how they are run."""

    out: Path
    materials: dict[Langs, Material]
    device: str = "auto"
    save_every: int | None = None  # updates, where not the recipe's
    say: Callable[[str], None] = print
    report: run.Report = lambda row: None  # a row of metrics of the training in progress

    def folder(self, cell: Cell) -> Path:
        return self.out / "cells" / cell.name


def work(place: Place, cells: Sequence[Cell], retry: bool = False) -> None:
    """Run the cells that nobody has run; with `retry` also those that failed or are outdated, each once.

    Returns when all are finished, failed, or in the hands of another process. A cell's error is written beside it and
    the others go on; `Interrupted` and KeyboardInterrupt are not errors of a cell, and end the work.
    """
    left = list(cells)
    while left:
        busy = [cell for number, cell in enumerate(left, 1) if not attempt(place, cell, retry, f"{number}/{len(left)}")]
        if len(busy) == len(left):
            return
        left = busy


def attempt(place: Place, cell: Cell, retry: bool, number: str) -> bool:
    """Whether the cell is finished or failed now; not where another process has it."""
    folder = place.folder(cell)
    with locked(folder / LOCK) as ours:
        if not ours:
            return False
        if (now := settled(cell, folder)) == FINISHED or (now and not retry):
            return True
        (folder / ERROR).unlink(missing_ok=True)
        place.say(f"{number} {cell.name}")
        try:
            finish(place, cell, folder)
        except Interrupted:
            raise
        except Exception as error:  # noqa: BLE001 - whatever one cell's system does, the others go on; it is all kept
            place.say(f"{cell.name} failed: {error}")
            write(folder / ERROR, {"error": str(error), "kind": type(error).__name__, "trace": traceback.format_exc()})
        return True


def finish(place: Place, cell: Cell, folder: Path) -> None:
    """Train the cell, from where it stopped, then measure it."""
    recipe, material = cell.build(), place.materials[cell.langs]
    if outdated := changed(begun(folder), recipe.arguments):
        place.say(f"{cell.name}: begun with {', '.join(outdated)}; it begins anew")
        clear(folder)
    found = prepared(material, recipe, place.out / "data", place.say, torch.get_num_threads())
    if not (folder / FINAL).exists():
        if not (folder / run.SETTINGS).exists():
            run.share(recipe, [found.pairs], found.tokenizer, found.corpus, folder)
        train(place, folder)
    for step in checkpoint.steps_of(folder):
        shutil.rmtree(step)
    embedder = bgt_core.load(folder / FINAL, place.device, recipe.train.precision)
    partial = folder / (HITS + ".partial")
    measure.write_hits(partial, measure.hits(embedder, material))
    partial.replace(folder / HITS)
    write_scores(folder / COSINES, measure.cosines(embedder, material))
    write(folder / RESULT, trail(cell, recipe, folder))


def train(place: Place, folder: Path) -> None:
    """To the last weights, kept without the optimiser's state."""
    before, start = seconds(folder), time.perf_counter()

    def note(row: dict[str, Any]) -> None:
        write(folder / TIME, {"seconds": before + time.perf_counter() - start})
        place.report(row)

    last = run.resume(folder, device=place.device, report=note, save_every=place.save_every)
    made = checkpoint.load(last)
    metrics = folder / checkpoint.METRICS
    kept = metrics.read_bytes() if metrics.exists() else b""
    checkpoint.save(folder / FINAL, made.recipe, made.model, made.tokenizer, made.config["step"], metrics=kept)


def trail(cell: Cell, recipe: Recipe, folder: Path) -> dict[str, Any]:
    """What a number of this cell comes from."""
    valid, rate = measure.reported(folder / checkpoint.METRICS)
    config = checkpoint.read_config(folder / FINAL)
    return {
        "recipe": cell.recipe,
        "overrides": dict(cell.overrides),
        "left_out": list(cell.left_out),
        "arguments": dict(recipe.arguments),
        "langs": list(cell.langs),
        "seed": cell.seed,
        "data": cell.data,
        "version": bgt_core.__version__,
        "git": git_state(),
        "measured": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "parameters": config["parameters"],
        "updates": config["step"],
        "seconds": seconds(folder),
        **measure.spent(recipe, Corpus.open(folder / "data"), rate),
        "validation": valid,
    }


def git_state() -> str | None:
    """The commit of this code, and whether it was changed since; None where it is no checkout."""
    root = Path(bgt_core.__file__).parent.parent
    if not (root / ".git").exists() or not shutil.which("git"):
        return None
    asked = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    return subprocess.run(asked, capture_output=True, text=True).stdout.strip() or None


def state(place: Place, cell: Cell) -> str:
    """Of a cell, now."""
    folder = place.folder(cell)
    if found := settled(cell, folder):
        return found
    if not (folder / LOCK).exists():
        return WAITING
    with locked(folder / LOCK) as ours:
        if not ours:
            return RUNNING
    return STOPPED if (folder / run.SETTINGS).exists() else WAITING


def settled(cell: Cell, folder: Path) -> str:
    """Whether it is finished, failed, or finished with arguments that are no longer those of its recipe; else ""."""
    if (folder / RESULT).exists():
        return OUTDATED if changed(read(folder / RESULT)["arguments"], cell.build().arguments) else FINISHED
    return FAILED if (folder / ERROR).exists() else ""


def begun(folder: Path) -> dict[str, Any]:
    """The arguments of the run in a folder, none where there is none."""
    return read(folder / run.SETTINGS).get("arguments", {})


def seconds(folder: Path) -> float:
    """Of training so far, over all its beginnings."""
    return read(folder / TIME).get("seconds", 0.0)


def clear(folder: Path) -> None:
    """All but the lock, which is held."""
    for path in folder.iterdir():
        if path.name != LOCK:
            run.remove(path) if not path.is_symlink() else path.unlink()


def write(path: Path, value: dict[str, Any]) -> None:
    run.write_atomically(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read(path: Path) -> dict[str, Any]:
    """A JSON file of ours, {} where it is absent."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
