"""A training run: from text and a recipe to a folder of checkpoints.

    OUT/run.json        what was asked for: recipe, settings, data
    OUT/tokenizer.model trained on the data, unless one is given
    OUT/data/           the token store
    OUT/metrics.jsonl   one row per report
    OUT/start.safetensors   only with train.table_l2: the piece tables before the first update
    OUT/step-0000200/   checkpoints; the newest two are kept

Started again with `resume`, a run continues from its newest whole checkpoint and ends in the weights it
would have had without the interruption: bit for bit on a CPU with the same number of threads and workers.

Several processes can share a run: `workers` of this machine, or those of `torchrun`. The first one prepares, writes and
reports; a run begun by some number of them may be resumed by any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from bgt_core import checkpoint, recipes
from bgt_core.data.columns import Source, parse_source, read_columns
from bgt_core.errors import UsageError
from bgt_core.recipes import Recipe
from bgt_core.run.folder import Report, locked, prepare_run, share, silent, sources_of
from bgt_core.run.helpers import check_workers, train_together
from bgt_core.run.session import Run
from bgt_core.run.settings import RunSettings, change
from bgt_core.run.teaching import Teacher, settings_for, with_targets
from bgt_core.training.workers import Workers

__all__ = ["build", "resume", "share", "start", "train"]


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
    """Train a model in the new folder `out`; returns its last checkpoint, which `bgt_core.load` opens.

    `recipe` is a name of `RECIPES` with `overrides` of its settings ({"train.epochs": 1}), or one that is built.
    `data` are files of rows (TSV, Parquet, line-aligned), each of all `columns` or, as "en-fr=a.tsv", of some, and of
    a kind where it says one ("news/en-fr=a.tsv"), which the setting `train.kind_weights` may weigh; columns
    are languages ("en"), or "a:en", "b:en" where two hold one language, and "gold:label" holds labels. They are the
    recipe's unless named here or by the data. With `init_from`, training starts from that checkpoint's parameters, its
    tokenizer, and the sizes of its model; a second stage is built on that model. `teacher` are another encoder's
    vectors of the rows, skipped ones too: one .npy (rows, D) for each of `data`, or None for one without; a recipe by
    name is then set to learn from them (`model.teacher_dim`, `objective.distillation.weight`). `workers` processes
    share a CPU's cores, None as many as train fastest; the model is the same but for rounding.

        >>> import bgt_core
        >>> last = bgt_core.train("bgt-small", ["pairs.tsv"], "runs/mine", columns=["en", "fr"])  # doctest: +SKIP
        >>> bgt = bgt_core.load(last)  # doctest: +SKIP

    Raises `BgtError` for text or settings that can't be used; nothing of `out` is left behind then.
    """
    if isinstance(recipe, str):
        overrides = {**settings_for(recipe, teacher), **(overrides or {})}
        recipe = build(recipe, data, columns, overrides, init_from)
    elif overrides or columns or init_from:
        raise UsageError("recipe: one that is built takes no columns, overrides or init_from; set them in it")
    if recipe.init_from and not tokenizer:
        tokenizer = checkpoint.find(recipe.init_from) / checkpoint.TOKENIZER
    data = with_targets(sources_of(recipe, data), teacher)
    return start(
        recipe, data, Path(out), tokenizer=tokenizer, strict=strict, device=device, workers=workers, report=report
    )


def build(
    name: str,
    data: Sequence[str | Path | Source],
    columns: Sequence[str],
    overrides: Mapping[str, Any],
    init_from: str | Path | None,
) -> Recipe:
    """The recipe for these columns and data, and what it takes from the checkpoint that it starts from."""
    settings: dict[str, Any] = {}
    if init_from:
        settings |= inherited(name, str(init_from))
    if columns := list(columns) or named_columns(data):
        settings["data.columns"] = columns
    return recipes.build(name, settings | dict(overrides))


def inherited(name: str, init_from: str) -> dict[str, Any]:
    """The settings that a run from a checkpoint takes over: the sizes of its model and how its text was cut; not what a
    first stage left untrained."""
    config = checkpoint.read_config(checkpoint.find(init_from))
    second_stage = recipes.build(name, {}).base != ""
    prefix = "model.base." if second_stage else "model."
    settings: dict[str, Any] = {"init_from": init_from, **({"base": config["recipe"]} if second_stage else {})}
    for key, value in config["arguments"].items():
        if key.startswith("model.") and key != "model.train_decoders":
            settings[prefix + key.removeprefix("model.")] = value
        elif key in ("data.vocab_size", "data.lowercase"):
            settings[key] = value
    known = dict(recipes.build(name, {key: value for key, value in settings.items() if key == "base"}).arguments or {})
    return {key: value for key, value in settings.items() if key in known}


def named_columns(data: Iterable[str | Path | Source]) -> list[str]:
    """All columns that the data name themselves, as en-fr=FILE; none where any does not."""
    named: dict[str, None] = {}
    for source in data:
        if not isinstance(source, Source):
            try:
                source = parse_source(str(source))
            except UsageError:
                return []
        named |= dict.fromkeys(read_columns(source.columns))
    return list(named)


def start(
    recipe: Recipe,
    data: Sequence[str | Path | Source],
    out: Path,
    *,
    tokenizer: str | Path | None = None,
    strict: bool = False,
    device: str = "auto",
    workers: int | None = 1,
    report: Report = silent,
) -> Path:
    """Begin a run in the new folder `out`; returns its last checkpoint.

    Raises BgtError for text that can't be used; nothing of `out` is left behind then.
    """
    with Workers.from_environment() as launched, locked(out) if launched.is_main else nullcontext():
        if launched.is_main:
            check_workers(workers, device, launched)
            tokenizer = Path(tokenizer) if tokenizer else None
            prepare_run(recipe, sources_of(recipe, data), out, tokenizer, strict, report)
        launched.wait()
        return train_together(Run(out, device, report, launched), workers)


def resume(
    out: str | Path,
    *,
    device: str = "auto",
    workers: int | None = 1,
    report: Report = silent,
    save_every: int | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Path:
    """Continue the run in `out` from its newest whole checkpoint; returns its last checkpoint.

    `save_every` are the updates between checkpoints, where not the recipe's; `workers` as in `train`. `overrides`
    change settings of `train` and `objective` from here on, and are kept with the run: {"train.learning_rate": 1e-4}.
    Raises UsageError for other settings and where another process trains in `out`.
    """
    out = Path(out)
    RunSettings.read(out)
    with Workers.from_environment() as launched, locked(out) if launched.is_main else nullcontext():
        if overrides and launched.is_main:
            saved = checkpoint.steps_of(out)
            change(out, int(saved[-1].name[5:]) if saved else 0, overrides)
        launched.wait()
        return train_together(Run(out, device, report, launched, save_every), workers)
