"""`python -m analysis.reproduce NAME`: the command."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core.cli import options
from bgt_core.cli.errors import Command, run
from bgt_core.cli.options import tune_training
from bgt_core.errors import BgtError, Interrupted, UsageError, check_least

if TYPE_CHECKING:
    from analysis.reproduce import TrainingPlan
    from analysis.reproduce.trainings import Training


app = typer.Typer(pretty_exceptions_enable=False)


class SomeFailed(BgtError):
    """Trainings of a comparison failed or are outdated; the others are reported."""

    exit_code = 5


@app.command(cls=Command)
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="main, ablations, fusion, depth, batch-size, cross-lingual, or all of these; from other papers: "
            "backtranslation, vgvae, var-siamese."
        ),
    ],
    scale: Annotated[str, typer.Option(help="paper (the recipes unchanged) or small (for a laptop).")] = "small",
    data: Annotated[
        Path | None,
        typer.Option(
            help="Data: parallel/en-fr.*.tsv.xz, retrieval/en-fr.*.tsv, and STS files as in `bgt evaluate sts`; "
            "for backtranslation, backtranslated/fr-news.tsv.xz, paraphrase/en.*.tsv.xz, and STS and SICK; "
            "for vgvae, paraphrase/en.*.tsv.xz, trees/en.*.ptb.xz, and STS; "
            "for var-siamese, quora/train.tsv.xz and quora/dev.tsv.xz.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Output folder of the trainings.", show_default=False)] = None,
    results: Annotated[
        Path | None, typer.Option(help="Output folder of the results.", show_default="OUT/results")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Run only systems or trainings that match, as in 'BGT*'.")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds, as in 1,2, in place of the table's own.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat trainings that failed or are outdated.")] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="Only list the trainings, their state and time left.")
    ] = False,
    report_only: Annotated[
        bool,
        typer.Option(
            "--report-only",
            help="Run nothing: with --data, report the finished trainings; without, report the stored results.",
        ),
    ] = False,
    threads: Annotated[int | None, typer.Option(help="Number of threads; use 1 if several processes run.")] = None,
    resamples: options.ResamplesOption = 2_000,
    level: options.LevelOption = 0.95,
    as_json: options.JsonOption = False,
    device: options.DeviceOption = "auto",
) -> None:
    """Train and measure what a table of the paper compares, and print the paper's numbers beside ours.

    What is finished is never run again, and what was stopped continues. Several processes may share a folder.
    """
    tune_training()
    from analysis import reproduce
    from bgt_core.cli.progress import Progress

    names = comparison_names(name)
    if report_only and not data:
        redraw(results or (out and out / "results"), names, as_json)
        return
    if not data:
        raise UsageError("is needed: the folder of data to train and measure on.", parameter="data")
    if not out:
        raise UsageError("is needed: the output folder of the trainings.", parameter="out")
    use_threads(threads)
    bootstrap = reproduce.Bootstrap(resamples, level)
    plan = reproduce.plan_trainings(
        names, data=data, out=out, scale=scale, seeds=numbers(seeds), device=device, say=say
    )
    warn_of_arguments(plan.chosen(only))
    if listing:
        show_list(plan, plan.chosen(only), as_json)
        return
    folder = results or out / "results"
    try:
        if not report_only:
            with Progress() as progress:
                reproduce.run(plan, only=only, retry=retry, progress=progress)
        reproduce.report(plan, folder, bootstrap)
    except (Interrupted, KeyboardInterrupt):
        raise Interrupted("Stopped; finished trainings are kept. The same command continues.") from None
    show(folder, names, as_json)
    check_finished(plan.states(only))


def comparison_names(name: str) -> list[str]:
    """The names that "all" stands for: those of the BGT paper, as the other papers have other data."""
    from analysis.reproduce.comparisons import COMPARISONS
    from analysis.reproduce.papers import check_names

    names = list(COMPARISONS) if name == "all" else [name]
    check_names(names)
    return names


def redraw(folder: Path | None, names: Sequence[str], as_json: bool) -> None:
    """Draw the pages of stored results again, and print them."""
    from analysis.reproduce.training_plan import draw

    if not folder:
        raise UsageError("is needed, or --out: --report-only reads stored results.", parameter="results")
    for name in names:
        draw(folder, name)
    show(folder, names, as_json)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def use_threads(count: int | None) -> None:
    """Limit the threads of this process; one per core where it is None."""
    check_least(1, threads=count)
    if count is None:
        return
    import threadpoolctl
    import torch

    torch.set_num_threads(count)
    threadpoolctl.threadpool_limits(count)


def numbers(seeds: str | None) -> list[int]:
    """ "1,2" -> [1, 2]."""
    try:
        values = [int(part) for part in seeds.split(",")] if seeds else []
    except ValueError:
        raise UsageError(f"{seeds}: expected whole numbers, as in 1,2,3.", parameter="seeds") from None
    if min(values, default=0) < 0 or len(set(values)) < len(values):
        raise UsageError(f"{seeds}: expected different numbers from 0 up.", parameter="seeds")
    return values


def warn_of_arguments(trainings: Sequence[Training]) -> None:
    """Arguments of the scale that a recipe does not have are not set."""
    missing = {(training.recipe, training.left_out): None for training in trainings if training.left_out}
    for recipe, arguments in missing:
        say(f"{recipe} has no {', '.join(arguments)}: not set")


def check_finished(states: Mapping[str, str]) -> None:
    """Raises SomeFailed where a training failed or is outdated."""
    from analysis.reproduce.runner import FAILED, OUTDATED

    if failed := sum(state in (FAILED, OUTDATED) for state in states.values()):
        way_out = "failed or are outdated: --list says which, --retry runs them again."
        raise SomeFailed(f"{failed} of {len(states)} trainings {way_out}")


def show_list(plan: TrainingPlan, chosen: Sequence[Training], as_json: bool) -> None:
    """Print each training, its state, the time taken, and the time left if a similar training is finished."""
    from analysis.reproduce.estimate import time_left
    from bgt_core.tables import show

    rows = [
        {**row, "tables": plan.comparisons_of(training)}
        for row, training in zip(time_left(plan.workspace, chosen), chosen, strict=True)
    ]
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
    more = f", and {unknown} whose time is not known yet" if unknown else ""
    say(f"{len(rows)} trainings; about {hours:.1f} hours left in one process{more}.")


def show(folder: Path, names: Sequence[str], as_json: bool) -> None:
    """Print the results of each comparison, as they are stored."""
    from analysis.reproduce import pages, stored
    from analysis.reproduce.papers import comparison_of
    from bgt_core.tables import show

    results = {name: stored.read(folder, name) for name in names}
    for name, records in results.items():
        say(f"{folder / name}.md: {pages.verdicts(records)}")
    if as_json:
        print(json.dumps({"schema": "bgt-reproduce/1", "tables": results}, indent=2, ensure_ascii=False))
        return
    tables = [
        table
        for name, records in results.items()
        for table in (pages.scores(comparison_of(name, records), records), pages.claims(records))
    ]
    for number, table in enumerate(table for table in tables if table.rows):
        print(end="\n" if number else "")
        show(table.columns, table.lines())


def main() -> None:
    """The command."""
    run(app, "reproduce")


if __name__ == "__main__":
    main()
