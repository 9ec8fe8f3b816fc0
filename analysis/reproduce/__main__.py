"""The command `python -m analysis.reproduce NAME`, which trains and measures the systems of a paper's table."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core.cli import options
from bgt_core.cli.errors import Command, run
from bgt_core.cli.options import tune_training
from bgt_core.errors import BgtError, Interrupted, UsageError, check_least

if TYPE_CHECKING:
    from analysis.reproduce.trainings import TrainingPlan


app = typer.Typer(pretty_exceptions_enable=False)


class SomeFailed(BgtError):
    """Raised if some trainings of a comparison failed. The results of the other trainings have been reported."""

    exit_code = 5


@app.command(cls=Command)
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="Comparison to run: main, ablations, fusion, depth, batch-size, cross-lingual, or all of these. "
            "Not in `all`: growth (longer trainings), and other papers: backtranslation, vgvae, var-siamese."
        ),
    ],
    scale: Annotated[str, typer.Option(help="small: for a laptop; large: for a GPU; paper: as published.")] = "small",
    data: Annotated[
        Path | None,
        typer.Option(
            help="Data folder. It contains parallel/en-fr.*.tsv.xz, retrieval/en-fr.*.tsv, and STS files as for "
            "`bgt evaluate sts`. Other papers need other files. For backtranslation: backtranslated/fr-news.tsv.xz, "
            "paraphrase/en.*.tsv.xz, STS and SICK. For vgvae: paraphrase/en.*.tsv.xz, trees/en.*.ptb.xz and STS. "
            "For var-siamese: quora/train.tsv.xz and quora/dev.tsv.xz.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write the trainings to.", show_default=False)] = None,
    results: Annotated[
        Path | None, typer.Option(help="Folder to write the results to.", show_default="OUT/results")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Only run the systems or trainings whose name matches, as in 'BGT*'."),
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds, as in 1,2. By default, those of each system.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="Only list the trainings and their state.")] = False,
    report_only: Annotated[
        bool,
        typer.Option(
            "--report-only",
            help="Run no training. With --data, report the finished trainings. Without --data, report stored results.",
        ),
    ] = False,
    threads: Annotated[int | None, typer.Option(help="Number of threads. Use 1 if several processes run.")] = None,
    resamples: options.ResamplesOption = 2_000,
    level: options.LevelOption = 0.95,
    as_json: options.JsonOption = False,
    device: options.DeviceOption = "auto",
) -> None:
    """Train and measure the systems in a table of a paper, and print our numbers beside the paper's.

    Finished trainings are not repeated, stopped trainings continue, and failed trainings are tried again. Several
    processes may work in the same folder.
    """
    tune_training()
    import threadpoolctl
    import torch

    from analysis.reproduce import results as rows
    from analysis.reproduce import trainings
    from analysis.reproduce.comparisons import OF_BGT, check_names
    from bgt_core.cli.train import show_progress
    from bgt_core.evaluation.comparison import check_bootstrap
    from bgt_core.files import file_lock

    names = list(OF_BGT) if name == "all" else [name]
    check_names(names)
    folder = results or (out and out / "results")
    if report_only and not data:
        if not folder:
            raise UsageError("is needed, or --out: the folder of the results to report.", parameter="results")
        show(folder, names, as_json)
        return
    if not data:
        raise UsageError("is needed: the folder with the training and test data.", parameter="data")
    if not out or not folder:
        raise UsageError("is needed: the folder to write the trainings to.", parameter="out")
    check_least(1, threads=threads)
    if threads is not None:
        torch.set_num_threads(threads)
        threadpoolctl.threadpool_limits(threads)
    check_bootstrap(resamples, level)
    plan = trainings.plan_trainings(
        names, data=data, out=out, scale=scale, seeds=numbers(seeds), device=device, resamples=resamples
    )
    if listing:
        show_list(plan, only, as_json)
        return
    try:
        if not report_only:
            with show_progress() as progress:
                trainings.run_trainings(plan, only, progress)
        with file_lock(plan.out / "results.lock", wait=True):  # only one process at a time may write results
            for each in names:
                rows.write(folder, each, rows.records(plan, each, level))
    except (Interrupted, KeyboardInterrupt):
        raise Interrupted("Stopped. Finished trainings are kept. To continue, run the same command again.") from None
    show(folder, names, as_json)
    states = [plan.state(training) for training in plan.chosen(only)]
    if failed := states.count(trainings.FAILED):
        raise SomeFailed(f"{failed} of {len(states)} trainings failed. Run with --list to see them and their errors.")


def numbers(seeds: str | None) -> list[int]:
    """Parse seeds: "1,2" -> [1, 2]. Raises UsageError unless they are different integers of at least 0."""
    try:
        values = [int(part) for part in seeds.split(",")] if seeds else []
    except ValueError:
        raise UsageError(f"must be whole numbers, as in 1,2,3 (got {seeds})", parameter="seeds") from None
    if min(values, default=0) < 0 or len(set(values)) < len(values):
        raise UsageError(f"must be different numbers of at least 0, as in 1,2,3 (got {seeds})", parameter="seeds")
    return values


def show_list(plan: TrainingPlan, only: str | None, as_json: bool) -> None:
    """Print the name, state and training time of each training."""
    from analysis.reproduce.results import error
    from analysis.reproduce.trainings import TIME, read
    from bgt_core.tables import show

    rows = [
        {
            "name": training.name,
            "tables": [name for name, systems in plan.trainings.items() if training in chain(*systems.values())],
            "state": plan.state(training),
            "seconds": read(plan.folder(training) / TIME).get("seconds", 0.0),
            "error": error(plan, training),
        }
        for training in plan.chosen(only)
    ]
    if as_json:
        print(json.dumps({"schema": "bgt-reproduce-list/1", "trainings": rows}, indent=2, ensure_ascii=False))
        return
    rows = [row | {"tables": ", ".join(row["tables"]), "seconds": f"{row['seconds'] / 60:.1f}"} for row in rows]
    show(["training", "tables", "state", "minutes", "error"], [[*row.values()] for row in rows], text=3)


def show(folder: Path, names: Sequence[str], as_json: bool) -> None:
    """Write the Markdown page of each comparison from its stored results, and print the tables."""
    from analysis.reproduce import results
    from analysis.reproduce.comparisons import COMPARISONS
    from bgt_core.files import write_text
    from bgt_core.tables import show

    stored = {name: results.stored(folder, name) for name in names}
    for name, records in stored.items():
        write_text(folder / f"{name}.md", results.page(name, records))
        print(f"{folder / name}.md: {results.verdicts(records)}", file=sys.stderr, flush=True)
    if as_json:
        print(json.dumps({"schema": "bgt-reproduce/1", "tables": stored}, indent=2, ensure_ascii=False))
        return
    between = ""
    for name, records in stored.items():
        for table in (results.scores(COMPARISONS[name], records), results.claims(records)):
            if table.rows:
                print(end=between)
                show(table.columns, table.lines())
                between = "\n"


def main() -> None:
    """Run the command `python -m analysis.reproduce`."""
    run(app, "reproduce")


if __name__ == "__main__":
    main()
