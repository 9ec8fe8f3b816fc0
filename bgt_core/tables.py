"""A table of named columns and rows of values: on stdout, and as CSV, LaTeX, Markdown and Parquet files.

Values are text, numbers, None for nothing, or an estimate: a number, its interval, and how it stands among those
beside it (`bgt_core.evaluation.bootstrap.Estimate`). They are whole in CSV and Parquet, and rounded where they are read
by eye.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bgt_core.errors import NotFound, UsageError
from bgt_core.files import writing

if TYPE_CHECKING:
    from bgt_core.evaluation.bootstrap import Estimate

    Plain = str | int | float | None
    Value = Plain | Estimate

MARKS = {"best": " *", "tied": " =", "": ""}
STDOUT, PRINTED = Path("-"), ("csv", "latex", "md")
STYLES = {"best": r"\textbf{%s}", "tied": r"\underline{%s}", "": "%s"}  # the same in LaTeX
LEGEND = "* is the best of its row; = are the best and what can't be told apart from it"
LATEX_LEGEND = LEGEND.replace("* is", "bold is").replace("= are", "underlined are")
TEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after the end of a row it would start an argument
}


@dataclass(frozen=True)
class Table:
    """Rows of as many values as there are columns; `digits` are those after the point of numbers read by eye."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    digits: int = 1

    def __post_init__(self) -> None:
        if twice := [name for name in self.columns if self.columns.count(name) > 1]:
            raise UsageError(f"Two columns of a table are called '{twice[0]}'; give one another name.")

    def records(self) -> list[dict[str, Plain]]:
        """A dict a row; an estimate NAME is four entries: NAME, NAME ci_low, NAME ci_high, NAME mark."""
        return [
            {key: part for name, value in zip(self.columns, row, strict=True) for key, part in entries(name, value)}
            for row in self.rows
        ]

    def lines(self) -> list[list[str]]:
        """The rows as they are read by eye."""
        return [[plain(value, self.digits) for value in row] for row in self.rows]


def entries(name: str, value: Value) -> Iterator[tuple[str, Plain]]:
    if not isinstance(value, tuple):
        yield name, value
        return
    for part, entry in zip(("", " ci_low", " ci_high", " mark"), value, strict=True):
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


def tex(value: Value, digits: int) -> str:
    """The same, for TeX: the mark is a style of the number."""
    if isinstance(value, tuple):
        number, ends = plain(value._replace(mark=""), digits).split(" ", 1)
        return f"{STYLES[value.mark] % number} {ends}"
    return "".join(TEX.get(sign, sign) for sign in plain(value, digits))


def show(head: Sequence[str], rows: Sequence[Sequence[str]], text: int = 1) -> None:
    """Print a table on stdout, drawn on a terminal and tab-separated elsewhere; the first `text` columns are text."""
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


def on_stdout(files: Mapping[str, Path | None]) -> list[str]:
    """Those of the files that are to be printed instead: "-"."""
    return [name for name, path in files.items() if path == STDOUT]


def check_files(files: Mapping[str, Path | None], as_json: bool = False) -> None:
    """Before the work: BgtError where the folder of a file is not there, or where stdout can't hold what it is to."""
    printed = on_stdout(files)
    if strange := [name for name in printed if name not in PRINTED]:
        raise UsageError(f"--{strange[0]} -: only {', '.join(PRINTED)} can go to stdout; give a file.")
    if len(printed) + as_json > 1:
        names = [f"--{name} -" for name in printed] + ["--json"] * as_json
        raise UsageError(f"{' and '.join(names)}: stdout holds one document; give files for the others.")
    for name, path in files.items():
        if path and not path.absolute().parent.is_dir():
            raise NotFound(f"--{name} {path}: there is no folder {path.parent}.")


def save(table: Table, files: Mapping[str, Path | None], note: str = "") -> None:
    """Write the files asked for, "csv", "latex", "md" and "parquet"; each is whole or not there. "-" is stdout.

    LaTeX is a booktabs tabular with `note` as a comment above it, Markdown a table with it below. BgtError where a
    file can't be written.
    """
    for name, path in files.items():
        if not path:
            continue
        if path == STDOUT:
            print(text_of(WRITERS[name], table, note), end="")
            continue
        partial = path.with_name(path.name + ".partial")
        try:
            with writing(path):
                WRITERS[name](table, partial, note)
                os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


def text_of(write: Callable[[Table, Path, str], None], table: Table, note: str) -> str:
    """What a writer of text would put in a file."""
    with TemporaryDirectory() as folder:
        write(table, Path(folder) / "table", note)
        return (Path(folder) / "table").read_text(encoding="utf-8")


def write_csv(table: Table, path: Path, _: str) -> None:
    rows = table.records()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_parquet(table: Table, path: Path, _: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(table.records()), path)


def write_latex(table: Table, path: Path, note: str) -> None:
    kinds = ["r" if not isinstance(value, str) else "l" for value in table.rows[0]]
    lines = [" & ".join(tex(value, table.digits) for value in row) for row in (table.columns, *table.rows)]
    head, *body = (f"{line} \\\\" for line in lines)
    begin = rf"\begin{{tabular}}{{{''.join(kinds)}}}"
    text = [begin, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    marked = any(getattr(value, "mark", "") for row in table.rows for value in row)
    comments = [f"% {line}" for line in (*note.splitlines(), *([LATEX_LEGEND] if marked else []))]
    path.write_text("\n".join([*comments, *text, ""]), encoding="utf-8")


def markdown(table: Table) -> list[str]:
    """The lines of a Markdown table."""
    right = [not isinstance(value, str) for value in table.rows[0]]
    rule = ["---:" if number else "---" for number in right]
    body = [[cell.replace("|", r"\|") for cell in line] for line in (table.columns, *table.lines())]
    return [f"| {' | '.join(line)} |" for line in (body[0], rule, *body[1:])]


def write_markdown(table: Table, path: Path, note: str) -> None:
    path.write_text("\n".join([*markdown(table), "", *([note, ""] if note else [])]), encoding="utf-8")


WRITERS = {"csv": write_csv, "latex": write_latex, "md": write_markdown, "parquet": write_parquet}
