"""Files that users upload: bytes to sentences or pairs, with clear words for what can't be read."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import pandas as pd

from bgt_core.data.text import normalise
from bgt_core.errors import DataError

KINDS = ["txt", "tsv", "csv"]
MAX_ROWS = 20_000
MAX_CHARACTERS = 2_000  # of a cell
HEADERS = ("gold", "score", "label", "similarity")


def cells(name: str, content: bytes) -> list[list[str]]:
    """Rows of a .csv (quoted) or of a .tsv or .txt (tabs, no quoting); blank rows are dropped.

    Raises DataError for another kind of file, text that is not UTF-8, no rows, too many rows, or too long a cell.
    """
    kind = name.rpartition(".")[2].lower()
    if kind not in KINDS:
        raise DataError(f"{name}: expected a file that ends in {', '.join(KINDS)}.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{name}:{line}: not UTF-8; convert the file to UTF-8.") from None
    if text.count("\n") > MAX_ROWS:
        raise DataError(f"{name}: more than {MAX_ROWS:,} lines; give the first {MAX_ROWS:,}, or use the command line.")
    if kind == "csv":
        try:
            rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        except csv.Error as error:
            raise DataError(f"{name}: not CSV ({error}); quote cells that hold a comma or a quote.") from None
    else:
        rows = [line.split("\t") for line in text.split("\n")]
    rows = [[normalise(cell) for cell in row] for row in rows if any(map(str.strip, row))]
    if not rows:
        raise DataError(f"{name}: no rows; expected one sentence per line.")
    for number, row in enumerate(rows, 1):
        if any(len(cell) > MAX_CHARACTERS for cell in row):
            raise DataError(
                f"{name}: row {number} has a cell of more than {MAX_CHARACTERS:,} characters; expected sentences."
            )
    return rows


def sentences(name: str, content: bytes) -> list[str]:
    """The first column."""
    return [row[0] for row in cells(name, content) if row[0]]


def pairs(name: str, content: bytes) -> pd.DataFrame:
    """Columns `left`, `right` and, where a column holds nothing but numbers, `gold`.

    That column may be the first (as STS files have it) or the third; a header row is recognised by its name.
    Raises DataError as `cells` does, for fewer than two columns of text, and for rows of different widths.
    """
    rows = cells(name, content)
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise DataError(f"{name}: row {number} has {len(row)} columns, the first has {width}; expected the same.")
    if any(cell.lower() in HEADERS for cell in rows[0]):
        rows = rows[1:]
    gold = next((at for at in (0, 2) if at < width and numbers([row[at] for row in rows])), None)
    columns = [at for at in range(width) if at != gold][:2]
    if len(columns) < 2 or not rows:
        raise DataError(f"{name}: expected two columns of sentences, and a third with scores if there are any.")
    left, right = ([row[at] for row in rows] for at in columns)
    table = pd.DataFrame({"left": left, "right": right})
    return table if gold is None else table.assign(gold=[float(row[gold]) for row in rows])


def numbers(values: Sequence[str]) -> bool:
    """Whether all of them are finite numbers."""
    try:
        return bool(values) and all(abs(float(value)) < float("inf") for value in values)
    except ValueError:
        return False
