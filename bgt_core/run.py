"""A training run: from parallel text and a recipe to a folder of checkpoints.

    OUT/run.json        what was asked for: recipe, arguments, data
    OUT/tokenizer.model trained on the data, unless one is given
    OUT/data/           the token store
    OUT/metrics.jsonl   one row a report
    OUT/step-0000200/   checkpoints; the newest two are kept

Started again with `resume`, a run goes on from its newest whole checkpoint and ends in the weights it
would have had without the interruption: bit for bit on a CPU with the same number of threads.

Under `torchrun` several processes share a run. The first one prepares, writes and reports; a run begun by some number
of them may be resumed by any other.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from bgt_core import checkpoint, recipes
from bgt_core.data.parallel import sentences
from bgt_core.data.store import Corpus, prepare
from bgt_core.data.text import Tokenizer
from bgt_core.device import pick_device
from bgt_core.errors import DataError, Interrupted, NotFound, UsageError
from bgt_core.recipes import Recipe
from bgt_core.training.loop import Hooks, make_optimizer, total_steps, train
from bgt_core.training.workers import Workers

SETTINGS = "run.json"
KEEP = 2  # checkpoints of a run; the one before the newest survives a kill during the write

Report = Callable[[dict[str, object]], None]


def start(
    recipe: Recipe,
    sources: Sequence[Path],
    out: Path,
    *,
    tokenizer: Path | None = None,
    strict: bool = False,
    device: str = "auto",
    report: Report = lambda row: None,
) -> Path:
    """Begin a run in the new folder `out`; returns its last checkpoint.

    Raises BgtError for text that can't be used; nothing of `out` is left behind then.
    """
    with Workers.of_environment() as workers:
        if workers.first:
            prepare_run(recipe, sources, out, tokenizer, strict, device, report)
        workers.wait()
        return _train(out, device, report, workers)


def resume(
    out: Path, *, device: str = "auto", report: Report = lambda row: None, save_every: int | None = None
) -> Path:
    """Go on with the run in `out` from its newest whole checkpoint; returns its last checkpoint.

    `save_every` are the updates between checkpoints, where not the recipe's.
    """
    with Workers.of_environment() as workers:
        return _train(out, device, report, workers, save_every)


def share(recipe: Recipe, sources: Sequence[Path], tokenizer: Path, corpus: Path, out: Path) -> None:
    """All of a run folder but its checkpoints, over the token store `corpus` that other runs read too; then `resume`.

    OUT/data is a link to the store. What a kill left in `out` is written over.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / "data").unlink(missing_ok=True)
    (out / "data").symlink_to(os.path.relpath(corpus, out))
    shutil.copy(tokenizer, out / checkpoint.TOKENIZER)
    write_settings(recipe, sources, out)


def prepare_run(
    recipe: Recipe,
    sources: Sequence[Path],
    out: Path,
    tokenizer: Path | None,
    strict: bool,
    device: str,
    report: Report,
) -> None:
    """All of a run folder but its checkpoints, or nothing."""
    if (out / SETTINGS).exists():
        raise UsageError(f"{out}: holds a run. Go on with --resume, or name another folder.")
    pick_device(device)
    existed = out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotFound(f"{out}: can't be made a folder ({error.strerror}); name another.") from None
    if any(out.iterdir()):
        raise UsageError(f"{out}: not empty, and no run to go on with. Remove it, or name another folder.")
    try:
        cutter = Tokenizer.load(tokenizer) if tokenizer else train_tokenizer(recipe, sources, strict)
        with torch.device("meta"):  # before the long work, so that sizes that make no model end the run here
            recipe.model(cutter)
        told = store(recipe, sources, cutter, out, strict).store
        pairs = told["pairs"] | {f"skipped ({reason})": lines for reason, lines in told["skipped"].items()}
        report({"kind": "data", "pairs": pairs, "skipped": told["skipped_examples"]})
        cutter.save(out / checkpoint.TOKENIZER)
        write_settings(recipe, sources, out)
    except BaseException:
        for path in out.iterdir():
            remove(path)
        if not existed:
            out.rmdir()
        raise


def write_settings(recipe: Recipe, sources: Sequence[Path], out: Path) -> None:
    """What makes a folder a run; written last."""
    settings = {"recipe": recipe.name, "arguments": dict(recipe.arguments), "data": [str(path) for path in sources]}
    write_atomically(out / SETTINGS, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")


def _train(out: Path, device: str, report: Report, workers: Workers, save_every: int | None = None) -> Path:
    try:
        settings = json.loads((out / SETTINGS).read_text(encoding="utf-8"))
        recipe = recipes.build(settings["recipe"], settings["arguments"])
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"{out}: nothing to resume: no {SETTINGS}. Start the run without --resume.") from None
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{out / SETTINGS}: damaged ({error!r}). Start a new run.") from None
    tokenizer = Tokenizer.load(out / checkpoint.TOKENIZER)
    saved = checkpoint.steps_of(out)
    begun = checkpoint.load(saved[-1]) if saved else None
    model = begun.model if begun else fresh(recipe, tokenizer)
    where = pick_device(device)
    step = begun.config["step"] if begun else 0
    model = model.to(where).train()
    optimizer = make_optimizer(model, recipe.train)
    if step:  # before the first there are no moments
        checkpoint.fill_optimizer(model, optimizer, begun.folder)
    metrics = out / checkpoint.METRICS
    before = [json.loads(row) for row in rows_until(metrics, step)]
    if workers.first:
        for leftover in out.glob("*.partial"):
            remove(leftover)
        keep_rows(metrics, step)

    def record(row: dict[str, object]) -> None:
        if not workers.first:
            return
        with metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        report(row)

    def save(done: int) -> None:
        folder = out / f"step-{done:07d}"
        if not workers.first or folder.exists():  # the last step may be one of those saved anyway
            return
        checkpoint.save(folder, recipe, model, tokenizer, done, optimizer)
        for old in checkpoint.steps_of(out)[:-KEEP]:
            shutil.rmtree(old)

    signals = Signals()
    corpora = Corpus.open(out / "data", "train"), Corpus.open(out / "data", "valid")
    with signals:
        hooks = Hooks(record, save, signals.came)
        config = replace(recipe.train, save_every=save_every or recipe.train.save_every)
        told = [row["information"] for row in before if row["kind"] == "information"]
        done = train(model, optimizer, recipe.objective, *corpora, config, where, hooks, step, workers, told)
    workers.wait()  # for the last checkpoint
    if done < total_steps(corpora[0], recipe.train):
        raise Interrupted(f"Stopped; the state is saved. Go on with: bgt train --resume --out {out}")
    return checkpoint.steps_of(out)[-1]


def fresh(recipe: Recipe, tokenizer: Tokenizer) -> nn.Module:
    """The untrained model: the same for the same seed."""
    torch.manual_seed(recipe.train.seed)
    return recipe.model(tokenizer)


class Signals:
    """SIGTERM and SIGINT end the run after the step in progress; a second SIGINT ends it at once."""

    def __init__(self) -> None:
        self.seen = False

    def came(self) -> bool:
        return self.seen

    def _note(self, number: int, frame: object) -> None:
        if self.seen and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.seen = True

    def __enter__(self) -> None:
        self.before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


def train_tokenizer(recipe: Recipe, sources: Sequence[Path], strict: bool) -> Tokenizer:
    """One joint SentencePiece model over every side of the data."""
    text = sentences(sources, recipe.langs, strict=strict)
    return Tokenizer.train(text, recipe.data.vocab_size, lowercase=recipe.data.lowercase)


def store(recipe: Recipe, sources: Sequence[Path], tokenizer: Tokenizer, out: Path, strict: bool) -> Corpus:
    """The token store of the run."""
    data = recipe.data
    return prepare(
        sources,
        recipe.langs,
        tokenizer,
        out / "data",
        min_pieces=data.min_pieces,
        max_pieces=data.max_pieces,
        valid_pairs=data.valid_pairs,
        seed=recipe.train.seed,
        strict=strict,
    )


def remove(path: Path) -> None:
    """A file, or a folder with all it holds."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def rows_until(metrics: Path, step: int) -> list[str]:
    """The rows of no later step, without one cut off by a kill."""
    if not metrics.exists():
        return []
    rows = metrics.read_text(encoding="utf-8").splitlines(keepends=True)
    return [row for row in rows if row.endswith("\n") and json.loads(row)["step"] <= step]


def keep_rows(metrics: Path, step: int) -> None:
    """Drop the rows of steps that will be done again, and a row cut off by a kill."""
    if metrics.exists():
        write_atomically(metrics, "".join(rows_until(metrics, step)))


def write_atomically(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    checkpoint.sync(partial)
    os.replace(partial, path)
