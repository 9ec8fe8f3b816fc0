"""OUT/run.json: what a run was asked for, and what was changed when it was resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bgt_core import recipes
from bgt_core.data.columns import Source
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.files import read_json, write_json
from bgt_core.recipes import Recipe

SETTINGS = "run.json"
CHANGEABLE = ("train.", "objective.")  # settings that may change while a run goes on
FIXED = ("train.seed", "train.table_l2")  # but for these, which decide what came before


@dataclass(frozen=True)
class RunSettings:
    """The recipe of a run, and what was changed after some updates: [{"step": 400, "overrides": {...}}]."""

    recipe: str
    arguments: Mapping[str, Any]
    changes: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, out: Path) -> RunSettings:
        """NotFound where there is no run, DataError for a file that is damaged or of no recipe."""
        path = out / SETTINGS
        if not path.is_file():
            raise NotFound(f"{out}: nothing to resume: no {SETTINGS}. Start the run without resume.")
        try:
            settings = read_json(path)
            arguments, changes = settings["arguments"], settings.get("changes", [])
            for change in changes:
                if not isinstance(change["step"], int) or not isinstance(change["overrides"], dict):
                    raise TypeError("changes")
            return cls(str(settings["recipe"]), dict(arguments), list(changes))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"{path}: damaged ({error}). Start a new run.") from None

    def until(self, step: int) -> dict[str, Any]:
        """The settings that led to the checkpoint after `step` updates."""
        changes = [change["overrides"] for change in self.changes if change["step"] < step]
        return {**self.arguments, **{name: value for change in changes for name, value in change.items()}}

    @property
    def newest(self) -> dict[str, Any]:
        """The settings that training goes on with."""
        changes = (change["overrides"] for change in self.changes)
        return {**self.arguments, **{name: value for change in changes for name, value in change.items()}}

    def build(self, out: Path) -> Recipe:
        """The recipe as it is now; DataError where the settings make none."""
        try:
            return recipes.build(self.recipe, self.newest)
        except UsageError as error:
            raise DataError(f"{out / SETTINGS}: {error}") from None

    def check(self, config: Mapping[str, Any], out: Path) -> None:
        """DataError where a checkpoint of the run, its `config`, was trained with other settings: who wants others says
        so when the run is resumed."""
        expected = {"recipe": self.recipe, **self.until(config["step"])}
        trained = {"recipe": config["recipe"], **config["arguments"]}
        for name in expected.keys() & trained.keys():
            if expected[name] != trained[name]:
                raise DataError(
                    f"{out / SETTINGS}: {name} is {expected[name]!r}, but the run was trained with {trained[name]!r}. "
                    f"Put that back; `bgt train --resume --set {name}=...` changes what may be changed."
                )


def change(out: Path, step: int, overrides: Mapping[str, Any]) -> None:
    """From `step` updates on, the run in `out` has these settings, named in full or by their ends.

    UsageError for what can't change in the middle of a run.
    """
    settings = RunSettings.read(out)
    before = dict(recipes.build(settings.recipe, settings.newest).arguments or {})
    after = dict(recipes.build(settings.recipe, {**settings.newest, **overrides}).arguments or {})
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    for name in changed:
        if not name.startswith(CHANGEABLE) or name in FIXED:
            raise UsageError(f"{name} can't change in the middle of a run; settings of train and objective can.")
    if changed:
        document = read_json(out / SETTINGS)
        document["changes"] = [*settings.changes, {"step": step, "overrides": changed}]
        write_json(out / SETTINGS, document)


def write_settings(recipe: Recipe, sources: Sequence[Source], out: Path) -> None:
    """What makes a folder a run; written last."""
    settings: dict[str, object] = {"recipe": recipe.name, "arguments": dict(recipe.arguments or {})}
    settings["data"] = list(map(str, sources))
    if any(source.targets for source in sources):
        settings["teacher"] = [str(source.targets) if source.targets else None for source in sources]
    write_json(out / SETTINGS, settings)
