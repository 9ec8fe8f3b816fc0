"""The interface of evaluation tasks; the function `evaluate`, which runs a task; and functions that tasks share."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.textfile import column_hint, text_lines
from bgt_core.errors import DataError, UsageError, did_you_mean
from bgt_core.evaluation.comparison import Result, Statistic, check_bootstrap, compare

ENTRY_POINTS = "bgt.evaluations"  # entry-point group by which packages add tasks: NAME = "MODULE:CLASS"

Lang = Annotated[str, "Language of the sentences."]
Langs = Annotated[str, "Languages of the columns, as in en,fr."]
Latent = Annotated[str | None, "Latent to evaluate: semantic, language, or another; by default each latent of a model."]
BeamSize = Annotated[int, "Beam size; 1 is greedy search."]
Rerank = Annotated[bool, "Embed every text of the beam, and rank the texts as `bgt generate` does (with a beam of 8)."]

Item = TypeVar("Item")
Items = TypeVar("Items")


class Task(Protocol[Items]):
    """The base class of evaluation tasks. A task is a frozen dataclass, whose fields are its settings.

    A field that is `Annotated[type, "help"]` is an option of `bgt evaluate NAME`. The first line of the docstring is
    the task's entry in the list of tasks, and the whole docstring is its `--help`.
    """

    data: ClassVar[str] = ""  # help text of the argument DATA; empty if the task takes no files
    across: ClassVar[str] = "system"  # columns of the table: "system", or a field of the scores' keys
    own_probability: ClassVar[bool] = False  # whether a duplicate classifier's probability replaces the cosine

    def load(self, paths: Sequence[Path], *, seed: int) -> Items:
        """Read the test items from files, or make built-in items if `paths` is empty; `seed` seeds random draws."""

    def statistic(self, items: Items, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Measure the encoders; return scores as functions of how often the bootstrap draws each test item."""


def evaluate(
    task: Task[Any] | str,
    encoders: SentenceEncoder | Mapping[str, SentenceEncoder],
    data: Any = None,
    *,
    resamples: int = 2_000,
    level: float = 0.95,
    seed: int = 0,
    compared: Sequence[str] | None = None,
) -> Result:
    """Score encoders side by side on one task, with intervals and tests of their differences.

        result = evaluate("sts", {"mine": bgt_core.load("runs/mine"), "shipped": bgt_core.load()}, "data/sts")

    Args:
        task: A task with its settings, as `Sts(sets="2012")`, or the name of a task whose settings all have defaults.
        encoders: One encoder, or several by name. Each latent of an encoder is one system.
        data: A file or folder, or items from `task.load`; None for the task's built-in items.
        resamples: Number of bootstrap resamples.
        level: Confidence level of the intervals.
        seed: Seed of the resamples, and of the task's random draws.
        compared: Names of the systems whose differences are tested. By default, the task selects them; most tasks
            select all systems.

    Returns:
        All scores, and the differences between systems.

    Raises:
        UsageError: A setting is out of range, two systems have the same name, or an encoder lacks a latent or language.
        NotFound: A file or library is missing.
        DataError: A file is damaged, or vectors are not finite numbers.
    """
    check_bootstrap(resamples, level)
    task = find_task(task)() if isinstance(task, str) else task
    paths = [] if data is None else [Path(data)] if isinstance(data, str | Path) else None
    items = data if paths is None else task.load(paths, seed=seed)
    named = encoders if isinstance(encoders, Mapping) else {"model": encoders}
    statistic = task.statistic(items, named, seed=seed)
    if compared is not None:
        statistic = replace(statistic, compared=compared)
    result = compare(statistic, resamples=resamples, level=level, seed=seed)
    settings = {each.name: getattr(task, each.name) for each in fields(task)}  # type: ignore[arg-type]
    settings = json.loads(json.dumps(settings, default=str))  # converts paths to strings
    source = ", ".join(map(str, paths or ()))
    package, _, module = type(task).__module__.rpartition(".")
    name = module.replace("_", "-") if package == "bgt_core.evaluation.tasks" else type(task).__name__
    return replace(result, models=named, task=name, settings=settings, across=task.across, source=source)


def task_names() -> list[str]:
    """List the names of all tasks: modules of `bgt_core.evaluation.tasks`, and entry points of installed packages."""
    from bgt_core.evaluation import tasks

    own = [module.name.replace("_", "-") for module in iter_modules(tasks.__path__)]
    return [*own, *(point.name for point in entry_points(group=ENTRY_POINTS))]


def find_task(name: str) -> type[Task[Any]]:
    """Import the task with this name. Raises UsageError if no task or two tasks have the name."""
    names = task_names()
    if names.count(name) != 1:
        problem = "no such task" if name not in names else "two packages have a task with this name"
        text = f"{name}: {problem}; choose from {', '.join(names)}.{did_you_mean(name, names)}"
        raise UsageError(text, parameter="task")
    for point in entry_points(group=ENTRY_POINTS, name=name):
        return point.load()
    return import_module(f"bgt_core.evaluation.tasks.{name.replace('-', '_')}").TASK


def one_path(paths: Sequence[Path], what: str) -> Path:
    """Return the only path. UsageError for no path or several; its message names the expected file, `what`."""
    if len(paths) != 1:
        raise UsageError(f"must be {what} (got {len(paths)} paths).", parameter="data")
    return paths[0]


def tsv_rows(path: Path, names: Sequence[str], at: Sequence[int] | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the fields of each line of a TSV (.gz, .xz, .zst or plain) without header and quotes.

    `names` are the names of the columns, for messages. `at` are the indices of the fields to yield. By default all
    fields are yielded, and each line must have as many fields as there are names. Raises DataError, with file and line,
    if a line has the wrong number of fields.
    """
    width = len(names) if at is None else max(at) + 1
    for number, line in text_lines(path):
        fields = line.split("\t")
        if len(fields) < width or (at is None and len(fields) > width):
            count = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            hint = column_hint(line, len(names))
            raise DataError(f"{path}:{number}: {count}, expected {width}: {', '.join(names)}{hint}.")
        yield number, fields if at is None else [fields[column] for column in at]


def read_lengths(text: str) -> tuple[int, int]:
    """Parse the minimum and maximum number of words, as in 1-29; UsageError if the text has another form."""
    if not (lengths := re.fullmatch(r"(\d+)-(\d+)", text)):
        raise UsageError(f"{text}: expected the minimum and maximum number of words, as in 1-29.", parameter="lengths")
    return int(lengths[1]), int(lengths[2])


def evenly(items: Sequence[Item], limit: int) -> list[Item]:
    """Select at most `limit` evenly spaced items."""
    count = min(limit, len(items))
    return [items[row * len(items) // count] for row in range(count)]
