"""From the request for a run to a recipe: settings, columns, a teacher; and OUT/run.json, which `resume` reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bgt_core import checkpoint, recipes
from bgt_core.data.columns import Source, parse_columns, parse_source
from bgt_core.data.store import read_targets
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.files import read_json, write_json
from bgt_core.recipes import Recipe

SETTINGS = "run.json"
CHANGEABLE = ("train.", "objective.")  # settings that may change during a run
FIXED = ("train.seed", "train.table_l2")  # except for these, which earlier updates depend on
WIDTH, WEIGHT = "model.teacher_dim", "objective.distillation.weight"

Teacher = Sequence[str | Path | None]  # one .npy for each data file; None for a file without vectors
Report = Callable[[dict[str, Any]], None]  # gets each row of metrics


def silent(row: dict[str, Any]) -> None:
    """Reports nothing."""


def sources_of(recipe: Recipe, data: Sequence[str | Path | Source], teacher: Teacher = ()) -> list[Source]:
    """The files of a run with the columns of each, and the vectors of its rows; UsageError if their numbers differ."""
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
    """Raise UsageError for a recipe that needs vectors without any."""
    if (weight := recipe.arguments.get(WEIGHT, 0.0)) and not any(targets):
        raise UsageError(
            f"is missing: {WEIGHT} is {weight:g}; give vectors to learn from, or set it to 0", parameter="teacher"
        )


def check_targets(recipe: Recipe, sources: Sequence[Source]) -> None:
    """Raise UsageError for vectors that the recipe does not use, or for a recipe that needs vectors without any;
    DataError for vectors of another width."""
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


@dataclass(frozen=True)
class RunSettings:
    """The recipe of a run, and later changes of settings: [{"step": 400, "overrides": {...}}]."""

    recipe: str
    arguments: Mapping[str, Any]
    changes: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, out: Path) -> RunSettings:
        """Read a run. NotFound if it is absent, DataError for a file that is damaged or not of a recipe."""
        path = out / SETTINGS
        if not path.is_file():
            raise NotFound(f"{out}: has no {SETTINGS}, so there is no run to resume. Start it without resume.")
        try:
            settings = read_json(path)
            arguments, changes = settings["arguments"], settings.get("changes", [])
            for change in changes:
                if not isinstance(change["step"], int) or not isinstance(change["overrides"], dict):
                    raise TypeError("changes")
            return cls(str(settings["recipe"]), dict(arguments), list(changes))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"{path}: damaged ({error}). Start a new run.") from None

    def until(self, step: float = math.inf) -> dict[str, Any]:
        """The settings that led to the checkpoint after `step` updates; without it, the current ones."""
        changes = [change["overrides"] for change in self.changes if change["step"] < step]
        return {**self.arguments, **{name: value for change in changes for name, value in change.items()}}

    def build(self, out: Path) -> Recipe:
        """The recipe with the current settings; DataError if they are invalid."""
        try:
            return recipes.build(self.recipe, self.until())
        except UsageError as error:
            raise DataError(f"{out / SETTINGS}: {error}") from None

    def changed_by(self, overrides: Mapping[str, Any]) -> tuple[Recipe, dict[str, Any]]:
        """The recipe with these overrides, and the settings that they change, named in full; UsageError for those that
        can't change during a run."""
        before = recipes.build(self.recipe, self.until()).arguments
        recipe = recipes.build(self.recipe, {**self.until(), **overrides})
        changed = {name: value for name, value in recipe.arguments.items() if before.get(name) != value}
        for name in changed:
            if not name.startswith(CHANGEABLE) or name in FIXED:
                raise UsageError(f"{name} can't change during a run; settings of train and objective can.")
        return recipe, changed

    def check(self, config: Mapping[str, Any], out: Path) -> None:
        """Raise DataError if a checkpoint of the run, its `config`, was trained with other settings: they can only be
        changed when the run is resumed."""
        expected = {"recipe": self.recipe, **self.until(config["step"])}
        trained = {"recipe": config["recipe"], **config["arguments"]}
        for name in expected.keys() & trained.keys():
            if expected[name] != trained[name]:
                raise DataError(
                    f"{out / SETTINGS}: {name} is {expected[name]!r}, but the run was trained with {trained[name]!r}. "
                    f"Restore that value, or change it by `bgt train --resume --set {name}=...`, if it may change."
                )


def change(out: Path, changed: Mapping[str, Any]) -> None:
    """Change settings of the run in `out` from its newest checkpoint on."""
    document, saved = read_json(out / SETTINGS), checkpoint.steps_of(out)
    step = int(saved[-1].name[5:]) if saved else 0
    document["changes"] = [*document.get("changes", []), {"step": step, "overrides": changed}]
    write_json(out / SETTINGS, document)


def rewind(out: Path, step: int) -> None:
    """Let later changes of settings begin at `step`, where the run continues."""
    document = read_json(out / SETTINGS)
    for later in document.get("changes", []):
        later["step"] = min(later["step"], step)
    write_json(out / SETTINGS, document)


def write_settings(recipe: Recipe, sources: Sequence[Source], out: Path) -> None:
    """Write the file that makes a folder a run; it comes last."""
    settings: dict[str, object] = {"recipe": recipe.name, "arguments": recipe.arguments}
    settings["data"] = list(map(str, sources))
    if any(source.targets for source in sources):
        settings["teacher"] = [str(source.targets) if source.targets else None for source in sources]
    write_json(out / SETTINGS, settings)
