"""`bgt-probe` itself."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from bgt_core.cli.errors import in_flags
from bgt_core.cli.options import CsvOption, DeviceOption, JsonOption, LatexOption, ParquetOption, PrecisionOption
from bgt_core.errors import BgtError

MEMORY, STOPPED = 6, 130


def probe(
    context: typer.Context,
    lang: Annotated[
        list[str] | None, typer.Option(help="Language of the sentences; several as fr,en, and all.", show_default=False)
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="Several as a,b; groups: paper, surface, syntax, semantic, all.",
            show_default="all that sentences alone can tell; with --data, all",
        ),
    ] = None,
    latent: Annotated[str | None, typer.Option(help="Latents to probe.", show_default="each that a model has")] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A checkpoint or run folder, ORG/NAME, sentence-transformers:NAME, python:MODULE:OBJECT, "
            "vectors:FILE, or baseline:words|tfidf|random; several stand side by side, as NAME=SPEC if you like.",
            show_default="the model that ships",
        ),
    ] = None,
    encoder_seeds: Annotated[
        list[str] | None, typer.Option(help="Other trainings of --model: scores are means over all.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder with labelled files (SentEval's), treebanks or text; or one file, text one sentence a line, "
            "or TSV (.gz .xz .zst).",
            show_default="the built-in sentences",
        ),
    ] = None,
    column: Annotated[int | None, typer.Option(help="The column of a TSV, from 1.")] = None,
    split_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Who trains and is tested: lines of train, dev or test, a tab, a sentence."),
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="First get SentEval's sets (English) into --data; once is enough.")
    ] = False,
    probe: Annotated[
        str, typer.Option(help="linear, or mlp50 for 50 hidden units; several as linear,mlp200.")
    ] = "linear",
    l2: Annotated[
        float | None,
        typer.Option(
            "--l2", help="The penalty, on the sum of losses (scikit-learn's 1 / C).", show_default="dev chooses"
        ),
    ] = None,
    max_items: Annotated[
        int | None, typer.Option(help="Items a task uses at most.", show_default="10,000; with --paper all")
    ] = None,
    max_train: Annotated[int | None, typer.Option(help="Training items at most; dev and test stay whole.")] = None,
    seeds: Annotated[
        int, typer.Option(help="Probes trained, 1 to 10; on sentences without splits each tests on its own tenth.")
    ] = 5,
    seed: Annotated[int, typer.Option(help="Of sentences, swaps and splits.")] = 0,
    ci: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    bootstrap: Annotated[int, typer.Option(help="Resamples of the test items.")] = 2_000,
    correction: Annotated[
        str, typer.Option(help="Of p over the differences of a table: holm, bonferroni, or none.")
    ] = "holm",
    baselines: Annotated[bool, typer.Option("--baselines/--no-baselines", help="Show what a probe must beat.")] = True,
    untrained: Annotated[
        bool, typer.Option("--untrained", help="Also the model untrained, three times, and the mean of its pieces.")
    ] = False,
    control: Annotated[str, typer.Option(help="The key of the control task: rare, first, or none.")] = "rare",
    capacity: Annotated[bool, typer.Option("--capacity", help="Also accuracy on shuffled training labels.")] = False,
    mdl: Annotated[bool, typer.Option("--mdl/--no-mdl", help="Also the online codelength.")] = False,
    erase: Annotated[str | None, typer.Option(help="leace or inlp: accuracy once the property is erased.")] = None,
    curve: Annotated[bool, typer.Option("--curve", help="Also learning curves.")] = False,
    paper: Annotated[
        bool, typer.Option("--paper", help="SentEval's protocol: one seed, its classifier, accuracy alone.")
    ] = False,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B", help="Their difference: latents or baselines, or MODEL or MODEL/LATENT of several."
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Exit with 7 where it holds, as gender<0.52 or gender/semantic>0.6."),
    ] = None,
    csv: CsvOption = None,
    latex: LatexOption = None,
    parquet: ParquetOption = None,
    md: Annotated[Path | None, typer.Option("--md", metavar="FILE", help="Also write it as Markdown.")] = None,
    predictions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what was predicted of each item, as Parquet.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write which latent holds what, as FILE.html and FILE.tex.")
    ] = None,
    as_json: JsonOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be measured, how much, and what is kept; then stop.")
    ] = False,
    list_tasks: Annotated[bool, typer.Option("--list-tasks", help="Print the tasks and stop.")] = False,
    cache_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where vectors and results are kept.", show_default="BGT_CACHE, or the system's cache folder"
        ),
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Measure all anew, keep nothing.")] = False,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
) -> None:
    """Probe what a latent knows of a sentence: test accuracy with its interval, beside baselines.

    What was measured is kept: the same command again prints the same at once, and continues where it was stopped.
    """
    if context.invoked_subcommand:
        return
    try:
        if list_tasks:
            from probes.cli.output import print_tasks

            print_tasks()
            return
        code = answer(context.params)
    except BgtError as error:
        print(f"bgt-probe: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:  # before or after measuring
        raise typer.Exit(STOPPED) from None
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and type(error).__name__ != "OutOfMemoryError":  # torch's, of a GPU
            raise
        print(
            "bgt-probe: out of memory: give --max-items or --max-train, or --device cpu; what was measured is kept.",
            file=sys.stderr,
        )
        raise typer.Exit(MEMORY) from None
    raise typer.Exit(code)


def answer(values: Mapping[str, Any]) -> int:
    """What the options ask for; the exit code. Errors of the library come in terms of the options."""
    from probes.cli.measuring import measure
    from probes.cli.options import FLAGS, CliOptions, readable_twice
    from probes.cli.plan import plan

    with in_flags(FLAGS), readable_twice(CliOptions.of(values)) as options:
        return plan(options) if values["dry_run"] else measure(options)
