"""Named columns and rows of values: text, numbers, estimates, or None."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bgt_core.errors import UsageError


class Estimate(NamedTuple):
    """A number, its interval, and its mark in the row: "best", "tied" with the best, or ""."""

    value: float
    low: float
    high: float
    mark: str = ""


Plain = str | int | float | None
Value = Plain | Estimate

PARTS = (" ci_low", " ci_high", " mark")  # of an estimate, after its value
MARKS = {"best": " *", "tied": " =", "": ""}
LEGEND = "* marks the best of a row; = marks the best and those that do not differ significantly from it"
LEAST_P = 1e-4


@dataclass(frozen=True)
class Table:
    """A table with one value per column in each row; `digits` is the number of decimals for display.

    Raises UsageError if two columns have the same name.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    digits: int = 1

    def __post_init__(self) -> None:
        if twice := [name for name in self.columns if self.columns.count(name) > 1]:
            raise UsageError(f"Two columns of a table are named '{twice[0]}'; rename one.")

    def records(self) -> list[dict[str, Plain]]:
        """One dict per row, all of the same keys; a column NAME of estimates is NAME, NAME ci_low, NAME ci_high and
        NAME mark."""
        rows = [
            {key: part for name, value in zip(self.columns, row, strict=True) for key, part in entries(name, value)}
            for row in self.rows
        ]
        every = (name + part for name in self.columns for part in ("", *PARTS))
        keys = [key for key in every if any(key in row for row in rows)]
        return [{key: row.get(key) for key in keys} for row in rows]

    def lines(self) -> list[list[str]]:
        """The rows as text for display."""
        return [[plain(value, self.digits) for value in row] for row in self.rows]


def entries(name: str, value: Value) -> Iterator[tuple[str, Plain]]:
    if not isinstance(value, tuple):
        yield name, value
        return
    parts: tuple[Plain, ...] = tuple(value)
    for part, entry in zip(("", *PARTS), parts, strict=True):
        yield name + part, entry


def plain(value: Value, digits: int) -> str:
    """ "66.2 [65.0, 67.4] *" """
    match value:
        case None:
            return ""
        case float():
            return f"{value:z.{digits}f}"
        case (middle, low, high, mark):
            return f"{middle:z.{digits}f} [{low:z.{digits}f}, {high:z.{digits}f}]{MARKS[mark]}"
    return str(value)


def p_text(p: float) -> str:
    """Format a p-value; below 0.0001 a normal tail is not more precise than that."""
    return f"{p:.2g}" if p >= LEAST_P else f"<{LEAST_P:.4f}"
