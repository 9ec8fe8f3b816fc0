"""Read uploaded files into columns of cells, with clear errors."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from app.core.rows import LANGUAGE_NAMES
from bgt_core.data.text import normalise
from bgt_core.errors import DataError
from bgt_core.files import parse_json
from bgt_core.files.parquet import reading_parquet

KINDS = ["tsv", "csv", "txt", "jsonl", "parquet"]
MAX_MEGABYTES = 20
MAX_ROWS, MAX_COLUMNS = 50_000, 100
MAX_TEXT = 2**28  # bytes of all cells
csv.field_size_limit(MAX_TEXT)  # characters in a cell; other kinds of files have no limit for one cell
BATCH = 16  # rows decompressed together: few, as one row may be as large as the file
MAX_CHARACTERS = 2_000  # of a sentence
SCORES = ("gold", "score", "label", "similarity", "relatedness")  # names of columns of scores that people gave
TITLES = {  # a first row with one of these holds names
    *SCORES, "id", "text", "sentence", "sentence1", "sentence2", "source", "target", "left", "right", "genre",
    *LANGUAGE_NAMES, *map(str.lower, LANGUAGE_NAMES.values()),
}  # fmt: skip


def cells(name: str, content: bytes, header: bool | None = None) -> pd.DataFrame:
    """Read a file's columns by name, every cell a string cleaned up by `normalise`; blank rows are dropped.

    .csv is quoted, .tsv and .txt have tabs and no quotes, .jsonl has one object per line; columns of lists and records
    in .parquet are left out. `header` tells whether the first row of the first three holds names; None guesses from the
    row. Raises DataError for another kind of file, for one that is not UTF-8 text, and for no, too many or uneven rows.
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
        raise DataError(f"{name}: no rows; expected one sentence, translation or pair of sentences per line.")
    bounded(name, len(table), len(columns))
    return table


def bounded(name: str, rows: int, columns: int) -> None:
    """Raise DataError for more rows or columns than a page can show."""
    if rows > MAX_ROWS:
        raise DataError(f"{name}: more than {MAX_ROWS:,} rows; give the first {MAX_ROWS:,}, or use the command line.")
    if columns > MAX_COLUMNS:
        raise DataError(f"{name}: {columns:,} columns, more than {MAX_COLUMNS}; remove columns that you don't need.")


def decoded(name: str, content: bytes) -> str:
    if b"\0" in content:
        raise DataError(f"{name}: not text; save it as a table of text, or as .parquet.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{name}:{line}: not UTF-8; convert the file to UTF-8.") from None


def from_parquet(name: str, content: bytes) -> dict[str, list[str]]:
    """The columns without lists and records, in bounded memory, whatever size a small file claims."""
    size = 0
    with reading_parquet(name), parquet.ParquetFile(io.BytesIO(content)) as file:
        fields = [field for field in file.schema_arrow if not pa.types.is_nested(field.type)]
        bounded(name, file.metadata.num_rows, len(fields))
        titles = [field.name for field in fields if not field.name.startswith("__index_level_")]  # pandas's own
        columns: list[list[str]] = [[] for _ in titles]
        for batch in file.iter_batches(BATCH, columns=titles):
            for column, values in zip(columns, batch.columns, strict=True):
                values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
                size += values.nbytes
                if size > MAX_TEXT:
                    raise DataError(f"{name}: more than {MAX_TEXT >> 20} MiB of text; give fewer rows.")
                column.extend(map(string, values.to_pylist()))
    return dict(zip(distinct(titles), columns, strict=True))


def from_objects(name: str, text: str) -> dict[str, list[str]]:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row = parse_json(line, name)
            except DataError:
                row = None
            if not isinstance(row, dict):
                raise DataError(f'{name}:{number}: expected a JSON object, as {{"en": "Yes.", "fr": "Oui."}}.')
            rows.append(row)
            bounded(name, len(rows), 0)
    titles = dict.fromkeys(title for row in rows for title in row)
    bounded(name, len(rows), len(titles))
    return {title: [string(row.get(title)) for row in rows] for title in titles}


def string(value: object) -> str:
    """Convert a cell to text; a missing one becomes ""."""
    return "" if value is None or value != value else str(value)


def split(name: str, text: str, kind: str) -> list[list[str]]:
    """The rows that are not blank, all of the same width."""
    if kind == "csv":
        lines: Iterable[list[str]] = csv.reader(io.StringIO(text, newline=""), strict=True)
    else:
        lines = (line.removesuffix("\r").split("\t") for line in text.split("\n"))
    try:
        # one for the header, one too many
        rows = list(islice((row for row in lines if any(map(str.strip, row))), MAX_ROWS + 2))
    except csv.Error as error:
        raise DataError(f"{name}: not CSV ({error}); quote cells that hold a comma or a quote.") from None
    bounded(name, 0, len(rows[0]) if rows else 0)
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
    """Whether the first row holds names: a usual name, or a word above a column of numbers."""
    first, below = rows[0], rows[1:]
    if any(normalise(cell).lower() in TITLES for cell in first):
        return True
    return any(
        not numbers([title]) and numbers(column) for title, column in zip(first, zip(*below, strict=True), strict=False)
    )


def distinct(titles: Sequence[str]) -> list[str]:
    """Make all names different; an empty one becomes "Column 2"."""
    names: list[str] = []
    for at, title in enumerate(titles, 1):
        name = title or f"Column {at}"
        names.append(name if name not in names else f"{name} ({at})")
    return names


def numbers(values: Iterable[str]) -> bool:
    """Whether all cells that are not empty are finite numbers, and at least one is."""
    filled = pd.Series([value for value in values if value], dtype="string")
    read = pd.to_numeric(filled, errors="coerce")  # as they are read later: 1_000 is none
    return bool(len(filled)) and bool(np.isfinite(read.astype(float)).all())
