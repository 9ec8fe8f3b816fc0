"""A table as CSV, LaTeX, Markdown and Parquet. Numbers are exact in CSV and Parquet, and rounded in the others."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path

from bgt_core.files import atomic_file
from bgt_core.tables.table import LEGEND, Table, Value, plain

STDOUT = Path("-")
STYLES = {"best": r"\textbf{%s}", "tied": r"\underline{%s}", "": "%s"}  # the same in LaTeX
LATEX_LEGEND = LEGEND.replace("* marks", "bold marks").replace("= marks", "underlining marks")
TEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after the end of a row it would start an argument
}


def save(table: Table, files: Mapping[str, Path | None], note: str = "") -> None:
    """Write these files, "csv", "latex", "md" and "parquet", each complete or not at all. "-" is stdout, for text.

    LaTeX is a booktabs tabular with `note` as a comment above it, Markdown a table with it below. Raises NotFound if a
    file can't be written.
    """
    for name, path in files.items():
        if path == STDOUT:
            print(TEXTS[name](table, note), end="")
        elif path:
            with atomic_file(path) as partial:
                if name == "parquet":
                    write_parquet(table, partial)
                else:
                    partial.write_text(TEXTS[name](table, note), encoding="utf-8", newline="")


def write_parquet(table: Table, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(table.records()), path)


def csv_text(table: Table, note: str = "") -> str:
    """CSV with a header; `note` is left out."""
    rows, text = table.records(), io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def latex_text(table: Table, note: str = "") -> str:
    """A booktabs tabular, `note` as a comment above it."""
    kinds = ["r" if not isinstance(value, str) else "l" for value in table.rows[0]]
    lines = [" & ".join(tex(value, table.digits) for value in row) for row in (table.columns, *table.rows)]
    head, *body = (f"{line} \\\\" for line in lines)
    begin = rf"\begin{{tabular}}{{{''.join(kinds)}}}"
    tabular = [begin, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    marked = any(getattr(value, "mark", "") for row in table.rows for value in row)
    comments = [f"% {line}" for line in (*note.splitlines(), *([LATEX_LEGEND] if marked else []))]
    return "\n".join([*comments, *tabular, ""])


def tex(value: Value, digits: int) -> str:
    """Format a value as `plain`, for TeX: the mark becomes a style of the number."""
    if isinstance(value, tuple):
        number, ends = plain(value._replace(mark=""), digits).split(" ", 1)
        return f"{STYLES[value.mark] % number} {ends}"
    return "".join(TEX.get(sign, sign) for sign in plain(value, digits))


def markdown(table: Table, text: int | None = None) -> list[str]:
    """The lines of a Markdown table. The first `text` columns are text; without it, those that begin with text."""
    right = [not isinstance(value, str) for value in table.rows[0]]
    if text is not None:
        right = [number >= text for number in range(len(table.columns))]
    rule = ["---:" if number else "---" for number in right]
    head, *body = ([cell.replace("|", r"\|") for cell in line] for line in (table.columns, *table.lines()))
    return [f"| {' | '.join(line)} |" for line in (head, rule, *body)]


def markdown_text(table: Table, note: str = "") -> str:
    """`markdown`, and `note` below it."""
    return "\n".join([*markdown(table), "", *([note, ""] if note else [])])


TEXTS: dict[str, Callable[[Table, str], str]] = {"csv": csv_text, "latex": latex_text, "md": markdown_text}
