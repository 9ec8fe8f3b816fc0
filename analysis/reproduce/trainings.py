"""A training of one system, named by a hash of everything that decides its outcome."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from analysis.reproduce.experiments import ExperimentSpec
from bgt_core import recipes
from bgt_core.recipes import RECIPES, Recipe

SHORT = 10  # hex digits of a hash in a name


@dataclass(frozen=True)
class Training:
    """`overrides` are the arguments of the recipe that differ from its defaults, so that two specifications of the same
    thing are one training."""

    recipe: str
    overrides: Mapping[str, Any]
    langs: tuple[str, ...]
    seed: int
    data: str  # SHA-256 of what it is trained and measured on
    variant: str  # for people: the overrides that neither the recipe nor the scale sets so
    left_out: tuple[str, ...] = ()  # arguments of the scale that the recipe does not have
    first: Training | None = None  # that it starts from, as a second stage does

    @cached_property
    def key(self) -> str:
        """SHA-256 of recipe, overrides, languages, seed and data, and of what it starts from."""
        parts = [self.recipe, dict(self.overrides), list(self.langs), self.seed, self.data]
        parts += [self.first.key] if self.first else []
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def name(self) -> str:
        """Name of its folder."""
        langs = "-".join(dict.fromkeys(column.rpartition(":")[2] for column in self.langs))  # en for a:en and b:en
        words = [self.recipe, *([self.variant] if self.variant else []), langs, f"seed{self.seed}"]
        return "_".join([*words, self.key[:SHORT]])

    def build(self, init_from: str = "") -> Recipe:
        """Its recipe; `init_from` is the folder of what it starts from.

        Raises UsageError for an unknown recipe, or one that can't have these arguments.
        """
        given = {**self.overrides, "data.columns": list(self.langs), "train.seed": self.seed}
        return recipes.build(self.recipe, given | ({"init_from": init_from} if init_from else {}))


def training_of(
    system: ExperimentSpec,
    scale: Mapping[str, object],
    own: Mapping[str, object],
    seed: int,
    data: str,
    first: Training | None = None,
) -> Training:
    """The training of a system on that data at a scale: `scale` is set for every recipe that has such an argument,
    `own` for this recipe. An unknown recipe is reported when the training is built."""
    defaults = recipe_defaults(system.recipe)
    left_out = tuple(name for name in scale if defaults and name not in defaults)
    usual = {**defaults, **scale, **own}
    given = {**scale, **own, **system.overrides}
    overrides = {
        name: as_json(value)
        for name, value in given.items()
        if name not in left_out and (name not in defaults or as_json(value) != defaults[name])
    }
    unusual = {
        name: value
        for name, value in overrides.items()
        if name in system.overrides and value != as_json(usual.get(name))
    }
    words = [f"{name.rpartition('.')[2]}-{file_word(value)}" for name, value in sorted(unusual.items())]
    if first:
        words.append(f"on-{first.recipe}")
    if system.selection:
        words.append(file_word(str(system.selection)))
    variant = "-".join(words)
    return Training(system.recipe, overrides, system.langs, seed, data, variant, left_out, first)


def recipe_defaults(recipe: str) -> dict[str, Any]:
    """Defaults of the recipe's arguments, as JSON reads them; empty for an unknown recipe."""
    if recipe not in RECIPES:
        return {}
    return {name: as_json(value) for name, value in (recipes.build(recipe, {}).arguments or {}).items()}


def changed_arguments(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Settings known to both that differ: ("train.seed=3, now 1", ...). One that is new changes nothing, nor does where
    the weights lay that it starts from: a training's name says whose they are."""
    shared = [name for name in now if name in then and name != "init_from"]
    return [
        f"{name}={then[name]}, now {as_json(now[name])}" for name in shared if as_json(then[name]) != as_json(now[name])
    ]


def as_json(value: object) -> Any:
    """The value as JSON gives it back."""
    return list(value) if isinstance(value, tuple) else value


def file_word(value: object) -> str:
    """A value as part of a file's name."""
    text = "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return re.sub(r"[^\w.+]", "-", text)
