"""`bgt train`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from bgt_core.cli.options import DeviceOption
from bgt_core.errors import UsageError


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="bgt (the paper's), bgt-small (the one that ships), or an ablation or baseline, as english-vae."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The run's folder.")] = ...,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="Pairs: TSV (.gz .xz .zst), Parquet, or the prefix of corpus.en and corpus.fr. Several allowed."
        ),
    ] = None,
    langs: Annotated[str | None, typer.Option(help="The columns' languages, as in en,fr.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A recipe's argument, as in width=128. Several allowed.")
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="Use this SentencePiece model; otherwise one is trained.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop on the first bad line instead of skipping it.")
    ] = False,
    device: DeviceOption = "auto",
) -> None:
    """Train a model on parallel text; with several processes as `torchrun --nproc-per-node 2 -m bgt_core train ...`."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # huge pages; torch looks once, when it is imported
    from bgt_core import recipes, run
    from bgt_core.cli.progress import Progress
    from bgt_core.training.workers import Workers

    if resume:
        if recipe or data or overrides or langs or tokenizer:
            raise UsageError("--resume goes on with the run as it was started: give it --out and nothing else.")
        with Progress() as show:
            folder = run.resume(out, device=device, report=show)
    else:
        if recipe is None or not data:
            raise UsageError(
                "A new run needs a recipe and --data, as in: bgt train bgt-small --data pairs.tsv --out runs/mine"
            )
        arguments = recipes.parse_overrides(overrides or [])
        if langs:
            arguments["langs"] = langs.split(",")
        chosen = recipes.build(recipe, arguments)
        with Progress() as show:
            folder = run.start(chosen, data, out, tokenizer=tokenizer, strict=strict, device=device, report=show)
    if Workers.of_environment().first:
        print(folder)
