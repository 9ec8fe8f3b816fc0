"""Train a run, or resume it from its newest checkpoint."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from bgt_core import checkpoint
from bgt_core.data.columns import Source
from bgt_core.data.corpus import open_corpus, verify_corpus
from bgt_core.data.text import Tokenizer
from bgt_core.device import keep_memory, pick_device, usual_defaults, warn_if_slow
from bgt_core.errors import BgtError, DataError, Diverged, Interrupted, NotFound, UsageError
from bgt_core.files import PARTIAL, atomic_file, remove, write_text, writing
from bgt_core.models.latent import LatentModel
from bgt_core.recipes import Recipe
from bgt_core.run.plan import RunSettings, Teacher, build, change, rewind, settings_for, sources_of, with_targets
from bgt_core.run.prepare import check_tokenizers, checked_changes, freeze, fresh, prepare_run, rows_until
from bgt_core.run.processes import (
    HOST,
    READY,
    Report,
    Signals,
    check_workers,
    end_with_caller,
    helped,
    locked,
    silent,
    usual_workers,
)
from bgt_core.training.config import TrainConfig
from bgt_core.training.loop import Hooks, Trainer
from bgt_core.training.penalty import Penalty, piece_tables
from bgt_core.training.wiring import make_optimizer, total_steps
from bgt_core.training.wiring import train as train_loop
from bgt_core.training.workers import Workers

START = "start.safetensors"
DAMAGED = ".damaged"  # suffix of a checkpoint that can't be read, once training has continued from an older one
KEEP = 2  # checkpoints of a run; with two, a kill during the write leaves one


@usual_defaults()
def train(
    recipe: str | Recipe,
    data: Sequence[str | Path | Source],
    out: str | Path,
    *,
    columns: Sequence[str] = (),
    overrides: Mapping[str, Any] | None = None,
    init_from: str | Path | None = None,
    teacher: Teacher = (),
    tokenizer: str | Path | None = None,
    strict: bool = False,
    device: str = "auto",
    workers: int | None = 1,
    report: Report = silent,
) -> Path:
    """Train a model in a new folder.

    Args:
        recipe: A name of `RECIPES`, or a `Recipe`.
        data: Files of rows (TSV, Parquet, line-aligned). Each has all `columns`, or those that it names, as in
            "en-fr=a.tsv". It may also name its kind, as in "news/en-fr=a.tsv", for the setting `train.kind_weights`.
        out: The folder.
        columns: Languages ("en"), or "a:en", "b:en" where two columns hold one language; "gold:label" holds labels.
            By default those that the data name, or the recipe's.
        overrides: Settings of a recipe by name: {"train.epochs": 1}.
        init_from: A checkpoint whose parameters, tokenizer and sizes the run starts from. A second stage is built on
            its model.
        teacher: Another encoder's vectors of all rows, skipped ones too: one .npy (rows, D) for each file of data, or
            None for one without. A recipe by name is then set to learn from them.
        tokenizer: A SentencePiece model; by default one is trained on the data.
        strict: Treat lines that would be skipped as errors.
        device: "auto", "cpu", "cuda" or "cuda:1".
        workers: Processes that share the cores of a CPU; None for the fastest number. The model is the same but
            for rounding.
        report: Gets each row of metrics.

    Returns:
        The last checkpoint, which `bgt_core.load` opens.

    Raises:
        BgtError: Invalid text or settings; `out` is then not left behind.

    >>> import bgt_core
    >>> last = bgt_core.train("bgt-small", ["pairs.tsv"], "runs/mine", columns=["en", "fr"])  # doctest: +SKIP
    >>> bgt = bgt_core.load(last)  # doctest: +SKIP
    """
    out = Path(out)
    if isinstance(recipe, str):
        recipe = build(recipe, data, columns, {**settings_for(recipe, teacher), **(overrides or {})}, init_from)
    elif overrides or columns or init_from:
        raise UsageError("recipe: a Recipe object has its own columns, overrides and init_from; set them there")
    if recipe.init_from and not tokenizer:
        tokenizer = checkpoint.find(recipe.init_from) / checkpoint.TOKENIZER
    sources = with_targets(sources_of(recipe, data), teacher)
    with Workers.from_environment() as launched, locked(out) if launched.is_main else nullcontext():
        if launched.is_main:
            check_workers(workers, device, launched)
            prepare_run(recipe, sources, out, Path(tokenizer) if tokenizer else None, strict, device, report)
        launched.wait()
        return Run(out, device, report, launched).train(workers)


@usual_defaults()
def resume(
    out: str | Path,
    *,
    device: str = "auto",
    workers: int | None = 1,
    report: Report = silent,
    save_every: int | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Path:
    """Continue the run in `out` from its newest complete checkpoint; return its last checkpoint.

    `save_every` is the number of updates between checkpoints, by default the recipe's; `workers` as in `train`.
    `overrides` change settings of `train` and `objective` from here on, and are stored with the run:
    {"train.learning_rate": 1e-4}. UsageError for those that can't change, and if another process trains in `out`.
    """
    RunSettings.read(out := Path(out))
    with Workers.from_environment() as launched, locked(out) if launched.is_main else nullcontext():
        if overrides and launched.is_main and (changed := checked_changes(out, overrides)):
            change(out, changed)
        launched.wait()
        return Run(out, device, report, launched, save_every).train(workers)


@dataclass
class Run:
    """A run folder, and this process's part in training it."""

    out: Path
    device: str
    report: Report
    workers: Workers
    save_every: int | None = None

    def train(self, count: int | None) -> Path:
        """Train a prepared run in `count` processes, by default `usual_workers`; returns its last checkpoint."""
        check_workers(count, self.device, self.workers)
        if self.workers.count > 1:  # torchrun's
            return self.train_here()
        count = count or usual_workers(RunSettings.read(self.out).build(self.out).train, pick_device(self.device))
        if count == 1:
            return self.train_here()
        with helped(self.out, count) as workers:
            return replace(self, workers=workers).train_here()

    def train_here(self) -> Path:
        """Train this process's part, from the newest checkpoint, or the start, to the last one."""
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
        warn_if_slow(device, recipe.train.precision if self.workers.is_main else "auto")
        keep_memory()
        model = model.to(device).train()
        freeze(model, recipe.freeze)
        optimizer = make_optimizer(model, recipe.train)
        if newest and step:  # the initial model has no moments yet
            checkpoint.fill_optimizer(model, optimizer, newest.folder)
        informations = self.tidy(step)
        config = replace(recipe.train, save_every=self.save_every or recipe.train.save_every)

        def save(done: int) -> None:
            folder = self.out / f"step-{done:07d}"
            if not self.workers.is_main or folder.exists():  # the last step may have been saved already
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
        self.workers.wait()  # until the last checkpoint is written
        if done < total_steps(corpus, recipe.train):
            raise Interrupted(f"Stopped; the state is saved. Continue with: bgt train --resume --out {self.out}")
        return checkpoint.steps_of(self.out)[-1]

    def penalty(self, model: LatentModel, config: TrainConfig, begins: bool) -> Penalty | None:
        """The penalty of the run; the initial values of penalised tables are stored in OUT/start.safetensors."""
        start = {}
        if config.table_l2:
            path = self.out / START
            if begins:
                start = {name: table.detach().clone() for name, table in piece_tables(model).items()}
                if self.workers.is_main:
                    with atomic_file(path) as partial:
                        checkpoint.save_tensors({name: table.cpu() for name, table in start.items()}, partial)
            elif not path.is_file():
                raise NotFound(f"{path}: missing: train.table_l2 needs the initial tables. Start a new run.")
            else:
                start = checkpoint.load_tensors(path)
        return Penalty.of(model, config, start)

    def newest(self) -> checkpoint.Checkpoint | None:
        """The newest complete checkpoint, or None before the first. A damaged one is renamed and reported.

        Raises DataError if all checkpoints are damaged.
        """
        loaded = self.newest_whole() if self.workers.is_main else None
        self.workers.wait()  # until damaged ones are renamed
        saved = checkpoint.steps_of(self.out)
        return loaded if loaded or not saved else checkpoint.load(saved[-1])

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
                self.report({"kind": "note", "text": f"{error} Continuing from the checkpoint before it."})
            else:
                if folder != saved[-1]:
                    rewind(self.out, loaded.config["step"])
                return loaded
        return None

    def way_out(self) -> str:
        """Advise on a training that has diverged."""
        lower = f"bgt train --resume --out {self.out} --set train.learning_rate=..."
        if not (saved := checkpoint.steps_of(self.out)):
            return f"Nothing was saved yet; start again with a lower rate: {lower}"
        return f"The state after update {int(saved[-1].name[5:])} is kept; continue with a lower rate: {lower}"

    def tidy(self, step: int) -> list[float]:
        """Remove leftovers of a kill, and rows of steps to repeat; return the mutual information reported, nats."""
        metrics = self.out / checkpoint.METRICS
        kept = rows_until(metrics, step)
        if self.workers.is_main:
            for leftover in self.out.glob(f"*{PARTIAL}*"):  # and their locks
                remove(leftover)
            self.keep_newest()
            if metrics.exists():
                write_text(metrics, "".join(kept))
        return [row["information"] for row in map(json.loads, kept) if row["kind"] == "information"]

    def keep_newest(self) -> None:
        """Remove older checkpoints, each as a whole, so that a kill never leaves a partial one."""
        for old in checkpoint.steps_of(self.out)[:-KEEP]:
            partial = old.with_name(old.name + PARTIAL)
            with writing(old):
                old.rename(partial)
                shutil.rmtree(partial)

    def record(self, row: dict[str, Any]) -> None:
        """Store and report a row of metrics."""
        if not self.workers.is_main:
            return
        metrics = self.out / checkpoint.METRICS
        with writing(metrics), metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self.report(row)


def help_train() -> None:
    """The main function of a helper process (`processes.Helper`)."""
    rank, count, threads, port, out = sys.argv[1:]
    threading.Thread(target=end_with_caller, daemon=True).start()
    torch.set_num_threads(int(threads))
    os.write(1, READY)
    store = dist.TCPStore(HOST, int(port), is_master=False)
    with Workers(int(rank), int(count), local=True, store=store) as workers:
        try:
            Run(Path(out), "cpu", silent, workers).train_here()
        except BgtError as error:  # usually the first worker meets the same error, and reports it
            print(error, file=sys.stderr)
            sys.exit(error.exit_code)
