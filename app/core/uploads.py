"""Read uploaded files into columns of cells, with clear errors.

Files may be written by the spreadsheets of any country: the encoding, the separator and the quotes are detected, which
the readers of pandas do not do.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import pandas as pd

from app.core.rows import LANG_OF_TITLE, title_key
from bgt_core.data.text import normalise
from bgt_core.data.textfile import NOT_TEXT
from bgt_core.errors import DataError

KINDS = ["csv", "tsv", "txt"]
MAX_MEGABYTES = 20
MAX_ROWS, MAX_COLUMNS = 50_000, 100
MAX_CHARACTERS = 2_000  # maximum of a sentence
SCORES = ("gold", "score", "label", "similarity", "relatedness")  # names of columns with human scores
TITLES = {  # a first row with one of these is a header
    *SCORES, "id", "text", "sentence", "sentence1", "sentence2", "source", "target", "left", "right", "genre",
}  # fmt: skip
MARKS = {  # the first bytes of a file -> its encoding; UTF-32 first, because its marks begin like those of UTF-16
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
SEPARATORS = "\t;|,"  # the more likely first; a comma may be the decimal comma of every row
SAMPLE = 1_000  # maximum number of rows from which the separator is detected
EVEN = 0.5  # minimum share of rows with the same number of columns
ADVICE = "Save it as CSV (UTF-8)"
csv.field_size_limit(2**31 - 1)  # maximum number of characters in a cell; only the file size is limited


def cells(name: str, content: bytes, header: bool | None = None) -> pd.DataFrame:
    """Read a file's columns by name. Every cell is a string cleaned by `normalise`; blank rows are dropped.

    `header` says whether the first row has names; None guesses. Raises DataError for other kinds of files, for no or
    too many rows, and as `decoded` and `rows_of` do.
    """
    kind = name.rpartition(".")[2].lower()
    if kind not in KINDS:
        raise DataError(f"{name}: not a table of text. {ADVICE}; .{', .'.join(KINDS[1:])} are read, too.")
    rows = rows_of(name, decoded(name, content), "," if kind == "csv" else "\t", MAX_ROWS + 2)
    bounded(name, 0, len(rows[0]) if rows else 0)
    columns = from_rows(name, rows, header)
    table = pd.DataFrame({title: list(map(normalise, column)) for title, column in columns.items()}, dtype=object)
    table = table[(table != "").any(axis=1)].reset_index(drop=True)
    if table.empty:
        raise DataError(f"{name}: no rows; expected one sentence, translation or pair of sentences per line.")
    bounded(name, len(table), len(columns))
    return table


def bounded(name: str, rows: int, columns: int) -> None:
    """Raise DataError if there are more rows or columns than a page can show."""
    if rows > MAX_ROWS:
        raise DataError(f"{name}: more than {MAX_ROWS:,} rows; give the first {MAX_ROWS:,}, or use the command line.")
    if columns > MAX_COLUMNS:
        raise DataError(f"{name}: {columns:,} columns, more than {MAX_COLUMNS}; remove columns that you don't need.")


def from_rows(name: str, rows: list[list[str]], header: bool | None) -> dict[str, list[str]]:
    """Return the columns of a table. Raises DataError unless all rows have the same length as the first."""
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            width = f"{len(row)} column{'s' * (len(row) != 1)}"
            way_out = ": quote cells that hold a comma or semicolon, or save one sentence per line as .txt"
            raise DataError(
                f"{name}: row {number} has {width}, the first has {len(rows[0])}; expected the same"
                f"{way_out * name.lower().endswith('.csv')}."
            )
    if not rows:
        return {}
    titles = [""] * len(rows[0])
    if is_header(rows) if header is None else header:
        titles, rows = [normalise(title) for title in rows[0]], rows[1:]
    columns = zip(titles, distinct(titles), map(with_points, zip(*rows, strict=True)), strict=False)
    # Excel adds columns without a title and without cells
    return {name: cells for title, name, cells in columns if title or any(map(str.strip, cells))}


def with_points(cells: Sequence[str]) -> list[str]:
    """Replace decimal commas by points if all cells of a column are numbers; commas of thousands stay."""
    commas = all(re.fullmatch(r"\s*([-+]?\d+(,\d+)?(e[-+]?\d+)?)?\s*", cell, re.IGNORECASE) for cell in cells)
    decimal = commas and any(re.search(r",(?!\d{3}\s*$)|^\s*[-+]?0,", cell) for cell in cells)
    return [cell.replace(",", ".") for cell in cells] if decimal else list(cells)


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has names: a known name, or a word above a column of numbers."""
    first, below = rows[0], rows[1:]
    if any(normalise(cell).lower() in TITLES or title_key(normalise(cell)) in LANG_OF_TITLE for cell in first):
        return True
    return any(
        not (wordless([title]) and re.search(r"\w", title)) and numbers(column)
        for title, column in zip(first, zip(*below, strict=True), strict=False)
    )


def wordless(values: Iterable[str]) -> bool:
    """Return whether all cells that are not empty are numbers in any spelling, dates or marks; False if all are."""
    filled = [value for value in values if value]
    spelt = re.compile(r"[\W\d_]*(((?<=\d)e[-+]?\d+|nan|inf|infinity|n/?a|none|null)[\W\d_]*)?", re.IGNORECASE)
    return bool(filled) and all(map(spelt.fullmatch, filled))


def distinct(titles: Sequence[str]) -> list[str]:
    """Make all names different; an empty name becomes "Column 2"."""
    names: list[str] = []
    for at, title in enumerate(titles, 1):
        name = title or f"Column {at}"
        names.append(name if name not in names else f"{name} ({at})")
    return names


def numbers(values: Iterable[str]) -> bool:
    """Return whether all cells that are not empty are finite numbers, and at least one is not empty."""
    filled = pd.Series([value for value in values if value], dtype="string")
    read = pd.to_numeric(filled, errors="coerce")  # converted as later: 1_000 is not a number
    return bool(len(filled)) and bool(np.isfinite(read.astype(float)).all())


def decoded(name: str, content: bytes) -> str:
    """Decode a file in UTF-8, or in UTF-16 or UTF-32 with a byte order mark; each line ends in a line feed.

    Raises DataError that names the kind of the file, or the line that is not text.
    """
    start = content.removeprefix(codecs.BOM_UTF8).lstrip()
    if what := next((what for mark, what in NOT_TEXT.items() if start.startswith(mark)), ""):
        raise DataError(f"{name}: {what.partition(';')[0]}, not text. {ADVICE}.")
    encoding = next((encoding for mark, encoding in MARKS.items() if content.startswith(mark)), "utf-8-sig")
    try:
        text = content.decode(encoding)
        at = text.find("\0")
    except UnicodeDecodeError as error:
        at = error.start
    if at >= 0:
        line, perhaps = content[:at].count(b"\n") + 1, ", perhaps not text" * (b"\0" in content)
        raise DataError(f"{name}:{line}: not UTF-8{perhaps}. {ADVICE}.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def rows_of(name: str, text: str, usual: str, most: int) -> list[list[str]]:
    """Return the first `most` rows of a table that are not blank.

    The separator is the one that Excel declares (sep=;), unless a program with another separator saved the file again
    (sep=,;). Otherwise it is the one by which most rows have the same number of columns, or else `usual`. Cells may be
    quoted. Raises DataError for quotes that do not match.
    """
    if declared := re.match(r'"?sep=([^\w\s"]|\t)"?([,;|\t]*) *\n', text, re.IGNORECASE):
        text = text[declared.end() :]
    text = re.sub(r"\n{2,}", "\n", text)  # reading millions of blank lines takes a minute
    separator = declared[1] if declared and not declared[2] else separator_of(text, usual)
    try:
        return list(islice(split(text, separator), most))
    except csv.Error as error:
        raise DataError(f"{name}: not CSV ({error}); quote cells that hold a comma or a quote.") from None


def separator_of(text: str, usual: str) -> str:
    """Detect the separator of a table. A comma or semicolon before a space is part of the text, unless it is the usual
    separator. A comma that is not the usual one separates only if a line ends in a quoted cell after it."""
    fits = {}
    commas = usual == "," or re.search(r'",\s*"(?:[^"]|"")*"$', text, re.MULTILINE)
    for separator in SEPARATORS if commas else SEPARATORS.replace(",", ""):
        try:
            widths = list(map(len, islice(split(text, separator), SAMPLE)))
        except csv.Error:
            continue
        ((width, count),) = Counter(widths).most_common(1) or [(1, 0)]
        prose = len(re.findall(f'{separator} [^"]', text)) / (1 + text.count(separator)) if separator in ",;" else 0
        share = count / len(widths) if widths else 0
        sure = prose < 0.5 or (usual == "," and share == 1)
        if width > 1 and (separator == usual or (share >= EVEN and sure and len(widths) > (usual != ","))):
            fits[separator] = share, -prose
    return max(fits, key=fits.__getitem__, default=usual)


def split(text: str, separator: str) -> Iterator[list[str]]:
    """Split into rows that are not blank. Quotes enclose cells; between tabs they may be part of a sentence."""
    if separator == "\t" and not quoted(text):
        return (line.split("\t") for line in text.split("\n") if line.strip())
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    return (row for row in lines if any(map(str.strip, row)))


def quoted(text: str) -> bool:
    """Return whether quotes in tab-separated text enclose cells, and are not part of sentences: all cells except
    numbers are enclosed, or an enclosed cell contains doubled quotes."""
    lines = [line.split("\t") for line in text.split("\n", SAMPLE)[:SAMPLE] if line.strip()]
    cells = [cell for line in lines for cell in line if len(line) > 1 and not re.fullmatch(r"[\s\d.,+-]*", cell)]
    enclosed = [cell for cell in cells if re.fullmatch(r'"(?:[^"]|"")*"', cell)]
    return bool(cells) and (len(enclosed) == len(cells) or any('""' in cell[1:-1] for cell in enclosed))
