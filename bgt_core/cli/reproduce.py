"""`bgt reproduce`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core.cli.options import DeviceOption, JsonOption
from bgt_core.errors import BadInput

if TYPE_CHECKING:
    from bgt_core.reproduce.cells import Cell
    from bgt_core.reproduce.listing import Table
    from bgt_core.reproduce.results import Bootstrap
    from bgt_core.reproduce.runner import Place

SOME_FAILED = 5  # the exit code


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
        bool, typer.Option("--report-only", help="Draw the report again from the results, and run nothing.")
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
    from bgt_core.reproduce.tables import SCALES, TABLES

    names = list(TABLES) if name == "all" else [name]
    if name not in (*TABLES, "all"):
        raise BadInput(f"There is no table '{name}'; choose from {', '.join(TABLES)}, all.", 2)
    if report_only:
        folder = results or (out and out / "results")
        if not folder:
            raise BadInput("--report-only draws from results: say where they are, by --results or --out.", 2)
        show(folder, names, as_json)
        return
    if scale not in SCALES:
        raise BadInput(f"--scale {scale}: choose from {', '.join(SCALES)}.", 2)
    if not data or not out:
        raise BadInput("Say --data, the folder to train and measure on, and --out, where trainings are kept.", 2)
    from bgt_core.evaluation.sts_compare import check_settings
    from bgt_core.reproduce.results import Bootstrap

    check_settings(["mean"], resamples, level)
    place = prepare(data, out, names, scale, device, threads)
    planned = {one: cells_of(TABLES[one], SCALES[scale], numbers(seeds), place) for one in names}
    chosen = choose(planned, only)
    if listing:
        print_list(place, chosen, planned, as_json)
        return
    from bgt_core.reproduce import runner
    from bgt_core.run import Interrupted

    how = Bootstrap(resamples, level)
    try:
        runner.work(place, list(chosen.values()), retry)
        write(place, results or out / "results", planned, how)
    except (Interrupted, KeyboardInterrupt):
        raise BadInput("Stopped; what is done is kept, and the same command goes on.", 130) from None
    show(results or out / "results", names, as_json)
    states = [runner.state(place, cell) for cell in chosen.values()]
    if bad := [one for one in states if one in (runner.FAILED, runner.OUTDATED)]:
        message = (
            f"{len(bad)} of {len(states)} trainings failed or are outdated: --list says which, --retry tries again."
        )
        raise BadInput(message, SOME_FAILED)


def numbers(seeds: str | None) -> list[int]:
    """ "1,2" -> [1, 2]."""
    try:
        found = [int(part) for part in seeds.split(",")] if seeds else []
    except ValueError:
        raise BadInput(f"--seeds {seeds}: expected whole numbers, as in 1,2,3.", 2) from None
    if min(found, default=0) < 0 or len(set(found)) < len(found):
        raise BadInput(f"--seeds {seeds}: expected different numbers from 0 up.", 2)
    return found


def prepare(data: Path, out: Path, names: Sequence[str], scale: str, device: str, threads: int | None) -> Place:
    """Read the data of every pair of languages that the tables need."""
    import threadpoolctl
    import torch

    from bgt_core.reproduce import material
    from bgt_core.reproduce.runner import Place
    from bgt_core.reproduce.tables import SAVE_EVERY, TABLES
    from bgt_core.train.device import pick_device

    pick_device(device)
    if threads is not None:
        if threads < 1:
            raise BadInput(f"--threads {threads}: expected 1 or more.", 2)
        torch.set_num_threads(threads)
        threadpoolctl.threadpool_limits(threads)
    pairs = dict.fromkeys(system.langs for name in names for system in TABLES[name].systems)
    found = {langs: material.read(data, langs) for langs in pairs}
    return Place(out, found, device, SAVE_EVERY.get(scale), lambda line: print(line, file=sys.stderr, flush=True))


def cells_of(table: Table, scale: Mapping[str, object], seeds: Sequence[int], place: Place) -> dict[str, list[Cell]]:
    """The trainings of each system."""
    from bgt_core.reproduce.cells import cell_of

    return {
        system.name: [
            cell_of(system, scale, seed, place.materials[system.langs].sha256) for seed in seeds or system.seeds
        ]
        for system in table.systems
    }


def choose(planned: Mapping[str, Mapping[str, Sequence[Cell]]], only: str | None) -> dict[str, Cell]:
    """Every training once, the first seeds first; those of `only` by the name of a system or their own."""
    found = {
        cell.key: cell
        for systems in planned.values()
        for system, cells in systems.items()
        for cell in cells
        if only is None or any(fnmatchcase(one.lower(), only.lower()) for one in (system, cell.name))
    }
    if not found:
        said = ", ".join(dict.fromkeys(system for systems in planned.values() for system in systems))
        raise BadInput(f"--only {only}: no such system or training; systems are {said}.", 2)
    return dict(sorted(found.items(), key=lambda item: item[1].seed))


def print_list(
    place: Place, chosen: Mapping[str, Cell], planned: Mapping[str, Mapping[str, Sequence[Cell]]], as_json: bool
) -> None:
    """Each training, its state, the time it has taken and, where one like it is finished, what is left."""
    from bgt_core.reproduce.estimate import left
    from bgt_core.tables import show

    rows = left(place, list(chosen.values()))
    for row, cell in zip(rows, chosen.values(), strict=True):
        row["tables"] = [
            name
            for name, systems in planned.items()
            if any(cell.key == one.key for of in systems.values() for one in of)
        ]
    if as_json:
        print(json.dumps({"schema": "bgt-reproduce-list/1", "trainings": rows}, indent=2, ensure_ascii=False))
        return
    minutes = [
        [f"{row[part] / 60:.1f}" if row[part] is not None else "" for part in ("seconds", "left")] for row in rows
    ]
    show(
        ["training", "tables", "state", "minutes", "minutes left", "error"],
        [
            [row["name"], ", ".join(row["tables"]), row["state"], *times, row["error"]]
            for row, times in zip(rows, minutes, strict=True)
        ],
        text=3,
    )
    unknown = sum(row["left"] is None for row in rows)
    hours = sum(row["left"] or 0 for row in rows) / 3600
    said = f", and {unknown} that nothing is known of yet" if unknown else ""
    print(f"{len(rows)} trainings; about {hours:.1f} hours left in one process{said}.", file=sys.stderr)
    for line in dict.fromkeys(
        f"{c.recipe}: no {', '.join(c.left_out)}; left out" for c in chosen.values() if c.left_out
    ):
        print(line, file=sys.stderr)


def write(place: Place, folder: Path, planned: Mapping[str, Mapping[str, Sequence[Cell]]], how: Bootstrap) -> None:
    """The CSV files of each table."""
    from bgt_core.reproduce import results
    from bgt_core.reproduce.tables import TABLES

    for name, cells in planned.items():
        results.write(folder, name, results.records(place, TABLES[name], cells, how))


def show(folder: Path, names: Sequence[str], as_json: bool) -> None:
    """Draw the Markdown page of each table, and print it."""
    from bgt_core.reproduce import report, results
    from bgt_core.reproduce.tables import TABLES
    from bgt_core.run import write_atomically
    from bgt_core.tables import show

    found = {name: results.read(folder, name) for name in names}
    for name, rows in found.items():
        page = folder / f"{name}.md"
        write_atomically(page, report.page(name, TABLES[name], rows))
        print(f"{page}: {report.verdicts(rows)}", file=sys.stderr)
    if as_json:
        print(json.dumps({"schema": "bgt-reproduce/1", "tables": found}, indent=2, ensure_ascii=False))
        return
    for number, (name, rows) in enumerate(found.items()):
        for grid in (report.scores(TABLES[name], rows), report.claims(rows)):
            if grid.rows:
                print(end="\n" if number or grid.columns[0] != "system" else "")
                show(grid.columns, grid.lines())
