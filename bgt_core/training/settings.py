"""Read and write OUT/run.json, the settings of a run, and pair the data files of a run with columns and vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bgt_core import recipes
from bgt_core.data.columns import Source, parse_columns, parse_source
from bgt_core.data.store import read_targets
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.files import read_json, write_json
from bgt_core.recipes import Recipe

SETTINGS = "run.json"
WIDTH, WEIGHT = "model.teacher_dim", "objective.distillation.weight"

Teacher = Sequence[str | Path | None]  # one .npy for each data file; None for a file without vectors
Report = Callable[[dict[str, Any]], None]  # gets each row of metrics


def silent(row: dict[str, Any]) -> None:
    """Report nothing."""


def sources_of(recipe: Recipe, data: Sequence[str | Path | Source], teacher: Teacher = ()) -> list[Source]:
    """Return the data files of a run, each with its columns and vectors; UsageError unless all or none have vectors."""
    names = tuple(parse_columns(recipe.data.columns))
    sources = [source if isinstance(source, Source) else parse_source(str(source), names) for source in data]
    if not teacher:
        return sources
    if len(teacher) != len(sources):
        files = f"{len(teacher)} files of vectors for {len(sources)} of data"
        raise UsageError(f"has {files}; give one for each, in the same order, or none", parameter="teacher")
    targets = [None if path is None else Path(path) for path in teacher]
    return [replace(source, targets=path) for source, path in zip(sources, targets, strict=True)]


def check_taught(recipe: Recipe, targets: Iterable[object]) -> None:
    """Raise UsageError for a recipe that needs a teacher's vectors if there are none."""
    if (weight := recipe.arguments.get(WEIGHT, 0.0)) and not any(targets):
        raise UsageError(
            f"is missing: {WEIGHT} is {weight:g}; give vectors to learn from, or set it to 0", parameter="teacher"
        )


def check_targets(recipe: Recipe, sources: Sequence[Source]) -> None:
    """Raise UsageError for vectors that the recipe does not use, or if it needs vectors and there are none; DataError
    for vectors of another width."""
    paths = [source.targets for source in sources if source.targets is not None]
    width, weight = recipe.arguments.get(WIDTH, 0), recipe.arguments.get(WEIGHT, 0.0)
    check_taught(recipe, paths)
    for path in paths:
        units = read_targets(path).shape[1]
        if not (width and weight):
            needs = f"{WIDTH}={units} and {WEIGHT} above 0"
            text = f"{path}: '{recipe.name}' can't learn from vectors with these settings; it needs {needs}"
            raise UsageError(text, parameter="teacher")
        if units != width:
            raise DataError(f"{path}: vectors have {units} numbers, but {WIDTH} is {width}")


def write_settings(recipe: Recipe, sources: Sequence[Source], out: Path) -> None:
    """Write the file that makes a folder a run, after all others."""
    settings: dict[str, object] = {"recipe": recipe.name, "arguments": recipe.arguments}
    settings["data"] = list(map(str, sources))
    if any(source.targets for source in sources):
        settings["teacher"] = [str(source.targets) if source.targets else None for source in sources]
    write_json(out / SETTINGS, settings)


def read_settings(out: Path) -> tuple[Recipe, dict[str, Any]]:
    """Read the recipe of a run, and the whole file; NotFound if it is absent, DataError if it is damaged or invalid."""
    path = out / SETTINGS
    if not path.is_file():
        raise NotFound(f"{out}: has no {SETTINGS}, so there is no run to resume. Start it without resume.")
    try:
        document = read_json(path)
    except DataError as error:
        raise DataError(f"{path}: damaged ({error}). Start a new run.") from None
    kinds = {"recipe": str, "arguments": dict, "data": list}
    if not isinstance(document, dict) or not all(isinstance(document.get(key), kind) for key, kind in kinds.items()):
        raise DataError(f"{path}: damaged: it needs {', '.join(kinds)}. Start a new run.")
    try:
        return recipes.build(document["recipe"], document["arguments"]), document
    except UsageError as error:
        raise DataError(f"{path}: {error}") from None


def changed_by(recipe: Recipe, overrides: Mapping[str, Any]) -> Recipe:
    """Return the recipe of a run with new settings; UsageError for settings that can't change during a run."""
    changed = recipes.build(recipe.name, {**recipe.arguments, **overrides})
    if fixed := differing(recipe.arguments, changed.arguments):
        raise UsageError(f"{fixed} can't change during a run; settings of train and objective can.")
    return changed


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Find the first setting that differs, but can't change during a run, as earlier updates depend on it; or ""."""
    for name in one:
        changes = name.startswith(("train.", "objective.")) and name != "train.seed"
        if not changes and name in other and one[name] != other[name]:
            return name
    return ""
