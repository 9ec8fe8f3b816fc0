"""Files that users upload: bytes to columns of cells, with clear words for what can't be read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from app.rows import LANGUAGE_NAMES
from bgt_core.data.text import normalise
from bgt_core.errors import DataError

KINDS = ["tsv", "csv", "txt", "jsonl", "parquet"]
MAX_MEGABYTES = 20
MAX_ROWS = 50_000
MAX_CHARACTERS = 2_000  # of a sentence
SCORES = ("gold", "score", "label", "similarity", "relatedness")  # names of columns of scores that people gave
TITLES = {  # a first row that has one of these holds names
    *SCORES, "id", "text", "sentence", "sentence1", "sentence2", "source", "target", "left", "right", "genre",
    *LANGUAGE_NAMES, *map(str.lower, LANGUAGE_NAMES.values()),
}  # fmt: skip


def cells(name: str, content: bytes, header: bool | None = None) -> pd.DataFrame:
    """A file's columns by name, every cell a string, cleaned up by `normalise`; blank rows are dropped.

    .csv is quoted, .tsv and .txt have tabs and no quoting, .jsonl has an object a line; columns of lists in .parquet
    are left out. `header`: whether the first row of the first three holds names; None decides by the row.
    Raises DataError for another kind of file, what is no text or not UTF-8, no rows, too many, or of different widths.
    """
    kind = name.rpartition(".")[2].lower()
    if kind not in KINDS:
        raise DataError(f"{name}: expected a file that ends in {', '.join(KINDS)}.")
    if kind == "parquet":
        columns = from_parquet(name, content)
    elif kind == "jsonl":
        columns = from_objects(name, decoded(name, content))
    else:
        columns = from_rows(name, split(name, decoded(name, content), kind), header)
    table = pd.DataFrame({title: list(map(normalise, column)) for title, column in columns.items()}, dtype=object)
    table = table[(table != "").any(axis=1)].reset_index(drop=True)
    if table.empty:
        raise DataError(f"{name}: no rows; expected a sentence, or a translation or pair of sentences, a line.")
    if len(table) > MAX_ROWS:
        raise DataError(
            f"{name}: {len(table):,} rows, more than {MAX_ROWS:,}; give the first {MAX_ROWS:,}, or use the command "
            "line."
        )
    return table


def decoded(name: str, content: bytes) -> str:
    if b"\0" in content:
        raise DataError(f"{name}: not text; save it as a table of text, or as .parquet.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{name}:{line}: not UTF-8; convert the file to UTF-8.") from None


def from_parquet(name: str, content: bytes) -> dict[str, list[str]]:
    try:
        table = pd.read_parquet(io.BytesIO(content))
    except (OSError, ValueError):  # pyarrow's errors are of both kinds
        raise DataError(f"{name}: not a Parquet file, or a damaged one.") from None
    plain = (title for title in table if not isinstance(table[title].iloc[0] if len(table) else "", list | np.ndarray))
    return {str(title): list(map(string, table[title].tolist())) for title in plain}


def from_objects(name: str, text: str) -> dict[str, list[str]]:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise DataError(f'{name}:{number}: expected a JSON object, as {{"en": "Yes.", "fr": "Oui."}}.')
            rows.append(row)
    titles = dict.fromkeys(title for row in rows for title in row)
    return {title: [string(row.get(title)) for row in rows] for title in titles}


def string(value: object) -> str:
    """A cell as text; nothing for a missing one."""
    return "" if value is None or value != value else str(value)


def split(name: str, text: str, kind: str) -> list[list[str]]:
    """The rows that are not blank, all of the same width."""
    if kind == "csv":
        try:
            rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        except csv.Error as error:
            raise DataError(f"{name}: not CSV ({error}); quote cells that hold a comma or a quote.") from None
    else:
        rows = [line.removesuffix("\r").split("\t") for line in text.split("\n")]
    rows = [row for row in rows if any(map(str.strip, row))]
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            width = f"{len(row)} column{'s' * (len(row) != 1)}"
            raise DataError(f"{name}: row {number} has {width}, the first has {len(rows[0])}; expected the same.")
    return rows


def from_rows(name: str, rows: list[list[str]], header: bool | None) -> dict[str, list[str]]:
    if not rows:
        return {}
    titles = [""] * len(rows[0])
    if is_header(rows) if header is None else header:
        titles, rows = [normalise(title) for title in rows[0]], rows[1:]
    return dict(zip(distinct(titles), map(list, zip(*rows, strict=True)), strict=True) if rows else ())


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names: a usual one, or a word above a column of numbers."""
    first, below = rows[0], rows[1:]
    if any(normalise(cell).lower() in TITLES for cell in first):
        return True
    return any(
        not numbers([title]) and numbers(column) for title, column in zip(first, zip(*below, strict=True), strict=False)
    )


def distinct(titles: Sequence[str]) -> list[str]:
    """Names that are all different, "Column 2" for an empty one."""
    names: list[str] = []
    for at, title in enumerate(titles, 1):
        name = title or f"Column {at}"
        names.append(name if name not in names else f"{name} ({at})")
    return names


def numbers(values: Iterable[str]) -> bool:
    """Whether there are any, and all of them are finite numbers; empty cells aside."""
    values = [value for value in values if value]
    try:
        return bool(values) and all(abs(float(value)) < float("inf") for value in values)
    except ValueError:
        return False
