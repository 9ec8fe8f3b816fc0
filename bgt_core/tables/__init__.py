"""Tables of texts, numbers and scores with intervals; functions that print tables or save them in several formats."""

import csv
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from bgt_core.errors import UsageError
from bgt_core.files import atomic_file


class Estimate(NamedTuple):
    """A score with its confidence interval, and its mark in a table: "best", "tied" with the best, or ""."""

    value: float
    low: float
    high: float
    mark: str = ""


Plain = str | int | float | None
Value = Plain | Estimate

# The columns of the results that `bgt evaluate` and `bgt-probe` store. Each row has one score of one system.
ROWS = {
    "model": "string",
    "fingerprint": "string",  # fingerprint of the model's vectors; "" if unknown
    "task": "string",
    "lang": "string",
    "system": "string",  # name of the model's latent, or of a baseline
    "score": "string",
    "value": "double",
    "low": "double",  # lower and upper end of the confidence interval; null for a number without an interval
    "high": "double",
    "n": "int64",  # number of items
    "baseline": "bool",  # true if the system does not use the model
    "seed": "int64",
    "source": "string",  # name of the data
}

PARTS = (" ci_low", " ci_high", " mark")  # saved estimates fill the column NAME and three more: "NAME ci_low", ...
MARKS = {"best": " *", "tied": " =", "": ""}
LEGEND = "* marks the best of a row; = marks the best scores of a row if they don't differ significantly"
LEAST_P = 1e-4


@dataclass(frozen=True)
class Table:
    """A table of texts and numbers, shown with `digits` decimals. Raises UsageError if a column's name is repeated."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    digits: int = 1

    def __post_init__(self) -> None:
        if twice := [name for name in self.columns if self.columns.count(name) > 1]:
            raise UsageError(f"Two columns of a table are named '{twice[0]}'; rename one.")

    def records(self) -> list[dict[str, Plain]]:
        """Return one dict per row, all with the same keys. A column of estimates becomes four columns (see `PARTS`)."""
        estimated = {n for row in self.rows for n, value in enumerate(row) if isinstance(value, tuple)}
        keys = [[name, *(name + part for part in PARTS if n in estimated)] for n, name in enumerate(self.columns)]
        return [
            dict(
                pair
                for names, value in zip(keys, row, strict=True)
                for pair in zip_longest(names, value if isinstance(value, tuple) else (value,))
            )
            for row in self.rows
        ]

    def lines(self) -> list[list[str]]:
        """Return the rows as texts for display."""
        return [[plain(value, self.digits) for value in row] for row in self.rows]


def plain(value: Value, digits: int) -> str:
    """Format a value with `digits` decimals; an estimate as score, interval and mark: "66.2 [65.0, 67.4] *"."""
    match value:
        case None:
            return ""
        case float():
            return f"{value:z.{digits}f}"
        case (middle, low, high, mark):
            return f"{middle:z.{digits}f} [{low:z.{digits}f}, {high:z.{digits}f}]{MARKS[mark]}"
    return str(value)


def p_text(p: float) -> str:
    """Format a p-value. Below 0.0001, show only this bound, because normal approximations are imprecise there."""
    return f"{p:.2g}" if p >= LEAST_P else f"<{LEAST_P:.4f}"


def show(head: Sequence[str], rows: Sequence[Sequence[str]], text: int = 1) -> None:
    """Print a table, with lines on a terminal, otherwise tab-separated. The first `text` columns are left-aligned."""
    if not sys.stdout.isatty():
        for row in (head, *rows):
            print("\t".join(row))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Drawn

    table = Drawn()
    for number, name in enumerate(head):
        table.add_column(escape(name), justify="left" if number < text else "right")
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)


# Write tables to files. CSV and Parquet files contain exact numbers, LaTeX and Markdown files rounded numbers.

STYLES = {"best": r"\textbf{%s}", "tied": r"\underline{%s}", "": "%s"}  # the marks in LaTeX
LATEX_LEGEND = LEGEND.replace("* marks", "bold marks").replace("= marks", "underlining marks")
TEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # TeX would read a "[" after the end of a row as an argument
}


def save(table: Table, path: Path, note: str = "") -> None:
    """Write a table to a .csv, .parquet, .tex or .md file; no partial file is ever left.

    LaTeX files have `note` as a comment above the table, Markdown files as a paragraph below it.
    """
    with atomic_file(path) as partial:
        if path.suffix == ".parquet":
            import pyarrow as pa
            from pyarrow import parquet

            # files with the columns `ROWS` always have the same types, even if all values of a column are missing
            known = [(name, pa.type_for_alias(kind)) for name, kind in ROWS.items()]
            schema = pa.schema(known) if list(table.columns) == list(ROWS) else None
            parquet.write_table(pa.Table.from_pylist(table.records(), schema), partial)
        else:
            partial.write_text(TEXTS[path.suffix](table, note), encoding="utf-8", newline="")


def csv_text(table: Table, note: str = "") -> str:
    """Format a table as CSV with a header, without `note`."""
    rows, text = table.records(), io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([[*rows[0]], *(row.values() for row in rows)])
    return text.getvalue()


def latex_text(table: Table, note: str = "") -> str:
    """Format a table as a booktabs tabular, with `note` as a comment above it."""
    kinds = ["r" if not isinstance(value, str) else "l" for value in table.rows[0]]
    lines = [" & ".join(tex(value, table.digits) for value in row) for row in (table.columns, *table.rows)]
    head, *body = (f"{line} \\\\" for line in lines)
    begin = rf"\begin{{tabular}}{{{''.join(kinds)}}}"
    tabular = [begin, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    marked = any(getattr(value, "mark", "") for row in table.rows for value in row)
    comments = [f"% {line}" for line in (*note.splitlines(), *([LATEX_LEGEND] if marked else []))]
    return "\n".join([*comments, *tabular, ""])


def tex(value: Value, digits: int) -> str:
    """Format a value for TeX; the mark "best" becomes bold type, "tied" underlining."""
    if isinstance(value, tuple):
        number, ends = plain(value._replace(mark=""), digits).split(" ", 1)
        return f"{STYLES[value.mark] % number} {ends}"
    return "".join(TEX.get(sign, sign) for sign in plain(value, digits))


def markdown(table: Table, text: int | None = None) -> list[str]:
    """Return the lines of a Markdown table. The first `text` columns, by default all text columns, are left-aligned."""
    right = [not isinstance(value, str) for value in table.rows[0]]
    if text is not None:
        right = [number >= text for number in range(len(table.columns))]
    rule = ["---:" if number else "---" for number in right]
    head, *body = ([cell.replace("|", r"\|") for cell in line] for line in (table.columns, *table.lines()))
    return [f"| {' | '.join(line)} |" for line in (head, rule, *body)]


def markdown_text(table: Table, note: str = "") -> str:
    """Format a table in Markdown, with the paragraph `note` below it."""
    return "\n".join([*markdown(table), "", *([note, ""] if note else [])])


TEXTS: dict[str, Callable[[Table, str], str]] = {".csv": csv_text, ".tex": latex_text, ".md": markdown_text}
