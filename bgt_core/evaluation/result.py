"""Scores of systems, their differences, and their forms for display and storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bgt_core.errors import UsageError
from bgt_core.tables import Estimate, Table, Value, p_text

LEGEND = "* marks the best system of a score; = marks the best and those that do not differ significantly from it"

Key: TypeAlias = Any  # a NamedTuple of texts and, last, the number of items of its score
Cell = Estimate | float | None  # a number without an interval, or no value


class Difference(NamedTuple):
    """The difference of `first` minus `second` in one score."""

    key: Key
    first: str
    second: str
    difference: Estimate
    p: float  # two-sided
    p_holm: float  # corrected for all differences of its family

    def seen_from(self, system: str) -> Difference:
        """The same difference with this system first."""
        if system == self.first:
            return self
        value, low, high, mark = self.difference
        return self._replace(first=self.second, second=self.first, difference=Estimate(-value, -high, -low, mark))


class Curve(NamedTuple):
    """The values of each system, (S, K), and their intervals."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """Scores of S systems, with the settings and data that they come from."""

    systems: Sequence[str]
    scores: Mapping[Key, Sequence[Cell]]  # of each system
    differences: Sequence[Difference]
    curves: Mapping[Key, Curve]
    counts: Mapping[str, int]
    about: str
    warnings: Sequence[str]
    level: float  # of the intervals
    resamples: int
    seed: int
    write_items: Callable[[Path], None] | None = None
    task: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the task
    across: str = "system"  # the columns of the table

    def value(self, key: Sequence[Any], system: str | None = None) -> float:
        """Return one score, of the only system by default; the last parts of the key may be left out.

        Raises:
            UsageError: No such score, or several.
        """
        matching = [cells for name, cells in self.scores.items() if name[: len(key)] == tuple(key)]
        names = [system] if system else self.systems
        if len(matching) != 1 or len(names) != 1 or names[0] not in self.systems:
            raise UsageError(
                f"{len(matching)} scores are called {tuple(key)}, and the systems {', '.join(self.systems)}; "
                "name one of each."
            )
        cell = matching[0][self.systems.index(names[0])]
        return float("nan") if cell is None else cell.value if isinstance(cell, Estimate) else cell

    def records(self) -> list[dict[str, Any]]:
        """List each score of each system: the fields of its key, system, value, ci_low, ci_high, mark."""
        return [
            {**key._asdict(), "system": system, **entry(cell)}
            for key, cells in self.scores.items()
            for system, cell in zip(self.systems, cells, strict=True)
            if cell is not None
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the items, as JSON can hold it: schema bgt-evaluate/1."""
        scores = [
            {
                **key._asdict(),
                "systems": {
                    name: entry(cell) for name, cell in zip(self.systems, cells, strict=True) if cell is not None
                },
            }
            for key, cells in self.scores.items()
        ]
        differences = [
            {**gap.key._asdict(), "first": gap.first, "second": gap.second, **entry(gap.difference)}
            | {"p": gap.p, "p_holm": gap.p_holm}
            for gap in self.differences
        ]
        curves = [
            {**key._asdict(), "system": name, "value": value.tolist(), "ci_low": low.tolist(), "ci_high": high.tolist()}
            for key, curve in self.curves.items()
            for name, value, low, high in zip(self.systems, *curve, strict=True)
        ]
        return {
            "schema": "bgt-evaluate/1",
            "task": self.task,
            "settings": dict(self.settings),
            "about": self.about,
            "warnings": list(self.warnings),
            "counts": dict(self.counts),
            "level": self.level,
            "resamples": self.resamples,
            "seed": self.seed,
            "scores": scores,
            "differences": differences,
            "curves": curves,
        }

    def table(self, across: str | None = None) -> Table:
        """Make a table for display.

        Args:
            across: The columns: "system", or a field of the keys; by default the task's choice.

        Returns:
            A row for each combination of the other fields. With systems as columns, rows end with the number of items.
        """
        across = across or self.across
        rows: dict[tuple[Any, ...], dict[str, Value]] = {}
        head: list[str] = []
        columns = list(self.systems) if across == "system" else []
        for key, cells in self.scores.items():
            for system, cell in zip(self.systems, cells, strict=True):
                parts = {**key._asdict(), "system": system}
                if across != "system":
                    parts.pop(key._fields[-1])  # items of a score, in a row of several
                    if cell is None:
                        continue
                column = parts.pop(across)
                head = [name.replace("_", " ") for name in parts]
                shown = f"{cell:.4g}" if isinstance(cell, float) else cell
                rows.setdefault(tuple(parts.values()), {})[column] = shown
                if column not in columns:
                    columns.append(column)
        return Table([*head, *columns], [[*row, *(cells.get(name) for name in columns)] for row, cells in rows.items()])

    def difference_table(self) -> Table:
        """Make a row for each difference."""
        rows: list[list[Value]] = [
            [*gap.key[:-1], f"{gap.first} - {gap.second}", gap.difference, p_text(gap.p), p_text(gap.p_holm)]
            for gap in self.differences
        ]
        fields = self.differences[0].key._fields[:-1] if self.differences else ()
        return Table([*(name.replace("_", " ") for name in fields), "difference", "points", "p", "p (Holm)"], rows)

    def curve_table(self) -> Table:
        """Make a row for each point of each curve, with its band."""
        rows: list[list[Value]] = [
            [*key[:-1], name, point / (len(value) - 1), float(value[point]), float(low[point]), float(high[point])]
            for key, curve in self.curves.items()
            for name, value, low, high in zip(self.systems, *curve, strict=True)
            for point in range(len(value))
        ]
        fields = next(iter(self.curves))._fields[:-1] if self.curves else ()
        return Table([*fields, "system", "at", "value", "ci_low", "ci_high"], rows, digits=4)


def entry(cell: Cell) -> dict[str, float | str]:
    """Convert a score for JSON."""
    if isinstance(cell, Estimate):
        return dict(zip(("value", "ci_low", "ci_high", "mark"), cell, strict=True))
    return {} if cell is None else {"value": cell}
