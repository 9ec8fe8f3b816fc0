"""`bgt train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bgt_core.cli import options
from bgt_core.cli.options import tune_training
from bgt_core.errors import UsageError


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="bgt (the paper's), bgt-bound (ours), an ablation or baseline, as english-vae, or a "
            "second stage, as pair-classifier."
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option(help="Output folder, of the run.")],
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Data: TSV (.gz .xz .zst), Parquet, or the prefix of corpus.en and corpus.fr. Several allowed; "
            "en-fr=FILE where files have different columns: each set of them is a corpus, and --set "
            "train.sampling_temperature=5 gives small ones more than their share. news/en-fr=FILE says a kind of text, "
            "and --set train.kind_weights=news:3,docs:0.5 how often its rows count."
        ),
    ] = None,
    langs: Annotated[str | None, typer.Option(help="Languages of the columns, as in en,fr.")] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns by name and language, as in a:en,b:en,gold:label; label holds numbers."),
    ] = None,
    teacher: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|none",
            help="Another encoder's vectors of the rows of --data, .npy, as `bgt embed` writes them of one side; one "
            "file for each, in their order, or none. Every column is taught them: its semantic mean, through a linear "
            "map, points where they do; --set objective.distillation.weight=200 says how much that counts.",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", help="A recipe's setting, as in train.learning_rate=0.001. Several allowed."),
    ] = None,
    init_from: Annotated[
        str | None, typer.Option("--init-from", help="Start from this checkpoint's weights, sizes and tokenizer.")
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="A SentencePiece model to use; otherwise one is trained.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    strict: options.StrictOption = False,
    device: options.DeviceOption = "auto",
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes that share the cores of a CPU and the micro-batches of each update: one too large "
            "for micro_tokens is halved until its parts fit, others are cut into micro_batches. More would idle.",
            show_default="one a core, but none that idles",
        ),
    ] = None,
) -> None:
    """Train a model on text; on several GPUs or machines as `torchrun --nproc-per-node 2 -m bgt_core train ...`."""
    tune_training()
    from bgt_core import run
    from bgt_core.cli.progress import Progress
    from bgt_core.recipes import parse_overrides
    from bgt_core.training.workers import Workers

    with Progress() as report:
        if resume:
            if recipe or data or langs or columns or init_from or tokenizer or teacher:
                text = "continues the run as it was started: give it --out, and --set for what may change."
                raise UsageError(text, parameter="resume")
            changed = parse_overrides(overrides or [])
            folder = run.resume(out, device=device, workers=workers, report=report, overrides=changed)
        else:
            if recipe is None or not data:
                example = "bgt train bgt-small --data pairs.tsv --out runs/mine"
                raise UsageError(f"is needed by a new run, as in: {example}", parameter="data" if recipe else "recipe")
            if langs and columns:
                raise UsageError("and --columns say the same; give one.", parameter="langs")
            folder = run.train(
                recipe,
                data,
                out,
                columns=(columns or langs or "").split(",") if columns or langs else (),
                overrides=parse_overrides(overrides or []),
                init_from=init_from,
                teacher=[None if path == "none" else path for path in teacher or ()],
                tokenizer=tokenizer,
                strict=strict,
                device=device,
                workers=workers,
                report=report,
            )
    if Workers.from_environment().is_main:
        print(folder)
