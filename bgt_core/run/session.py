"""A run folder in training: from its newest checkpoint to its last."""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bgt_core import checkpoint
from bgt_core.data.corpus import Corpus, Mixture, open_corpus, verify_corpus
from bgt_core.data.text import Tokenizer
from bgt_core.device import keep_memory, pick_device
from bgt_core.errors import DataError, Diverged, Interrupted, NotFound
from bgt_core.files import PARTIAL, atomic_file, json_lines, remove, write_text, writing
from bgt_core.models.latent import LatentModel
from bgt_core.recipes import Recipe
from bgt_core.run.folder import Report
from bgt_core.run.initial import freeze, fresh
from bgt_core.run.settings import RunSettings
from bgt_core.training.config import TrainConfig
from bgt_core.training.loop import Hooks, Trainer
from bgt_core.training.penalty import Penalty, piece_tables
from bgt_core.training.wiring import make_optimizer, total_steps
from bgt_core.training.wiring import train as train_loop
from bgt_core.training.workers import Workers

START = "start.safetensors"
DAMAGED = ".damaged"  # what the name of a checkpoint that can't be read ends in, once another took its place
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
        settings = RunSettings.read(self.out)
        recipe, tokenizer = settings.build(self.out), Tokenizer.load(self.out / checkpoint.TOKENIZER)
        newest = self.newest()
        corpus, held_out = (open_corpus(self.out / "data", split) for split in ("train", "valid"))
        if newest:
            settings.check(newest.config, self.out)
            check_tokenizers(newest.tokenizer, tokenizer, corpus, self.out)
            if self.workers.is_main:
                verify_corpus(corpus)
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
            self.keep_newest()

        penalty = self.penalty(model, recipe.train, begins=newest is None)
        trainer = Trainer(model, optimizer, recipe.objective, config, device, self.workers, penalty)
        with Signals() as signals:
            hooks = Hooks(self.record, save, signals.came)
            try:
                done = train_loop(trainer, corpus, held_out, hooks, step, informations)
            except Diverged as error:
                raise Diverged(f"{error}. {self.way_out()}") from None
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
                        checkpoint.save_tensors({name: table.cpu() for name, table in start.items()}, partial)
            elif not path.is_file():
                raise NotFound(f"{path}: missing: train.table_l2 holds tables to where they began. Start a new run.")
            else:
                start = checkpoint.load_tensors(path)
        return Penalty.of(model, config, start)

    def recipe(self) -> Recipe:
        """What was asked for, with what was changed since; errors as `RunSettings.read` and `build`."""
        return RunSettings.read(self.out).build(self.out)

    def newest(self) -> checkpoint.Checkpoint | None:
        """The newest checkpoint that is whole, or None before the first. A damaged one is set aside, and said so.

        Raises DataError where there are some and all are damaged.
        """
        loaded = self.newest_whole() if self.workers.is_main else None
        self.workers.wait()  # until damaged ones are out of the way
        if loaded or not (saved := checkpoint.steps_of(self.out)):
            return loaded
        return checkpoint.load(saved[-1])

    def newest_whole(self) -> checkpoint.Checkpoint | None:
        """See `newest`."""
        saved = checkpoint.steps_of(self.out)
        for folder in reversed(saved):
            try:
                loaded = checkpoint.load(folder)
            except DataError as error:
                if folder == saved[0]:
                    raise
                aside = folder.with_name(folder.name + DAMAGED)
                remove(aside)
                folder.rename(aside)
                self.report({"kind": "note", "text": f"{error} Going on from the checkpoint before it."})
            else:
                return loaded
        return None

    def way_out(self) -> str:
        """What to do about a training that has diverged."""
        lower = f"bgt train --resume --out {self.out} --set train.learning_rate=..."
        if not (saved := checkpoint.steps_of(self.out)):
            return f"Nothing was saved yet; begin again with a lower rate: {lower}"
        return f"The state after update {int(saved[-1].name[5:])} is kept; go on from there with a lower rate: {lower}"

    def tidy(self, step: int) -> list[float]:
        """Drops what a kill left and what will be done again; the mutual information reported so far, nats."""
        metrics = self.out / checkpoint.METRICS
        kept = rows_until(metrics, step)
        if self.workers.is_main:
            for leftover in self.out.glob(f"*{PARTIAL}*"):  # and their locks
                remove(leftover)
            self.keep_newest()
            if metrics.exists():
                write_text(metrics, "".join(kept))
        rows = map(json.loads, kept)
        return [row["information"] for row in rows if row["kind"] == "information"]

    def keep_newest(self) -> None:
        """Removes older checkpoints, each as a whole, so that a kill leaves none that looks like one."""
        for old in checkpoint.steps_of(self.out)[:-KEEP]:
            partial = old.with_name(old.name + PARTIAL)
            with writing(old):
                old.rename(partial)
                shutil.rmtree(partial)

    def record(self, row: dict[str, Any]) -> None:
        """Keeps and reports a row of metrics."""
        if not self.workers.is_main:
            return
        metrics = self.out / checkpoint.METRICS
        with writing(metrics), metrics.open("a", encoding="utf-8") as file:
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


def check_tokenizers(saved: Tokenizer, own: Tokenizer, corpus: Corpus | Mixture, out: Path) -> None:
    """DataError where OUT/tokenizer.model is not what the checkpoint and the token store were made with."""
    parts = corpus.corpora if isinstance(corpus, Mixture) else [corpus]
    if {saved.sha256, *(part.store["settings"]["tokenizer"] for part in parts)} != {own.sha256}:
        raise DataError(
            f"{out / checkpoint.TOKENIZER}: not the tokenizer that the run began with. Copy it from the checkpoint "
            f"and keep {out / 'data'} as it was made, or start a new run."
        )


def rows_until(metrics: Path, step: int) -> list[str]:
    """The rows of no later step, without one cut off by a kill, or that is no row."""
    if not metrics.exists():
        return []
    rows = json_lines(metrics)
    return [line for line, row in rows if row.get("kind") and isinstance(row.get("step"), int) and row["step"] <= step]
