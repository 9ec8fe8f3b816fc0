"""Read uploaded files into columns of cells, with clear errors."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from app.core.rows import LANG_OF_TITLE, title_key
from app.core.uploads.text import ADVICE, decoded, rows_of
from bgt_core.data.text import normalise
from bgt_core.errors import DataError
from bgt_core.files import parse_json, reading_parquet

KINDS = ["csv", "tsv", "txt", "jsonl", "parquet"]
MAX_MEGABYTES = 20
MAX_ROWS, MAX_COLUMNS = 50_000, 100
MAX_TEXT = 2**28  # bytes of all cells
BATCH = 16  # rows decompressed together: few, as one row may be as large as the file
MAX_CHARACTERS = 2_000  # of a sentence
SCORES = ("gold", "score", "label", "similarity", "relatedness")  # names of columns of scores that people gave
TITLES = {  # a first row with one of these holds names
    *SCORES, "id", "text", "sentence", "sentence1", "sentence2", "source", "target", "left", "right", "genre",
}  # fmt: skip


def cells(name: str, content: bytes, header: bool | None = None) -> pd.DataFrame:
    """Read a file's columns by name, every cell a string cleaned up by `normalise`; blank rows are dropped.

    .csv, .tsv and .txt are read as `rows_of` does, .jsonl has one object per line. Lists are left out, and so are
    records in .parquet; the fields of a record in an object become columns. `header` tells whether the first row of the
    first three holds names; None guesses from the row. Raises DataError for another kind of file, as `decoded` and
    `rows_of`, and for no or too many rows.
    """
    kind = name.rpartition(".")[2].lower()
    if kind not in KINDS:
        raise DataError(f"{name}: not a table of text. {ADVICE}; .{', .'.join(KINDS[1:])} are read, too.")
    if kind == "parquet":
        columns = from_parquet(name, content)
    elif kind == "jsonl":
        columns = from_objects(name, decoded(name, content))
    else:
        rows = rows_of(name, decoded(name, content), "," if kind == "csv" else "\t", MAX_ROWS + 2)
        bounded(name, 0, len(rows[0]) if rows else 0)
        columns = from_rows(even(name, rows), header)
    table = pd.DataFrame({title: list(map(normalise, column)) for title, column in columns.items()}, dtype=object)
    table = table[(table != "").any(axis=1)].reset_index(drop=True)
    if table.empty:
        nested = "; lists and nested records are left out" if kind in ("jsonl", "parquet") else ""
        raise DataError(f"{name}: no rows; expected one sentence, translation or pair of sentences per line{nested}.")
    bounded(name, len(table), len(columns))
    return table


def bounded(name: str, rows: int, columns: int) -> None:
    """Raise DataError for more rows or columns than a page can show."""
    if rows > MAX_ROWS:
        raise DataError(f"{name}: more than {MAX_ROWS:,} rows; give the first {MAX_ROWS:,}, or use the command line.")
    if columns > MAX_COLUMNS:
        raise DataError(f"{name}: {columns:,} columns, more than {MAX_COLUMNS}; remove columns that you don't need.")


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
    rows: list[dict[tuple[str, ...], object]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row, problem = parse_json(line, f"{name}:{number}"), f"{name}:{number}:"
            except DataError as error:
                row, problem = None, f"{str(error).rstrip('.')};"
            if not isinstance(row, dict):
                raise DataError(f'{problem} expected a JSON object, as {{"en": "Yes.", "fr": "Oui."}}.')
            rows.append(dict(fields(row)))
            bounded(name, len(rows), 0)
    paths = list(dict.fromkeys(path for row in rows for path in row))
    bounded(name, len(rows), len(paths))
    times = Counter(path[-1] for path in paths)
    titles = distinct([path[-1] if times[path[-1]] == 1 else ".".join(path) for path in paths])
    return {title: [string(row.get(path)) for row in rows] for title, path in zip(titles, paths, strict=True)}


def fields(row: dict[str, object]) -> Iterator[tuple[tuple[str, ...], object]]:
    """The values of an object and of the objects in it, without lists and deeper objects, each with its path."""
    for title, value in row.items():
        inner = value.items() if isinstance(value, dict) else ()
        for path, each in [((title,), value), *(((title, key), each) for key, each in inner)]:
            if not isinstance(each, dict | list):
                yield path, each


def string(value: object) -> str:
    """Convert a cell to text; a missing one becomes ""."""
    return "" if value is None or value != value else str(value)


def even(name: str, rows: list[list[str]]) -> list[list[str]]:
    """The rows; DataError unless all have as many columns as the first."""
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            width = f"{len(row)} column{'s' * (len(row) != 1)}"
            way_out = ": quote cells that hold a comma or semicolon, or save one sentence per line as .txt"
            raise DataError(
                f"{name}: row {number} has {width}, the first has {len(rows[0])}; expected the same"
                f"{way_out * name.lower().endswith('.csv')}."
            )
    return rows


def from_rows(rows: list[list[str]], header: bool | None) -> dict[str, list[str]]:
    if not rows:
        return {}
    titles = [""] * len(rows[0])
    if is_header(rows) if header is None else header:
        titles, rows = [normalise(title) for title in rows[0]], rows[1:]
    columns = zip(titles, distinct(titles), map(with_points, zip(*rows, strict=True)), strict=False)
    return {
        name: cells for title, name, cells in columns if title or any(map(str.strip, cells))
    }  # Excel adds empty ones


def with_points(cells: Sequence[str]) -> list[str]:
    """The cells of a column; if all are numbers with a decimal comma, and not of thousands, with a point."""
    commas = all(re.fullmatch(r"\s*([-+]?\d+(,\d+)?(e[-+]?\d+)?)?\s*", cell, re.IGNORECASE) for cell in cells)
    decimal = commas and any(re.search(r",(?!\d{3}\s*$)|^\s*[-+]?0,", cell) for cell in cells)
    return [cell.replace(",", ".") for cell in cells] if decimal else list(cells)


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names: a usual name, or a word above a column of numbers."""
    first, below = rows[0], rows[1:]
    if any(normalise(cell).lower() in TITLES or title_key(normalise(cell)) in LANG_OF_TITLE for cell in first):
        return True
    return any(
        not (wordless([title]) and re.search(r"\w", title)) and numbers(column)
        for title, column in zip(first, zip(*below, strict=True), strict=False)
    )


def wordless(values: Iterable[str]) -> bool:
    """Whether no cell holds a word, but numbers in any spelling, dates or marks; False if all are empty."""
    filled = [value for value in values if value]
    spelt = re.compile(r"[\W\d_]*(((?<=\d)e[-+]?\d+|nan|inf|infinity|n/?a|none|null)[\W\d_]*)?", re.IGNORECASE)
    return bool(filled) and all(map(spelt.fullmatch, filled))


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
