"""`bgt evaluate TASK`: a command for each evaluation task, with options for the task's settings and general options."""

from __future__ import annotations

import inspect
import json
import sys
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer import Argument, Option
from typer.core import TyperGroup

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.cli.errors import Command
from bgt_core.cli.options import check_folder, open_models

if TYPE_CHECKING:
    from bgt_core.evaluation.task import Task


class Tasks(TyperGroup):
    """One command for each evaluation task of this package and of installed plugins; a task is imported when needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        from bgt_core.evaluation.task import task_names

        return task_names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        from bgt_core.evaluation.task import find_task

        return task_command(cmd_name, find_task(cmd_name))


app = typer.Typer(cls=Tasks, no_args_is_help=True)


@app.callback()
def about() -> None:
    """Evaluate one or more encoders on a task: similarity, duplicates, retrieval, syntax, fidelity and more.

    Scores have confidence intervals, and differences between encoders have p-values.
    """


def run(
    task: Any,  # an instance of `Task`
    data: list[Path] | None,
    model: options.EncodersOption = None,
    distance: options.DistanceOption = None,
    resamples: options.ResamplesOption = 2_000,
    seed: options.SeedOption = 0,
    out: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Output file: .parquet or .csv for the scores, .md or .tex for tables of scores and differences, "
            ".json for everything.",
        ),
    ] = None,
    as_json: options.JsonOption = False,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
) -> None:
    """Load the data and the encoders, evaluate the encoders, and print and store the result."""
    from bgt_core.evaluation.comparison import check_bootstrap, check_ending
    from bgt_core.evaluation.task import evaluate
    from bgt_core.tables import LEGEND, show

    check_bootstrap(resamples)
    if out:
        check_folder(out)
        check_ending(out)
    items = task.load(data or [], seed=seed)
    encoders = open_models(
        model or [str(PRETRAINED)], device, precision, distance or (), own_probability=task.own_probability
    )
    result = replace(
        evaluate(task, encoders, items, resamples=resamples, seed=seed), source=", ".join(map(str, data or ()))
    )
    if out:
        result.save(out)
    for line in (*result.warnings, result.about, *([LEGEND] if result.differences else [])):
        print(line, file=sys.stderr)
    if as_json:
        print(json.dumps(result.as_dict(), indent=2, ensure_ascii=False))
    else:
        table = result.table()
        texts = next((number for number, value in enumerate(table.rows[0]) if not isinstance(value, str)), 1)
        show(table.columns, table.lines(), text=texts)


def task_command(name: str, task: type[Task[Any]]) -> Any:
    """Return a task's command, with the options of `run` and an option for each field of the task with a help text."""
    hints = get_type_hints(task, include_extras=True)
    settings = [each for each in fields(task) if get_origin(hints[each.name]) is Annotated]  # type: ignore[arg-type]
    parameters = list(inspect.signature(run, eval_str=True).parameters.values())[2:]
    own = []
    if task.data:
        argument = Argument(metavar="DATA...", help=task.data, show_default=False)
        own.append(parameters[0].replace(name="data", annotation=Annotated[list[Path] | None, argument], default=None))
    for each in settings:
        kind, text, *_ = get_args(hints[each.name])
        shown = each.default is not MISSING and each.default is not None
        option = Option(f"--{each.name.replace('_', '-')}", help=text, show_default=shown)
        default = inspect.Parameter.empty if each.default is MISSING else each.default
        own.append(parameters[0].replace(name=each.name, annotation=Annotated[kind, option], default=default))
    parameters = [each.replace(kind=each.KEYWORD_ONLY) for each in (*own, *parameters)]

    def command(**values: Any) -> None:
        chosen = {each.name: values.pop(each.name) for each in settings}
        run(task(**chosen), values.pop("data", None), **values)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__doc__ = inspect.getdoc(task)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, cls=Command)(command)
    return typer.main.get_command(alone)
