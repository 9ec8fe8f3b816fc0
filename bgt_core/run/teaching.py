"""Vectors of an outside encoder that a run learns from: which rows have them, and what recipe takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bgt_core.data.columns import Source
from bgt_core.data.targets import read_targets
from bgt_core.errors import DataError, UsageError
from bgt_core.objectives.combine import Sum
from bgt_core.objectives.distillation import Distillation
from bgt_core.recipes import RECIPES, Recipe

WIDTH, WEIGHT = "model.teacher_dim", "objective.distillation.weight"
TAUGHT = "bgt, bgt-plus, bgt-small and bgt-bound"

Teacher = Sequence[str | Path | None]  # one .npy for each file of data; None for one without


def settings_for(recipe: str, teacher: Teacher) -> dict[str, Any]:
    """What a recipe of that name is set to, unless told otherwise, so that it learns from these vectors."""
    paths = [Path(path) for path in teacher if path is not None]
    if not paths or recipe not in RECIPES:  # an unknown one is refused by who builds it
        return {}
    if not hasattr(RECIPES[recipe]().model, "teacher_dim"):
        raise UsageError(f"{paths[0]}: recipe '{recipe}' learns from no vectors; {TAUGHT} do", parameter="teacher")
    return {WIDTH: read_targets(paths[0]).shape[1], WEIGHT: Distillation.weight}


def with_targets(sources: Sequence[Source], teacher: Teacher) -> list[Source]:
    """Each source with the vectors of its rows; UsageError where their numbers differ."""
    if not teacher:
        return [*sources]
    if len(teacher) != len(sources):
        files = f"{len(teacher)} files of vectors for {len(sources)} of data"
        raise UsageError(f"teacher: {files}; give each its own, in their order, or none: --teacher none")
    return [
        replace(source, targets=None if path is None else Path(path))
        for source, path in zip(sources, teacher, strict=True)
    ]


def check_targets(recipe: Recipe, sources: Sequence[Source]) -> None:
    """Raises UsageError for vectors that the recipe does not learn from and for a recipe that learns from vectors where
    there are none, DataError for vectors of another width than its."""
    paths = [source.targets for source in sources if source.targets is not None]
    width: int = getattr(recipe.model, "teacher_dim", 0)
    distillation = recipe.objective.distillation if isinstance(recipe.objective, Sum) else None
    weight = distillation.weight if distillation else 0.0
    if weight and not paths:
        raise UsageError(f"{WEIGHT} {weight:g}: no vectors to learn from; give them, as --teacher vectors.npy")
    for path in paths:
        units = read_targets(path).shape[1]
        if not (width and weight):
            needs = f"{WIDTH}={units} and {WEIGHT} above 0"
            raise UsageError(
                f"{path}: '{recipe.name}' learns nothing from vectors so; it needs {needs}", parameter="teacher"
            )
        if units != width:
            raise DataError(f"{path}: vectors of {units} numbers, {WIDTH} is {width}")
