"""`bgt-probe`: parse, check, call, print.

The table goes to stdout, progress to stderr. Exit codes as in `bgt`: 0 done, 1 internal error, 2 usage,
3 something needed is absent, 4 invalid data or checkpoint.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.errors import BadInput
from bgt_core.tables import show
from probes.tasks import TASKS, find

if TYPE_CHECKING:
    from probes.result import ProbeResult

app = typer.Typer(add_completion=True, pretty_exceptions_enable=False)


def main() -> None:
    """The `bgt-probe` command."""
    try:
        app()
    except BrokenPipeError:  # the reader left, as `head` does
        sys.stderr.close()
        sys.exit(0)


@app.command()
def command(
    lang: Annotated[str | None, typer.Option(help="Language of the sentences.")] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(help="Several allowed, also as a,b; without it, all that sentences alone can tell."),
    ] = None,
    latent: Annotated[str, typer.Option(help="Latents to probe.")] = "semantic,language",
    model: Annotated[
        Path, typer.Option(help="A checkpoint or run folder.", show_default="the model that ships")
    ] = PRETRAINED,
    data: Annotated[
        Path | None,
        typer.Option(help="Sentences: text, one a line, or TSV (.gz .xz .zst).", show_default="a built-in grammar"),
    ] = None,
    column: Annotated[int | None, typer.Option(help="The column of a TSV, from 1.")] = None,
    max_items: Annotated[int, typer.Option(help="Items a task uses at most.")] = 10_000,
    seeds: Annotated[int, typer.Option(help="Probes trained, 1 to 10; each tests on its own tenth of the items.")] = 5,
    seed: Annotated[int, typer.Option(help="Of sentences, swaps and splits.")] = 0,
    ci: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    baselines: Annotated[bool, typer.Option("--baselines/--no-baselines", help="Show what a probe must beat.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Also write the rows to this file.")] = None,
    list_tasks: Annotated[bool, typer.Option("--list-tasks", help="Print the tasks and stop.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
) -> None:
    """Probe what a latent knows of a sentence: test accuracy with its interval, beside baselines."""
    try:
        if list_tasks:
            print_tasks()
            return
        if lang is None:
            raise BadInput("Say which language to probe, as in: bgt-probe --lang fr --task gender", 2)
        tasks = chosen(lang, task)
        if csv_file and not csv_file.absolute().parent.is_dir():
            raise BadInput(f"--csv {csv_file}: there is no folder {csv_file.parent}.", 2)
        if column is not None and data is None:
            raise BadInput("--column says which column of --data to read; give --data too.", 2)

        from bgt_core.cli.options import load
        from probes.build import read_sentences
        from probes.run import run_probe

        sentences = None if data is None else read_sentences(data, column)
        bgt = load(model, device)
        results = [
            run_probe(
                bgt,
                name,
                lang,
                sentences,
                latents=latent.split(","),
                max_items=max_items,
                seeds=seeds,
                seed=seed,
                ci=ci,
                baselines=baselines,
                report=lambda line: print(line, file=sys.stderr, flush=True),
            )
            for name in tasks
        ]
        if csv_file:
            write_csv(results, csv_file)
        if as_json:
            source = str(data) if data else "built-in grammar"
            head = {"schema": "bgt-probe/1", "model": str(model), "data": source}
            print(json.dumps(head | {"results": [result.as_dict() for result in results]}, indent=2))
        else:
            print_results(results)
    except BadInput as error:
        print(f"bgt-probe: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from None


def chosen(lang: str, names: Sequence[str] | None) -> list[str]:
    """The tasks asked for, each once, all defined in `lang`; BadInput otherwise."""
    if not names:
        return [task.name for task in TASKS.values() if "text" in task.builds and lang in (task.langs or (lang,))]
    found = [find(name.strip()) for part in names for name in part.split(",")]
    for task in found:
        task.check(lang)
    return list(dict.fromkeys(task.name for task in found))


def print_tasks() -> None:
    show(["task", "languages", "question"], [[t.name, ", ".join(t.langs) or "any", t.about] for t in TASKS.values()])


def print_results(results: Sequence[ProbeResult]) -> None:
    level = f"{100 * results[0].ci:g}% CI"
    rows = [
        [
            row.task,
            row.lang,
            row.latent,
            *map(str, (row.n_train, row.n_test, row.classes)),
            f"{100 * row.accuracy:.1f}",
            f"{100 * row.ci_low:.1f}-{100 * row.ci_high:.1f}",
            f"{100 * row.sd:.1f}",
            row.note,
        ]
        for result in results
        for row in result.rows
    ]
    show(["task", "lang", "latent", "train", "test", "classes", "accuracy", level, "sd", "note"], rows)
    gaps = [result.difference for result in results if result.difference]
    if gaps:
        print()
        rows = [
            [
                gap.task,
                gap.lang,
                f"{gap.first} - {gap.second}",
                f"{gap.points:+.1f}",
                f"{gap.ci_low:+.1f} to {gap.ci_high:+.1f}",
                f"{gap.mcnemar_p:.2g}",
            ]
            for gap in gaps
        ]
        show(["task", "lang", "difference", "points", level, "McNemar p"], rows)


def write_csv(results: Sequence[ProbeResult], file: Path) -> None:
    """One line a row; written under another name, then renamed: the file is whole or not there."""
    partial = file.with_name(file.name + ".partial")
    rows = [row for result in results for row in result.as_dict()["rows"]]
    with partial.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    partial.replace(file)
