"""The command `bgt-probe`: check the options, open the encoders, run all probes, then write and print the results.

The table goes to stdout, progress to stderr. The exit codes are those of `bgt`: 0 done; 1 internal error; 2 wrong
usage; 3 a file, device or library is absent; 4 invalid data or checkpoint; 6 out of memory. `bgt-probe` also exits with
5 if some tasks failed, and with 130 if it was interrupted. Even then, the finished results are written and printed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.cli.errors import Command, name_option, run
from bgt_core.cli.options import check_folder, open_models, split_names, unnamed
from bgt_core.errors import UsageError

if TYPE_CHECKING:
    from bgt_core.contracts import SentenceEncoder
    from probes.grid import Grid, ProbeTable
    from probes.results.store import Cell

FAILED, STOPPED = 5, 130

app = typer.Typer(add_completion=True, pretty_exceptions_enable=False)


@app.command(cls=Command)
def probe(
    context: typer.Context,
    lang: Annotated[
        list[str] | None,
        typer.Option(help="Language of the sentences: fr,en for both, all for every language.", show_default=False),
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            help="Probing tasks, separated by commas, or groups: paper, surface, syntax, semantic, style, all. "
            "python:MODULE:OBJECT names a task of your own.",
            show_default="all that need only sentences; with --data, all",
        ),
    ] = None,
    latents: Annotated[
        list[str] | None, typer.Option("--latent", help="Latents to probe, separated by commas.", show_default="all")
    ] = None,
    model: options.EncodersOption = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Data: a folder with SentEval's labelled files, treebanks or text; or one such file, for example text "
            "with one sentence per line (also .gz, .xz, .zst).",
            show_default="the built-in sentences",
        ),
    ] = None,
    probe: Annotated[
        str, typer.Option(help="Kind of probe: linear, or mlp50 for 50 hidden units. linear,mlp200 measures two kinds.")
    ] = "linear",
    max_items: Annotated[
        int | None, typer.Option(help="Maximum number of sentences.", show_default="10,000; with --senteval all")
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            help="Number of probes, 1 to 10. Without fixed splits, each is tested on a different tenth of the items."
        ),
    ] = 5,
    seed: options.SeedOption = 0,
    resamples: options.ResamplesOption = 2_000,
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Measure baselines, which do not use the model.")
    ] = True,
    control: Annotated[
        bool, typer.Option("--control/--no-control", help="Measure selectivity, by a control task with random labels.")
    ] = True,
    untrained: Annotated[
        bool, typer.Option("--untrained", help="Also probe three untrained models, and means of their token vectors.")
    ] = False,
    senteval: Annotated[
        bool, typer.Option("--senteval", help="Use SentEval's classifier and protocol: one seed, accuracy only.")
    ] = False,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Output file. A .parquet file has every result and prediction, and the app can open it; .csv, .md, "
            ".tex and .json files have tables. May be repeated.",
        ),
    ] = None,
    as_json: options.JsonOption = False,
    list_tasks: Annotated[bool, typer.Option("--list-tasks", help="Print the tasks and exit.")] = False,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
) -> None:
    """Measure which properties of a sentence a probe can predict from its latents.

    A probe is a small classifier. The table shows the test accuracy of each probe, with intervals, and the accuracy of
    baselines.
    """
    if list_tasks:  # this comes before the slow imports, which are only needed to run probes
        from bgt_core.tables import show
        from probes.tasks import TASKS

        show(
            ["task", "languages", "question"], [[t.name, ", ".join(t.langs) or "any", t.about] for t in TASKS.values()]
        )
        return
    from bgt_core.embedder import Embedder
    from bgt_core.encoders.baseline import reference_encoders
    from bgt_core.evaluation.comparison import check_ending
    from probes.grid import ALL, Grid
    from probes.measures.measure import ProbeConfig

    langs, model = split_names(lang), model or [str(PRETRAINED)]
    if not langs:
        raise UsageError("is needed, as in: bgt-probe --lang fr --task gender", parameter="lang")
    if untrained and len(model) > 1:
        raise UsageError("can be used with only one --model.", parameter="untrained")
    if untrained and senteval:
        raise UsageError("is not part of SentEval's protocol; leave out one of the two options.", parameter="untrained")
    for path in out or []:
        check_folder(path)
        check_ending(path)
    chosen = {each.name: context.params[each.name] for each in fields(ProbeConfig)}
    configs = [ProbeConfig(**chosen | {"probe": kind}) for kind in split_names([probe])]
    try:
        grid = Grid(split_names(tasks) or [ALL], langs, data, configs)
        grid.check()
        encoders = open_models(model, device, precision)
        if len(encoders) < len(model):
            text = f"{', '.join(model)}: two have the same name; name each as NAME=SPEC."
            raise UsageError(text, parameter="model")
        references: Mapping[str, Sequence[SentenceEncoder]] = {}
        if untrained:
            (encoder,) = encoders.values()
            if not isinstance(encoder, Embedder):
                raise UsageError(f"needs a BGT checkpoint; {model[0]} is another encoder.", parameter="untrained")
            references = reference_encoders(encoder, Path(unnamed(model[0])), device)
        grid = replace(grid, encoders=encoders, latents=split_names(latents), references=references)
        code = measure(grid, context, out or [], as_json)
    except (MemoryError, RuntimeError) as error:
        error.add_note("give --max-items, or --device cpu")
        raise
    raise typer.Exit(code)


def main() -> None:
    """Run the command `bgt-probe`."""
    run(app, "bgt-probe")


def measure(grid: Grid, context: typer.Context, out: Sequence[Path], as_json: bool) -> int:
    """Run all probes of a table, write and print the results, and return the exit code."""
    from probes.grid import ProbeTable
    from probes.tables import corrected

    table, stopped = ProbeTable(), False
    try:
        grid.measure(table, say, lambda error: name_option(error, context.command))
    except KeyboardInterrupt:
        stopped = True
        say(f"bgt-probe: stopped after {len(table.cells)} results")
    if not table.cells:
        if table.failures and not stopped:  # repeat the first error at the end of the output, where users see it
            error = table.failures[0][1]
            raise type(error)(f"{error.args[0]} So nothing could be measured.", parameter=error.parameter)
        return STOPPED
    table.cells = corrected(table.cells)
    for path in out:
        write(path, table)
    for cell in table.cells:
        for line in cell.result.warnings:
            say(f"{cell.result.task} {cell.result.lang}, {cell.model}: {line}")
    if as_json:
        only_ascii = "utf" not in (sys.stdout.encoding or "").lower()
        print(json.dumps(document(table), indent=2, ensure_ascii=only_ascii))
    else:
        show_tables(table.cells)
    return STOPPED if stopped else FAILED if table.failures else 0


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def write(path: Path, table: ProbeTable) -> None:
    """Write a table in the format that the file's suffix selects. If an error occurs, no partial file is left."""
    from bgt_core.files import atomic_file, write_text
    from bgt_core.tables import save
    from probes.results.store import write_cells
    from probes.tables import long_table, wide_table

    if path.suffix == ".parquet":
        with atomic_file(path) as partial:
            write_cells(partial, table.cells)
    elif path.suffix == ".json":
        write_text(path, json.dumps(document(table), indent=2, ensure_ascii=False))
    elif path.suffix == ".csv":
        save(long_table(table.cells), path)
    else:
        save(wide_table(table.cells), path, about(table.cells))


def document(table: ProbeTable) -> dict[str, Any]:
    """Convert the results and the failures of a table to a dict for JSON."""
    from probes.results.store import SCHEMA

    return {
        "schema": SCHEMA,
        "about": about(table.cells),
        "results": [cell.as_dict() for cell in table.cells],
        "failed": [{"cell": label, "why": str(error)} for label, error in table.failures],
    }


def about(cells: Sequence[Cell]) -> str:
    """Explain in one line how the numbers of a table were measured."""
    from probes.data.load import BUILT, LABELLED, VERBATIM

    first = cells[0].result
    probes = "of one probe" if first.seeds == 1 else f"mean of {first.seeds} probe seeds"
    if cells[0].trail["probe"] == "senteval":
        whole = all(
            cell.trail.get("card", {}).get("tokenisation") == VERBATIM and not cell.result.left_out for cell in cells
        )  # whether every labelled file is used as it is: all items, in order, with unchanged text and copies
        items = "items as in the file" if whole else "other items than SentEval's: it uses whole labelled files"
        return f"test accuracy in percent by SentEval's protocol, one seed, with Wilson intervals; {items}"
    cleaned = any(cell.trail.get("card", {}).get("built") == BUILT[LABELLED] for cell in cells)
    return (
        f"test accuracy in percent, {probes}, with Wilson 95% intervals; "
        "differences: paired, interval and p over test items (bootstrap) and seeds (Student's t), Holm over the table"
        f"{'; labelled files cleaned: tokens joined to text, each sentence once' if cleaned else ''}"
    )


def show_tables(cells: Sequence[Cell]) -> None:
    """Print the accuracies and the differences and, for several models, a table with one column per model."""
    from bgt_core.tables import LEGEND, show
    from probes.tables import gap_table, short_table, wide_table

    table = short_table(cells)
    say(about(cells))
    show(table.columns, table.lines(), text=table.columns.index("train"))
    if gaps := [cell.result.difference for cell in cells if cell.result.difference]:
        table = gap_table(gaps)
        print()
        show(table.columns, table.lines(), text=3)
    if len({cell.model for cell in cells}) > 1:
        table = wide_table(cells)
        print()
        show(table.columns, table.lines(), text=2)
        say(LEGEND)
