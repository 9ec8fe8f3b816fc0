"""Run the trainings of comparisons. Several processes can share the work: each training is run and measured only once.

    OUT/cells/NAME/           the folder of a training
        run/                  the run folder, as `bgt train` writes it
        scores.parquet        the scores, as `measure` writes them
        result.json           provenance; it is written last, and marks the training as finished
        error.json            the error, if the training failed; the next call tries again
        time.json             seconds of training so far
        lock                  locked by the process that works on the training

NAME ends in a hash of everything that affects the outcome. So after a change of a recipe's defaults, the recipe is
trained again, in a new folder. A stopped training continues from its newest checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import subprocess
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache, cached_property, partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

import bgt_core
from analysis.reproduce import measure
from analysis.reproduce.comparisons import COMPARISONS, EVERY, ExperimentSpec, Settings, check_names
from analysis.reproduce.datasets import Dataset, read_parsed, read_questions, read_translations, say
from analysis.reproduce.paraphrases import read_paraphrases
from bgt_core import checkpoint, recipes
from bgt_core import training as runs
from bgt_core.backend import pick_device
from bgt_core.data.store import Corpus
from bgt_core.errors import Interrupted, NotFound, UsageError, check_choice
from bgt_core.files import file_lock, write_json
from bgt_core.recipes import RECIPES, Recipe
from bgt_core.training import Report
from bgt_core.training.setup import SETTINGS

SAVE_EVERY = {"small": 100}  # updates between checkpoints at each scale; other scales use the recipe's setting
RUN, RESULT, ERROR, TIME, SCORES, LOCK = "run", "result.json", "error.json", "time.json", "scores.parquet", "lock"
FINISHED, FAILED, RUNNING, STOPPED, WAITING = "finished", "failed", "running", "stopped", "waiting"
SHORT = 10  # number of digits of the hash in a folder's name


@dataclass(frozen=True)
class Training:
    """A recipe to train, with its settings, languages, seed and data."""

    recipe: str
    overrides: Mapping[str, Any]  # settings that differ from the defaults, so that equal trainings have equal keys
    langs: tuple[str, ...]
    seed: int
    data: str  # SHA-256 of the training and test data
    variant: str  # the settings that differ from those of the scale, as a part of the folder's name
    left_out: tuple[str, ...] = ()  # settings of the scale that this recipe lacks
    first: Training | None = None  # the training of the first stage; None if this is not a second stage

    @cached_property
    def key(self) -> str:
        """SHA-256 of recipe, arguments, languages, seed, data and, for a second stage, the key of the first stage."""
        arguments = {**recipe_defaults(self.recipe), **self.overrides}
        parts = [self.recipe, arguments, list(self.langs), self.seed, self.data]
        parts += [self.first.key] if self.first else []
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def name(self) -> str:
        """The name of the training's folder."""
        langs = "-".join(dict.fromkeys(column.rpartition(":")[2] for column in self.langs))  # "en" for ("a:en", "b:en")
        words = [self.recipe, *([self.variant] if self.variant else []), langs, f"seed{self.seed}"]
        return "_".join([*words, self.key[:SHORT]])

    def build(self, **more: object) -> Recipe:
        """Build the recipe of this training with the additional settings `more`. Raises UsageError for an unknown
        recipe or an invalid argument."""
        given = {**self.overrides, "data.columns": list(self.langs), "train.seed": self.seed}
        return recipes.configure(self.recipe, given | more)


def training_of(
    system: ExperimentSpec, scale: Settings, seed: int, data: str, first: Training | None = None
) -> Training:
    """Return the training of a system at a scale. A scale has settings for single recipes, and settings for every
    recipe in which they exist. If the recipe is unknown, `build` raises an error."""
    defaults, own = recipe_defaults(system.recipe), scale.get(system.recipe, {})
    left_out = tuple(name for name in scale[EVERY] if defaults and name not in defaults)
    usual = {**defaults, **scale[EVERY], **own}
    given = {**scale[EVERY], **own, **system.overrides}
    overrides = {
        name: as_json(value)
        for name, value in given.items()
        if name not in left_out and (name not in defaults or as_json(value) != defaults[name])
    }
    words = [
        f"{name.rpartition('.')[2]}-{file_word(overrides[name])}"
        for name in sorted(system.overrides)
        if name in overrides and overrides[name] != as_json(usual.get(name))
    ]
    words += [f"on-{first.recipe}"] if first else []
    words += [file_word(str(system.selection))] if system.selection else []
    return Training(system.recipe, overrides, system.langs, seed, data, "-".join(words), left_out, first)


@cache
def recipe_defaults(recipe: str) -> dict[str, Any]:
    """Return the defaults of the recipe's arguments in JSON form. Return {} if the recipe is unknown."""
    arguments = recipes.configure(recipe, {}).arguments if recipe in RECIPES else None
    return {name: as_json(value) for name, value in (arguments or {}).items()}


def as_json(value: object) -> Any:
    """Convert a value to its JSON form, in which a tuple is a list."""
    return list(value) if isinstance(value, tuple) else value


def file_word(value: object) -> str:
    """Format a value as part of a file name."""
    text = "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return re.sub(r"[^\w.+]", "-", text)


@dataclass(frozen=True)
class TrainingPlan:
    """The trainings of the systems in each comparison, the output folder, and the settings that all trainings share."""

    out: Path
    trainings: Mapping[str, Mapping[str, Sequence[Training]]]  # trainings by comparison and system
    datasets: Mapping[str, Dataset]  # datasets by the SHA-256 hash of their content
    device: str
    save_every: int | None  # updates between checkpoints; None for the recipe's setting
    resamples: int

    def folder(self, training: Training) -> Path:
        return self.out / "cells" / training.name

    def chosen(self, only: str | None = None) -> list[Training]:
        """Return every training once, ordered by seed, then by stage.

        With `only`, return the trainings whose name or system matches this pattern, and the first stages they need.
        """
        every = [(system, each) for systems in self.trainings.values() for system, of in systems.items() for each in of]
        pattern = (only or "*").lower()
        matching = {
            training.key: training
            for system, training in every
            if any(fnmatchcase(name.lower(), pattern) for name in (system, training.name))
        }
        if not matching:
            known = ", ".join(dict.fromkeys(system for system, _ in every))
            raise UsageError(f"matches no system or training (got {only}); the systems are {known}", parameter="only")
        firsts = {each.first.key: each.first for each in matching.values() if each.first}
        return sorted((firsts | matching).values(), key=lambda training: (training.seed, training.first is not None))

    def state(self, training: Training) -> str:
        """Return the current state of a training: FINISHED, FAILED, RUNNING, STOPPED or WAITING."""
        folder = self.folder(training)
        if (folder / RESULT).exists():
            return FINISHED
        if (folder / LOCK).exists():
            with file_lock(folder / LOCK) as ours:
                if not ours:
                    return RUNNING
        if (folder / ERROR).exists():
            return FAILED
        return STOPPED if (folder / RUN / SETTINGS).exists() else WAITING


def plan_trainings(
    names: Sequence[str],
    *,
    data: Path,
    out: Path,
    scale: str = "small",
    seeds: Sequence[int] = (),
    device: str = "auto",
    resamples: int = 2_000,
) -> TrainingPlan:
    """Read the data, and list the trainings of the named comparisons. `seeds` replaces the seeds of every system.
    `datasets` and `paraphrases` describe the folder `data`. Trainings are written to `out`."""
    check_names(names)
    pick_device(device)
    translations = cache(lambda langs: read_translations(data, langs))
    datasets: dict[str, Dataset] = {}
    trainings: dict[str, dict[str, list[Training]]] = {}
    for name in names:
        comparison = COMPARISONS[name]
        check_choice(comparison.scales, scale=scale)
        dataset_of: Callable[[ExperimentSpec], Dataset | None] = lambda system: translations(system.langs)  # noqa: E731
        if comparison.data == "questions":
            dataset_of = read_questions(data)
        elif comparison.data == "parsed":
            dataset_of = partial(lambda parsed, system: parsed, read_parsed(data, comparison.pairs[scale]))
        elif comparison.data == "paraphrases":
            dataset_of = read_paraphrases(data, comparison, scale).dataset
        trainings[name] = {}
        for system in (system for system in comparison.systems if not system.best_of):
            if not (dataset := dataset_of(system)):
                continue
            datasets[dataset.sha256] = dataset
            firsts = {training.seed: training for training in trainings[name].get(system.starts_from, ())}
            trainings[name][system.name] = [
                training_of(system, comparison.scales[scale], seed, dataset.sha256, firsts.get(seed))
                for seed in seeds or system.seeds
            ]
    return TrainingPlan(out, trainings, datasets, device, SAVE_EVERY.get(scale), resamples)


def run_trainings(plan: TrainingPlan, only: str | None = None, report: Report = lambda row: None) -> None:
    """Run and measure all trainings that are not finished and that no other process is running.

    `report` is called with each row of metrics. If a training fails, its folder gets an error.json, and the next
    training starts.
    """
    todo, before = plan.chosen(only), 0
    while len(todo) != before:
        numbered, before = list(enumerate(todo, 1)), len(todo)
        todo = [each for number, each in numbered if not attempt(plan, each, f"{number}/{before}", report)]


def attempt(plan: TrainingPlan, training: Training, number: str, report: Report) -> bool:
    """Run one training. Return False if another process is running this training, or the first stage that it needs."""
    folder = plan.folder(training)
    if training.first and plan.state(training.first) == RUNNING:
        return False
    with file_lock(folder / LOCK) as ours:
        if not ours:
            return False
        if (folder / RESULT).exists():
            return True
        (folder / ERROR).unlink(missing_ok=True)
        say(f"{number} {training.name}")
        try:
            finish(plan, training, folder, report)
        except Interrupted:
            raise
        except Exception as error:  # noqa: BLE001 - any error is stored, and the other trainings continue
            say(f"{training.name} failed: {error}")
            failure = {"error": str(error), "kind": type(error).__name__, "trace": traceback.format_exc()}
            write_json(folder / ERROR, failure, indent=1)
        return True


def finish(plan: TrainingPlan, training: Training, folder: Path, report: Report) -> None:
    """Start or continue a training, and measure it when it is finished."""
    settings: dict[str, object] = {}
    if training.first:
        first = plan.folder(training.first)
        if not (first / RESULT).exists():
            raise NotFound(f"{training.first.name}, the first stage, is not finished; see its error.json.")
        settings["init_from"] = str(first / RUN)
    if plan.save_every:
        settings["train.save_every"] = plan.save_every
    recipe, dataset, data = training.build(**settings), plan.datasets[training.data], plan.out / "data"
    before, start = read(folder / TIME).get("seconds", 0.0), time.perf_counter()

    def note(row: dict[str, Any]) -> None:
        write_json(folder / TIME, {"seconds": before + time.perf_counter() - start}, indent=1)
        report(row)

    if (folder / RUN / SETTINGS).exists():
        last = runs.resume(folder / RUN, device=plan.device, report=note)
    else:
        shutil.rmtree(folder / RUN, ignore_errors=True)  # a killed process may have left an incomplete folder
        with file_lock(data / f"{dataset.name}.lock", wait=True):
            source = dataset.pairs(data, plan.device)
            tokenizer = None if training.first else dataset.tokenizer(recipe, data, plan.device)
        last = runs.train(recipe, [source], folder / RUN, tokenizer=tokenizer, device=plan.device, report=note)
    embedder = bgt_core.load(last, plan.device, recipe.train.precision)
    measure.write(folder / SCORES, dataset.measured(embedder, plan.resamples))
    write_json(folder / RESULT, provenance(training, recipe, folder, last), indent=1)


def provenance(training: Training, recipe: Recipe, folder: Path, last: Path) -> dict[str, Any]:
    """Describe how the scores of a training were computed. The description contains no paths of this machine."""
    metrics, config = last.parent / checkpoint.METRICS, checkpoint.read_config(last)
    rows = [json.loads(line) for line in metrics.read_text("utf-8").splitlines()] if metrics.exists() else []
    valid = [row for row in rows if row["kind"] == "valid"] or [{}]
    rates = [row["tokens_per_second"] for row in rows if row["kind"] == "train"]
    corpus = Corpus.open(last.parent / "data")
    tokens, rate = int(corpus.lengths(np.arange(len(corpus))).sum()), median(rates) if rates else None
    return {
        **{name: getattr(training, name) for name in ("recipe", "overrides", "left_out", "langs", "seed", "data")},
        "arguments": {**(recipe.arguments or {}), "init_from": training.first.name if training.first else ""},
        "version": bgt_core.__version__,
        "git": git_state(),
        "measured": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "parameters": config["parameters"],
        "updates": config["step"],
        "seconds": read(folder / TIME).get("seconds", 0.0),
        "tokens": round(recipe.train.epochs * tokens),  # tokens of both languages, including EOS
        "tokens_per_second": rate,
        "epoch_seconds": rate and tokens / rate,
        "validation": {name: value for name, value in valid[-1].items() if name not in ("kind", "step", "steps")},
    }


def git_state() -> str | None:
    """Return the commit of this code, with "-dirty" if files have changed since. None if this is not a git checkout."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists() or not shutil.which("git"):
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or None


def read(path: Path) -> dict[str, Any]:
    """Read a JSON file. Return {} if it is missing."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
