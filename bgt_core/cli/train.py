"""`bgt train`: train a model, and show the progress of the run."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from bgt_core.cli import options
from bgt_core.cli.options import PAIRS, tune_training
from bgt_core.errors import UsageError


def train(
    recipe: Annotated[
        str | None,
        Argument(
            help="Recipe: bgt (the paper's model), bgt-bound (our extension), writer (generates text from the vectors "
            "of another encoder), an ablation or baseline such as english-vae, or a classifier on top of a "
            "trained model, such as pair-classifier."
        ),
    ] = None,
    *,
    out: Annotated[Path, Option(help="Output folder for the run.")],
    data: Annotated[
        list[str] | None,
        Option(
            help=f"Data: {PAIRS}. May be repeated. If files have different columns, write en-fr=FILE. Files with the "
            "same columns form a corpus; --set train.sampling_temperature=5 draws more often from small corpora. To "
            "name the kind of text of a file, write news/en-fr=FILE; --set train.kind_weights=news:3,docs:0.5 sets the "
            "weights of the kinds."
        ),
    ] = None,
    langs: Annotated[str | None, Option(help="Languages of the columns, as in en,fr.")] = None,
    columns: Annotated[
        str | None,
        Option(help="Columns by name and language, as in a:en,b:en,gold:label; label marks a column of numbers."),
    ] = None,
    teacher: Annotated[
        list[str] | None,
        Option(
            metavar="FILE|none",
            help="An .npy file of vectors of another encoder, the teacher, that `bgt embed` made of one column of "
            "--data. Give one FILE, or none, for each --data, in the same order. A linear map of each column's "
            "semantic mean is trained to have a high cosine with the teacher's vectors; --set "
            "objective.distillation.weight=200 sets the weight of this objective.",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        Option(
            metavar="SPEC",
            help="For the recipe writer: the encoder from whose vectors the model generates text, named as in "
            "--model of other commands. The vectors are computed once and stored in the folder of the run.",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        Option("--set", help="A setting of the recipe, as in train.learning_rate=0.001. May be repeated."),
    ] = None,
    init_from: Annotated[
        str | None, Option("--init-from", help="Begin with the weights, sizes and tokenizer of this checkpoint.")
    ] = None,
    tokenizer: Annotated[
        Path | None, Option(help="A SentencePiece model.", show_default="a new one, trained on the data")
    ] = None,
    resume: Annotated[bool, Option("--resume", help="Continue the run in --out.")] = False,
    strict: options.StrictOption = False,
    device: options.DeviceOption = "auto",
    workers: Annotated[
        int | None,
        Option(
            help="Number of processes on a CPU, which share its cores and the micro-batches of each update. Processes "
            "beyond the number of micro-batches would be idle.",
            show_default="one per core, at most one per micro-batch",
        ),
    ] = None,
) -> None:
    """Train a model on text.

    To use several GPUs or machines, start it with torchrun: `torchrun --nproc-per-node 2 -m bgt_core train ...`.
    """
    tune_training()
    from bgt_core import training
    from bgt_core.recipes import parse_overrides
    from bgt_core.training.workers import Workers

    with show_progress() as report:
        if resume:
            if recipe or data or langs or columns or init_from or tokenizer or teacher or encoder:
                text = "continues a run with its stored settings: give only --out, and --set for settings to change."
                raise UsageError(text, parameter="resume")
            changed = parse_overrides(overrides or [])
            folder = training.resume(out, device=device, workers=workers, report=report, overrides=changed)
        else:
            if recipe is None or not data:
                text = "is needed to start a run, as in: bgt train bgt-small --data pairs.tsv --out runs/mine"
                raise UsageError(text, parameter="data" if recipe else "recipe")
            if langs and columns:
                raise UsageError(
                    "can't be combined with --columns: both name the columns. Give only one.", parameter="langs"
                )
            folder = training.train(
                recipe, data, out, columns=(columns or langs or "").split(",") if columns or langs else (),
                overrides=parse_overrides(overrides or []) | ({"model.encoder": encoder} if encoder else {}),
                init_from=init_from, teacher=[None if path == "none" else path for path in teacher or ()],
                tokenizer=tokenizer, strict=strict, device=device, workers=workers, report=report,
            )  # fmt: skip
    if Workers.from_environment().is_main:
        print(folder)


@contextmanager
def show_progress() -> Iterator[Callable[[dict[str, Any]], None]]:
    """Show the training metrics on stderr: as a progress bar on a terminal, else as lines of text."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    terminal = sys.stderr.isatty()
    bar = Progress(*columns, console=Console(stderr=True), disable=not terminal)
    task = bar.add_task("training", total=None)

    def report(row: dict[str, Any]) -> None:
        bar.start()  # started at the first report, because only one of several worker processes reports metrics
        if row["kind"] == "data":
            counts = ", ".join(f"{count} {what}" for what, count in row["pairs"].items())
            lines = [f"data: {counts}", *(f"skipped {example}" for example in row["skipped"])]
        elif row["kind"] == "note":
            lines = [row["text"]]
        elif terminal and row["kind"] == "train":
            text = f"loss {row['loss']:.4g}, {row['tokens_per_second']:,.0f} tokens/s"
            bar.update(task, completed=row["step"], total=row["steps"], description=text)
            return
        else:
            lines = [f"{row['kind']} {row['step']}/{row['steps']}"]
            for name, value in row.items():
                if name not in ("kind", "step", "steps"):
                    lines[0] += f" {name} {value:.4g}" if isinstance(value, float) else f" {name} {value}"
        for line in lines:
            bar.console.out(line, highlight=False)  # prints the line above the progress bar

    try:
        yield report
    finally:
        bar.stop()
