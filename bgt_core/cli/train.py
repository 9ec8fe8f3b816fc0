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
            help="Recipe: bgt (the paper's), bgt-bound (ours), writer (text from another encoder's vectors), an "
            "ablation or baseline such as english-vae, or a second stage such as pair-classifier."
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option(help="Output folder for the run.")],
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Data: TSV (.gz .xz .zst), Parquet, or the prefix of corpus.en and corpus.fr. May be repeated. "
            "Write en-fr=FILE if files have different columns: files with the same columns form a corpus, and --set "
            "train.sampling_temperature=5 samples small corpora more often. Write news/en-fr=FILE to name a kind of "
            "text; --set train.kind_weights=news:3,docs:0.5 weights the kinds."
        ),
    ] = None,
    langs: Annotated[str | None, typer.Option(help="Languages of the columns, as in en,fr.")] = None,
    columns: Annotated[
        str | None, typer.Option(help="Columns by name and language, as in a:en,b:en,gold:label; label holds numbers.")
    ] = None,
    teacher: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|none",
            help="Vectors of another encoder to learn from: .npy, as `bgt embed` writes them for one side of --data; "
            "one file for each --data, in the same order, or none. A linear map of each column's semantic mean is "
            "trained to point in their direction; --set objective.distillation.weight=200 sets the weight.",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Another encoder, as --model of other commands: a writer learns to write from its vectors. They are "
            "computed once and stored in the run.",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the recipe, as in train.learning_rate=0.001. May be repeated."),
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
            help="Number of processes on a CPU; they share its cores and the micro-batches of each update. More than "
            "the micro-batches of an update would be idle.",
            show_default="one per core, at most one per micro-batch",
        ),
    ] = None,
) -> None:
    """Train a model on text; on several GPUs or machines as `torchrun --nproc-per-node 2 -m bgt_core train ...`."""
    tune_training()
    from bgt_core import training
    from bgt_core.cli.progress import Progress
    from bgt_core.recipes import parse_overrides
    from bgt_core.training.workers import Workers

    with Progress() as report:
        if resume:
            if recipe or data or langs or columns or init_from or tokenizer or teacher or encoder:
                text = "continues a run with its own settings: give only --out, and --set for settings to change."
                raise UsageError(text, parameter="resume")
            changed = parse_overrides(overrides or [])
            folder = training.resume(out, device=device, workers=workers, report=report, overrides=changed)
        else:
            if recipe is None or not data:
                example = "bgt train bgt-small --data pairs.tsv --out runs/mine"
                raise UsageError(
                    f"is needed to start a run, as in: {example}", parameter="data" if recipe else "recipe"
                )
            if langs and columns:
                raise UsageError("and --columns both name the columns; give one.", parameter="langs")
            folder = training.train(
                recipe,
                data,
                out,
                columns=(columns or langs or "").split(",") if columns or langs else (),
                overrides=parse_overrides(overrides or []) | ({"model.encoder": encoder} if encoder else {}),
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
