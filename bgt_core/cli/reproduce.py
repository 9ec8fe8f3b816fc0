"""`bgt reproduce`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core.cli.options import DeviceOption, JsonOption
from bgt_core.errors import BgtError, Interrupted, UsageError

if TYPE_CHECKING:
    from bgt_core.reproduce.cells import Cell
    from bgt_core.reproduce.plan import Plan


class SomeFailed(BgtError):
    """Trainings of a comparison failed, or are of another version; the others are reported."""

    exit_code = 5


def reproduce(
    name: Annotated[str, typer.Argument(help="main, ablations, fusion, depth, batch-size, cross-lingual, or all.")],
    scale: Annotated[str, typer.Option(help="paper (the recipes as they are) or small (of a laptop).")] = "small",
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder of parallel/en-fr.*.tsv.xz, retrieval/en-fr.*.tsv, and STS files as `bgt sts` reads them.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where the trainings are kept.", show_default=False)] = None,
    results: Annotated[Path | None, typer.Option(help="Where the results go.", show_default="OUT/results")] = None,
    only: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Run only such systems or trainings, as in 'BGT*'.")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="As in 1,2; instead of those that the table says.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try again what failed, or is outdated.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Say which trainings there are, and run none.")] = False,
    report_only: Annotated[
        bool,
        typer.Option(
            "--report-only",
            help="Run nothing: with --data, report what is finished by now; without, draw the stored results again.",
        ),
    ] = False,
    threads: Annotated[int | None, typer.Option(help="Of this process; one each for several side by side.")] = None,
    resamples: Annotated[int, typer.Option(help="Of the bootstrap.")] = 2_000,
    level: Annotated[float, typer.Option(help="Of the intervals and verdicts.")] = 0.95,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
) -> None:
    """Train and measure what a table of the paper compares, and print the paper's numbers beside ours.

    What is finished is never run again, and what was stopped goes on. Several processes may share a folder.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # huge pages; torch looks once, when it is imported
    from bgt_core.reproduce.tables import TABLES

    names = list(TABLES) if name == "all" else [name]
    if name not in (*TABLES, "all"):
        raise UsageError(f"There is no table '{name}'; choose from {', '.join(TABLES)}, all.")
    if report_only and not data:
        from bgt_core.reproduce.plan import draw

        folder = results or (out and out / "results")
        if not folder:
            raise UsageError("--report-only draws from results: say where they are, by --results or --out.")
        for one in names:
            draw(folder, one)
        show(folder, names, as_json)
        return
    if not data or not out:
        raise UsageError("Say --data, the folder to train and measure on, and --out, where trainings are kept.")
    from bgt_core.cli.progress import Progress
    from bgt_core.evaluation.sts.compare import check_settings
    from bgt_core.reproduce import runner
    from bgt_core.reproduce.plan import plan
    from bgt_core.reproduce.samples import Bootstrap

    check_settings(["mean"], resamples, level)
    use_threads(threads)
    planned = plan(names, scale, data, out, seeds=numbers(seeds), device=device, say=say)
    chosen = planned.chosen(only)
    for line in dict.fromkeys(f"{c.recipe} has no {', '.join(c.left_out)}: not set" for c in chosen if c.left_out):
        say(line)
    if listing:
        show_list(planned, chosen, as_json)
        return
    folder = results or out / "results"
    try:
        if not report_only:
            with Progress() as progress:
                runner.work(replace(planned.place, report=progress), chosen, retry)
        planned.write(folder, Bootstrap(resamples, level))
    except (Interrupted, KeyboardInterrupt):
        raise Interrupted("Stopped; what is done is kept, and the same command goes on.") from None
    show(folder, names, as_json)
    states = [runner.state(planned.place, cell) for cell in chosen]
    if bad := sum(one in (runner.FAILED, runner.OUTDATED) for one in states):
        said = "failed or are outdated: --list says which, --retry runs them again."
        raise SomeFailed(f"{bad} of {len(states)} trainings {said}")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def use_threads(count: int | None) -> None:
    """In this process; as many as there are cores where it is None."""
    if count is None:
        return
    if count < 1:
        raise UsageError(f"--threads {count}: expected 1 or more.")
    import threadpoolctl
    import torch

    torch.set_num_threads(count)
    threadpoolctl.threadpool_limits(count)


def numbers(seeds: str | None) -> list[int]:
    """ "1,2" -> [1, 2]."""
    try:
        found = [int(part) for part in seeds.split(",")] if seeds else []
    except ValueError:
        raise UsageError(f"--seeds {seeds}: expected whole numbers, as in 1,2,3.") from None
    if min(found, default=0) < 0 or len(set(found)) < len(found):
        raise UsageError(f"--seeds {seeds}: expected different numbers from 0 up.")
    return found


def show_list(planned: Plan, chosen: Sequence[Cell], as_json: bool) -> None:
    """Each training, its state, the time it has taken and, where one like it is finished, what is left."""
    from bgt_core.reproduce.estimate import left
    from bgt_core.tables import show

    found = left(planned.place, chosen)
    rows = [{**row, "tables": planned.tables_of(cell)} for row, cell in zip(found, chosen, strict=True)]
    if as_json:
        print(json.dumps({"schema": "bgt-reproduce-list/1", "trainings": rows}, indent=2, ensure_ascii=False))
        return
    head = ["training", "tables", "state", "minutes", "minutes left", "error"]
    times = [["" if row[part] is None else f"{row[part] / 60:.1f}" for part in ("seconds", "left")] for row in rows]
    lines = [
        [row["name"], ", ".join(row["tables"]), row["state"], *time, row["error"]]
        for row, time in zip(rows, times, strict=True)
    ]
    show(head, lines, text=3)
    unknown = sum(row["left"] is None for row in rows)
    hours = sum(row["left"] or 0 for row in rows) / 3600
    more = f", and {unknown} of which nothing is known yet" if unknown else ""
    say(f"{len(rows)} trainings; about {hours:.1f} hours left in one process{more}.")


def show(folder: Path, names: Sequence[str], as_json: bool) -> None:
    """Print the results of each table, as they are stored."""
    from bgt_core.reproduce import report, stored
    from bgt_core.reproduce.tables import TABLES
    from bgt_core.tables import show

    found = {name: stored.read(folder, name) for name in names}
    for name, rows in found.items():
        say(f"{folder / name}.md: {report.verdicts(rows)}")
    if as_json:
        print(json.dumps({"schema": "bgt-reproduce/1", "tables": found}, indent=2, ensure_ascii=False))
        return
    grids = [grid for name, rows in found.items() for grid in (report.scores(TABLES[name], rows), report.claims(rows))]
    for number, grid in enumerate(grid for grid in grids if grid.rows):
        print(end="\n" if number else "")
        show(grid.columns, grid.lines())
