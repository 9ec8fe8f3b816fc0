"""A run folder in training: from its newest checkpoint to its last."""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from bgt_core import checkpoint, recipes
from bgt_core.data.corpus import open_corpus
from bgt_core.data.text import Tokenizer
from bgt_core.device import keep_memory, pick_device
from bgt_core.errors import DataError, Interrupted, NotFound
from bgt_core.files import PARTIAL, atomic_file, write_text
from bgt_core.models.latent import LatentModel
from bgt_core.recipes import Recipe, legacy
from bgt_core.run.folder import SETTINGS, Report, remove
from bgt_core.run.initial import freeze, fresh
from bgt_core.training.config import TrainConfig
from bgt_core.training.loop import Hooks, make_optimizer, total_steps
from bgt_core.training.loop import train as train_loop
from bgt_core.training.penalty import Penalty, piece_tables
from bgt_core.training.step import Trainer
from bgt_core.training.workers import Workers

START = "start.safetensors"
KEEP = 2  # checkpoints of a run; the one before the newest survives a kill during the write


@dataclass
class Run:
    """A run folder, and this process's part in training it."""

    out: Path
    device: str
    report: Report
    workers: Workers
    save_every: int | None = None

    def train(self) -> Path:
        """From the newest checkpoint, or the start, to the last one."""
        recipe, tokenizer = self.recipe(), Tokenizer.load(self.out / checkpoint.TOKENIZER)
        saved = checkpoint.steps_of(self.out)
        newest = checkpoint.load(saved[-1]) if saved else None
        corpus, held_out = (open_corpus(self.out / "data", split) for split in ("train", "valid"))
        model: LatentModel = newest.model if newest else fresh(recipe, tokenizer, corpus)
        step = newest.config["step"] if newest else 0
        device = pick_device(self.device)
        keep_memory()
        model = model.to(device).train()
        freeze(model, recipe.freeze)
        optimizer = make_optimizer(model, recipe.train)
        if newest and step:  # before the first there are no moments
            checkpoint.fill_optimizer(model, optimizer, newest.folder)
        informations = self.tidy(step)
        config = replace(recipe.train, save_every=self.save_every or recipe.train.save_every)

        def save(done: int) -> None:
            folder = self.out / f"step-{done:07d}"
            if not self.workers.is_main or folder.exists():  # the last step may be one of those saved anyway
                return
            checkpoint.save(folder, recipe, model, tokenizer, done, optimizer)
            for old in checkpoint.steps_of(self.out)[:-KEEP]:
                shutil.rmtree(old)

        penalty = self.penalty(model, recipe.train, begins=newest is None)
        trainer = Trainer(model, optimizer, recipe.objective, config, device, self.workers, penalty)
        with Signals() as signals:
            hooks = Hooks(self.record, save, signals.came)
            done = train_loop(trainer, corpus, held_out, hooks, step, informations)
        self.workers.wait()  # for the last checkpoint
        if done < total_steps(corpus, recipe.train):
            raise Interrupted(f"Stopped; the state is saved. Continue with: bgt train --resume --out {self.out}")
        return checkpoint.steps_of(self.out)[-1]

    def penalty(self, model: LatentModel, config: TrainConfig, begins: bool) -> Penalty | None:
        """What the run adds to its loss. Tables that are held to where they began are kept in OUT/start.safetensors."""
        start = {}
        if config.table_l2:
            path = self.out / START
            if begins:
                start = {name: table.detach().clone() for name, table in piece_tables(model).items()}
                if self.workers.is_main:
                    with atomic_file(path) as partial:
                        save_file({name: table.cpu() for name, table in start.items()}, partial)
            elif not path.is_file():
                raise NotFound(f"{path}: missing: train.table_l2 holds tables to where they began. Start a new run.")
            else:
                start = checkpoint.load_tensors(path)
        return Penalty.of(model, config, start)

    def recipe(self) -> Recipe:
        """What was asked for; NotFound where there is no run, DataError where it can't be read."""
        path = self.out / SETTINGS
        try:
            settings = json.loads(path.read_text(encoding="utf-8"))
            arguments = settings["arguments"]
            if "langs" in arguments:  # written before settings were nested
                arguments = legacy.convert(arguments)
            return recipes.build(settings["recipe"], arguments)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"{self.out}: nothing to resume: no {SETTINGS}. Start the run without resume.") from None
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: damaged ({error!r}). Start a new run.") from None

    def tidy(self, step: int) -> list[float]:
        """Drops what a kill left and what will be done again; the mutual information reported so far, nats."""
        metrics = self.out / checkpoint.METRICS
        kept = rows_until(metrics, step)
        if self.workers.is_main:
            for leftover in self.out.glob(f"*{PARTIAL}"):
                remove(leftover)
            if metrics.exists():
                write_text(metrics, "".join(kept))
        rows = map(json.loads, kept)
        return [row["information"] for row in rows if row["kind"] == "information"]

    def record(self, row: dict[str, Any]) -> None:
        """Keeps and reports a row of metrics."""
        if not self.workers.is_main:
            return
        with (self.out / checkpoint.METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self.report(row)


class Signals:
    """SIGTERM and SIGINT end the run after the step in progress; a second SIGINT ends it at once."""

    def __init__(self) -> None:
        self.seen = False

    def came(self) -> bool:
        """Whether one did."""
        return self.seen

    def _note(self, number: int, frame: object) -> None:
        if self.seen and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.seen = True

    def __enter__(self) -> Signals:
        self.before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


def rows_until(metrics: Path, step: int) -> list[str]:
    """The rows of no later step, without one cut off by a kill."""
    if not metrics.exists():
        return []
    rows = metrics.read_text(encoding="utf-8").splitlines(keepends=True)
    return [row for row in rows if row.endswith("\n") and json.loads(row)["step"] <= step]
