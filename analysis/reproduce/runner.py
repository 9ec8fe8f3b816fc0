"""From trainings to finished folders: each is trained, measured and marked once, however many processes share them.

    OUT/cells/NAME/           a run's folder, and
        final/                the last weights, once it is trained; the other checkpoints are gone by then
        cosines.parquet       of every pair, by latent
        hits.json             of every translation
        shares.json           further measures, by latent
        pairs.parquet         of every labelled pair, by each distance
        written.json          text generated for some of them
        result.json           provenance; written last: with it the training is finished
        error.json            why it failed, instead
        time.json             seconds of training so far
        lock                  held by the process that works on it

A training that was stopped continues from its newest checkpoint.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import bgt_core
from analysis.reproduce import measure, rewriting
from analysis.reproduce.datasets import Dataset, prepare
from analysis.reproduce.pair_scores import write_pair_scores
from analysis.reproduce.shares import write_shares
from analysis.reproduce.trainings import Training, changed_arguments
from bgt_core import checkpoint
from bgt_core.data.store import Corpus
from bgt_core.errors import Interrupted, NotFound
from bgt_core.evaluation.sts_files import write_scores
from bgt_core.files import file_lock, write_json
from bgt_core.recipes import Recipe
from bgt_core.training import resume, share
from bgt_core.training.settings import SETTINGS, Report

RESULT, ERROR, TIME, COSINES, HITS, SHARES, PAIRS, WRITTEN, FINAL, LOCK = (
    "result.json",
    "error.json",
    "time.json",
    "cosines.parquet",
    "hits.json",
    "shares.json",
    "pairs.parquet",
    "written.json",
    "final",
    "lock",
)
FINISHED, FAILED, OUTDATED, RUNNING, STOPPED, WAITING = "finished failed outdated running stopped waiting".split()


@dataclass(frozen=True)
class Workspace:
    """Where trainings are kept, and how they are run."""

    out: Path
    datasets: Mapping[str, Dataset]  # by the SHA-256 of their content
    device: str = "auto"
    save_every: int | None = None  # updates between checkpoints, where not the recipe's
    say: Callable[[str], None] = print
    report: Report = lambda row: None  # gets each row of metrics of the training in progress

    def folder(self, training: Training) -> Path:
        return self.out / "cells" / training.name


def run_trainings(workspace: Workspace, trainings: Sequence[Training], retry: bool = False) -> None:
    """Run the trainings that nobody has run; with `retry` also those that failed or are outdated, each once.

    Returns when all are finished, failed, or in the hands of another process. The error of one training is written into
    its folder and the others continue; `Interrupted` and KeyboardInterrupt are not errors of a training, and end the
    work.
    """
    todo = list(trainings)
    while todo:
        busy = [
            training
            for number, training in enumerate(todo, 1)
            if not attempt(workspace, training, retry, f"{number}/{len(todo)}")
        ]
        if len(busy) == len(todo):
            return
        todo = busy


def attempt(workspace: Workspace, training: Training, retry: bool, number: str) -> bool:
    """Run one training; False if another process holds it, or the training that it starts from."""
    folder = workspace.folder(training)
    if training.first and state(workspace, training.first) == RUNNING:
        return False
    with file_lock(folder / LOCK) as ours:
        if not ours:
            return False
        if (now := settled(training, folder)) == FINISHED or (now and not retry):
            return True
        (folder / ERROR).unlink(missing_ok=True)
        workspace.say(f"{number} {training.name}")
        try:
            finish(workspace, training, folder)
        except Interrupted:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the error is, it is kept and the other trainings continue
            workspace.say(f"{training.name} failed: {error}")
            failure = {"error": str(error), "kind": type(error).__name__, "trace": traceback.format_exc()}
            write_json(folder / ERROR, failure, indent=1)
        return True


def finish(workspace: Workspace, training: Training, folder: Path) -> None:
    """Train, or continue, and then measure."""
    first = first_weights(workspace, training)
    recipe, dataset = training.build(str(first or "")), workspace.datasets[training.data]
    if outdated := changed_arguments(begun_with(folder), recipe.arguments or {}):
        workspace.say(f"{training.name}: begun with {', '.join(outdated)}; it starts again")
        clear(folder)
    data = workspace.out / "data"
    tokenizer = first / checkpoint.TOKENIZER if first else None
    files = prepare(dataset, recipe, data, workspace.say, workspace.device, tokenizer)
    if not (folder / FINAL).exists():
        if not (folder / SETTINGS).exists():
            share(recipe, [files.pairs], files.tokenizer, files.corpus, folder)
        train(workspace, folder)
    for step in checkpoint.steps_of(folder):
        shutil.rmtree(step)
    embedder = bgt_core.load(folder / FINAL, workspace.device, recipe.train.precision)
    measure.write_hits(folder / HITS, measure.retrieval_hits(embedder, dataset))
    write_shares(folder / SHARES, dataset.shares(embedder))
    rewriting.write_records(folder / WRITTEN, rewriting.write_anew(embedder, dataset))
    write_pair_scores(folder / PAIRS, dataset.pair_scores(embedder))
    if dataset.evaluation_sets:
        write_scores(folder / COSINES, measure.sts_scores(embedder, dataset))
    write_json(folder / RESULT, provenance(training, recipe, folder), indent=1)


def first_weights(workspace: Workspace, training: Training) -> Path | None:
    """The weights that a second stage starts from; NotFound if the first is not finished."""
    if not training.first:
        return None
    folder = workspace.folder(training.first)
    if settled(training.first, folder) != FINISHED:
        raise NotFound(f"it starts from {training.first.name}, which is not finished; run that with `--retry` first.")
    return folder / FINAL


def train(workspace: Workspace, folder: Path) -> None:
    """To the last weights, kept without the optimiser's state."""
    before, start = seconds(folder), time.perf_counter()

    def note(row: dict[str, Any]) -> None:
        write_json(folder / TIME, {"seconds": before + time.perf_counter() - start}, indent=1)
        workspace.report(row)

    last = resume(folder, device=workspace.device, report=note, save_every=workspace.save_every)
    trained = checkpoint.load(last)
    metrics = folder / checkpoint.METRICS
    rows = metrics.read_bytes() if metrics.exists() else b""
    step = trained.config["step"]
    checkpoint.save(folder / FINAL, trained.recipe, trained.model, trained.tokenizer, step, metrics=rows)


def provenance(training: Training, recipe: Recipe, folder: Path) -> dict[str, Any]:
    """What the numbers of this training come from."""
    valid, rate = measure.reported(folder / checkpoint.METRICS)
    config = checkpoint.read_config(folder / FINAL)
    return {
        "recipe": training.recipe,
        "overrides": dict(training.overrides),
        "left_out": list(training.left_out),
        "arguments": {**(recipe.arguments or {}), "init_from": training.first.name if training.first else ""},
        "langs": list(training.langs),
        "seed": training.seed,
        "data": training.data,
        "version": bgt_core.__version__,
        "git": git_state(),
        "measured": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "parameters": config["parameters"],
        "updates": config["step"],
        "seconds": seconds(folder),
        **measure.token_counts(recipe, Corpus.open(folder / "data"), rate),
        "validation": valid,
    }


def git_state() -> str | None:
    """The commit of this code, and whether it was changed since; None outside a checkout."""
    root = Path(bgt_core.__file__).parent.parent
    if not (root / ".git").exists() or not shutil.which("git"):
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or None


def state(workspace: Workspace, training: Training) -> str:
    """The state of a training now, as one of FINISHED, FAILED, OUTDATED, RUNNING, STOPPED, WAITING."""
    folder = workspace.folder(training)
    if now := settled(training, folder):
        return now
    if not (folder / LOCK).exists():
        return WAITING
    with file_lock(folder / LOCK) as ours:
        if not ours:
            return RUNNING
    return STOPPED if (folder / SETTINGS).exists() else WAITING


def settled(training: Training, folder: Path) -> str:
    """Whether it is finished, failed, or finished with arguments that are no longer those of its recipe; else ""."""
    if (folder / RESULT).exists():
        arguments = read(folder / RESULT)["arguments"]
        return OUTDATED if changed_arguments(arguments, training.build().arguments or {}) else FINISHED
    return FAILED if (folder / ERROR).exists() else ""


def begun_with(folder: Path) -> dict[str, Any]:
    """The arguments of the run in a folder; empty where there is no run."""
    return read(folder / SETTINGS).get("arguments", {})


def seconds(folder: Path) -> float:
    """Seconds of training so far, interruptions left out."""
    return read(folder / TIME).get("seconds", 0.0)


def clear(folder: Path) -> None:
    """Remove all but the lock, which is held."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def read(path: Path) -> dict[str, Any]:
    """A JSON file of ours, {} where it is absent."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
