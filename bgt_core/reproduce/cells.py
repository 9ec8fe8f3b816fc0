"""A cell: one training of one system, named by a hash of all that decides it."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bgt_core import recipes
from bgt_core.recipes import RECIPES, Recipe
from bgt_core.reproduce.experiments import System

SHORT = 10  # hex digits of a hash in a name


@dataclass(frozen=True)
class Cell:
    """`overrides` are those arguments of the recipe that differ from its defaults: two systems that say the same in
    other words are one cell."""

    recipe: str
    overrides: Mapping[str, Any]
    langs: tuple[str, str]
    seed: int
    data: str  # SHA-256 of what it is trained and measured on
    says: str  # the overrides that are neither usual for the recipe nor for the scale, for people
    left_out: tuple[str, ...] = ()  # arguments of the scale that the recipe does not have

    @cached_property
    def key(self) -> str:
        """SHA-256 of recipe, overrides, languages, seed and data."""
        parts = [self.recipe, dict(self.overrides), list(self.langs), self.seed, self.data]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def name(self) -> str:
        """Of its folder."""
        words = [self.recipe, *([self.says] if self.says else []), "-".join(self.langs), f"seed{self.seed}"]
        return "_".join([*words, self.key[:SHORT]])

    def build(self) -> Recipe:
        """Its recipe; BgtError where there is none of that name, or it can't have these arguments."""
        return recipes.build(self.recipe, {**self.overrides, "langs": list(self.langs), "seed": self.seed})


def cell_of(system: System, scale: Mapping[str, object], own: Mapping[str, object], seed: int, data: str) -> Cell:
    """The training of a system on that data, at a scale: what it sets for every recipe that has such an argument, and
    for this one. An unknown recipe is said when the cell is built."""
    defaults = defaults_of(system.recipe)
    left_out = tuple(name for name in scale if defaults and name not in defaults)
    usual = {**defaults, **scale, **own}
    given = {**scale, **own, **system.overrides}
    overrides = {
        name: plain(value)
        for name, value in given.items()
        if name not in left_out and (name not in defaults or plain(value) != defaults[name])
    }
    unusual = {
        name: value for name, value in overrides.items() if name in system.overrides and value != plain(usual.get(name))
    }
    says = "-".join(f"{name}-{word(value)}" for name, value in sorted(unusual.items()))
    return Cell(system.recipe, overrides, system.langs, seed, data, says, left_out)


def defaults_of(recipe: str) -> dict[str, Any]:
    """Of its arguments, as JSON reads them; none of an unknown recipe."""
    if recipe not in RECIPES:
        return {}
    return {name: plain(known.default) for name, known in inspect.signature(RECIPES[recipe]).parameters.items()}


def changed(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Arguments that both know and that differ: ("dropout=0.3, now 0.1", ...). A new one does as if it had not been."""
    both = [name for name in now if name in then]
    return [f"{name}={then[name]}, now {plain(now[name])}" for name in both if plain(then[name]) != plain(now[name])]


def plain(value: object) -> Any:
    """As JSON gives it back."""
    return list(value) if isinstance(value, tuple) else value


def word(value: object) -> str:
    """A value as part of a file's name."""
    text = "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return re.sub(r"[^\w.+]", "-", text)
