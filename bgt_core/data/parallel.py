"""Read files of translations (TSV, Moses, Parquet) as pairs of normalised sentences, and write such pairs (TSV).

`chunks` reads lines, `check` separates valid lines from bad lines, and `read_pairs` yields the pairs of valid lines.
Files are read in blocks, so the memory used does not grow with the size of a file. The same pairs always give the same
file, byte for byte.
"""

import glob
import gzip
import io
import lzma
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import zstandard

from bgt_core.data.columns import NAMES, SKIPPED, matching, primary, read_columns
from bgt_core.data.text import normalise
from bgt_core.data.textfile import STDIN, SUFFIXES, column_hint, line_lists, lines, no_number, number, uncompressed
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.files import alone, atomic_file, reading_parquet

EXAMPLES = 20  # maximum number of messages about invalid lines
ROWS = 4096  # number of rows of a Parquet or Moses file that are read together
SAMPLE = 1_000  # number of rows at the start of a TSV that are checked for quotes around all cells
TABLES = tuple(f".tsv{packed}" for packed in SUFFIXES)  # suffixes of the tables that can be written

Row = Sequence[bytes]  # the cells of one row, one per column
Bad = tuple[int, str, str]  # index of a bad row in the chunk, reason, message about the value


@dataclass
class Skipped:
    """The number of skipped bad lines for each reason, and messages about the first of them."""

    counts: Counter[str] = field(default_factory=Counter)  # reason -> number of lines
    examples: list[str] = field(default_factory=list)  # messages in the form "FILE:LINE: problem"

    def add(self, reason: str, message: str) -> None:
        self.counts[reason] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(message)


def read_pairs(
    source: Path | str, columns: Sequence[str], skipped: Skipped, strict: bool = False
) -> Iterator[tuple[str, ...]]:
    """Yield the rows of `source`, with normalised sentences.

    Args:
        source: A TSV (no quoting, no header), a Parquet file that has the columns `columns`, or the prefix of Moses
            files, which are aligned by line: `corpus` for `corpus.en` and `corpus.fr`. TSV and Moses files may end in
            .gz, .xz or .zst. Only a line feed ends a line.
        columns: The names of the columns, in the order of the file. A column named "_" is skipped.
        skipped: Counts the bad rows, which are left out.
        strict: Whether the first bad row raises an error; otherwise bad rows are left out.

    Raises:
        NotFound: A file is absent.
        DataError: The source is empty or damaged, or has no valid row; its files have different numbers of lines; or
            `strict` is true and a row is bad.
    """
    for chunk in checked_chunks(source, columns, skipped, strict):
        yield from chunk.rows


def source_files(source: Path | str, columns: Sequence[str], *, once: bool = False) -> list[Path]:
    """List the files of a source: a single file, stdin ("-") or a pipe; for a Moses prefix, one file per column.

    `once` states that the caller reads the source only once, as stdin and pipes require. Raises NotFound if a file is
    missing, and UsageError for stdin or a pipe if `once` is false.
    """
    source = Path(source)
    pipe = str(source) == STDIN or source.is_fifo() or source.is_char_device()
    if pipe and not once:
        raise UsageError(f"{source} is a pipe, but this text is read more than once; save it in a file first")
    if pipe or source.is_file():
        return [source]
    sides = [[path for end in SUFFIXES if (path := Path(f"{source}.{name}{end}")).is_file()] for name in columns]
    if not all(sides):  # file names may use other codes for the languages, as in corpus.eng_Latn
        paths = filter(Path.is_file, sorted(source.parent.glob(f"{glob.escape(source.name)}.*")))
        beside = {uncompressed(path.name)[len(source.name) + 1 :]: path for path in paths}
        others = [matching(name, beside) for name in columns]
        sides = [side or ([beside[code]] if code else []) for side, code in zip(sides, others, strict=True)]
    if all(sides):
        return [paths[0] for paths in sides]
    if any(sides):
        absent = next(name for name, paths in zip(columns, sides, strict=True) if not paths)
        first = next(paths[0] for paths in sides if paths)
        raise NotFound(f"found {first}, but no {source}.{absent} beside it")
    problem = f"{source} is a folder" if source.is_dir() else f"no file {source}"
    aligned = " and ".join(f"{source.name}.{name}" for name in columns)
    raise NotFound(f"{problem}; expected a .tsv (.gz, .xz, .zst), a .parquet file, or the prefix of {aligned}")


def chunks(source: Path | str, columns: Sequence[str]) -> Iterator[Sequence[Row]]:
    """Yield the rows of `source`, unchecked, in lists of up to a few thousand rows."""
    files = source_files(source, columns, once=True)
    if len(files) > 1:
        rows = _moses(files)
        while chunk := list(islice(rows, ROWS)):
            yield chunk
    elif files[0].suffix == ".parquet":
        yield from _parquet(files[0], columns)
    else:
        for part, some in enumerate(line_lists(files[0])):
            rows_of_block = [line.split(b"\t") for line in some]
            if part == 0:
                _check_plain(source, rows_of_block[:SAMPLE], columns)
            yield rows_of_block


def _check_plain(source: Path | str, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Raise DataError if a TSV has a header or quotes around all cells: both would be read as text."""
    header = [cell.decode("utf-8", "replace").strip().lower() for cell in rows[0]]
    if len(header) == len(columns) and all(
        name in (SKIPPED, cell) or NAMES.get(cell) == primary(name) for cell, name in zip(header, columns, strict=True)
    ):
        raise DataError(f"{source}:1: a header, which would be read as a translation; remove this line")
    if len(rows) > 1 and all(len(cell) > 1 and cell[:1] == cell[-1:] == b'"' for row in rows for cell in row):
        raise DataError(f"{source}: every cell is quoted, and the quotes would be read as text; save it without quotes")


class Checked(NamedTuple):
    """The N valid rows of a chunk of lines, and the errors of the invalid rows."""

    size: int  # number of rows of the chunk, including bad rows
    rows: list[tuple[str, ...]]  # normalised cells of the columns that are not skipped
    texts: list[tuple[str, ...]]  # the same rows without the label column
    values: np.ndarray  # (N,) float64, the label column; NaN without such a column
    places: np.ndarray  # (N,) int64, the indices of the valid rows in the chunk
    bad: list[Bad]


def check(rows: Sequence[Row], columns: Sequence[str], label: int = -1) -> Checked:
    """Normalise the valid rows of a chunk of lines, and describe the errors in the invalid rows.

    Args:
        rows: The cells of each row.
        columns: The names of the columns; columns named "_" are left out.
        label: The index of the label column, which contains numbers, among the columns not named "_"; -1 if there is no
            label column.
    """
    wanted = [place for place, column in enumerate(columns) if column != SKIPPED]
    sound = _by_columns(rows, wanted, len(columns)) if label < 0 else []
    bad: list[Bad] = []
    for place, row in enumerate([] if sound else rows):
        if len(row) != len(columns):
            hint = column_hint(b"\t".join(row).decode("utf-8", "replace"), len(columns))
            counted = f"{len(row)} {'column' if len(row) == 1 else 'columns'}"
            message = f"{counted}, expected {len(columns)} ({', '.join(columns)}){hint}"
            bad.append((place, "wrong number of columns", message))
            continue
        try:
            texts = b"\0".join([row[column] for column in wanted]).decode().split("\0")
        except UnicodeDecodeError as error:
            message = f"byte {error.object[error.start]:#04x} is not UTF-8; convert the file to UTF-8"
            bad.append((place, "not UTF-8", message))
            continue
        cells = tuple(map(normalise, texts))
        if len(cells) > len(wanted):
            bad.append((place, "NUL", "contains a NUL; expected text"))
        elif not all(cells):
            bad.append((place, "empty side", f"the {columns[wanted[cells.index('')]]} side is empty; expected text"))
        elif label >= 0 and math.isnan(number(cells[label])):
            bad.append((place, "no number", f"the {columns[wanted[label]]} {no_number(cells[label])}"))
        else:
            sound.append(cells)
    places = np.delete(np.arange(len(rows)), [place for place, *_ in bad])
    if label < 0:
        return Checked(len(rows), sound, sound, np.full(len(sound), np.nan), places, bad)
    texts_only = [row[:label] + row[label + 1 :] for row in sound]
    values = np.array([number(row[label]) for row in sound])
    return Checked(len(rows), sound, texts_only, values, places, bad)


def _by_columns(rows: Sequence[Row], wanted: Sequence[int], width: int) -> list[tuple[str, ...]]:
    """Check and normalise whole columns, which is faster than row by row; return [] if any row is bad."""
    try:
        columns = list(zip(*rows, strict=True))
        texts = [b"\0".join(columns[place]).decode().split("\0") for place in wanted]
        cells = list(zip(*(map(normalise, column) for column in texts), strict=True))
    except (ValueError, IndexError):
        return []
    return cells if (len(cells), len(columns)) == (len(rows), width) and all(map(all, cells)) else []


def checked_chunks(
    source: Path | str, columns: Sequence[str], skipped: Skipped, strict: bool = False, label: int = -1
) -> Iterator[Checked]:
    """Read and check `source` in chunks; the arguments and errors are those of `read_pairs`."""
    total = sound = 0
    first = ""  # message of the first bad row
    for rows in chunks(source, columns):
        checked = check(rows, columns, label)
        for place, reason, problem in checked.bad:
            message = f"{source}:{total + place + 1}: {problem}"
            if strict:
                raise DataError(message)
            first = first or message
            skipped.add(reason, message)
        total += len(rows)
        sound += len(checked.rows)
        yield checked
    if not total:
        raise DataError(f"{source} is empty; expected one translation per line, in {', '.join(columns)}")
    if not sound:
        raise DataError(f"none of the {total} lines of {source} is a translation; {first}")


def _moses(files: Sequence[Path]) -> Iterator[Row]:
    counts = [0] * len(files)
    for row in zip_longest(*map(lines, files)):
        counts = [count + (line is not None) for count, line in zip(counts, row, strict=True)]
        if None not in row:
            yield row
    if len(set(counts)) > 1:
        counted = ", ".join(f"{file} has {count}" for file, count in zip(files, counts, strict=True))
        raise DataError(f"line-aligned files need the same number of lines; {counted}")


def _parquet(file: Path, columns: Sequence[str]) -> Iterator[list[Row]]:
    import pyarrow as pa  # slow to import, and needed only for Parquet
    import pyarrow.parquet as pq

    with reading_parquet(file), pq.ParquetFile(file) as table:
        types = dict(zip(table.schema_arrow.names, table.schema_arrow.types, strict=True))
        columns = [name if name == SKIPPED else matching(name, types) or name for name in columns]
        names = read_columns(columns)
        for name in names:
            if name not in types:
                raise DataError(f"{file} has no column {name!r}; its columns are {', '.join(types)}")
            if not (pa.types.is_string(types[name]) or pa.types.is_large_string(types[name])):
                raise DataError(f"column {name!r} of {file} is of type {types[name]}; expected text")
        for rows in table.iter_batches(ROWS, columns=list(names)):
            # read cells as bytes, so that a cell that is not UTF-8 only makes its row invalid, as in other file formats
            texts = {name: rows.column(name).fill_null("").cast(pa.large_binary()).to_pylist() for name in names}
            yield list(zip(*(texts.get(name, [b""] * len(rows)) for name in columns), strict=True))


@contextmanager
def pair_file(out: Path) -> Iterator[Callable[[Sequence[Row]], None]]:
    """Yield a function that writes rows of UTF-8 cells. The complete file `out` appears when the `with` block ends.

    If the block raises an error, no file is left. Raises UsageError if the suffix is not in `TABLES` or another process
    is writing the file, NotFound if the file can't be written.
    """
    check_table(out)
    with alone(out), atomic_file(out) as partial, partial.open("wb") as raw, _compressed(raw, out.suffix) as file:

        def add(rows: Sequence[Row]) -> None:
            file.write(b"".join([b"\t".join(row) + b"\n" for row in rows]))

        yield add


def check_table(out: Path) -> None:
    """Raise UsageError unless the name of `out` ends in one of `TABLES`."""
    if not out.name.endswith(TABLES):
        raise UsageError(f"{out}: expected a name ending in {', '.join(TABLES)}.")


def _compressed(raw: IO[bytes], kind: str) -> IO[bytes] | io.BufferedIOBase:
    if kind == ".gz":
        # the header has no file name and no time, so that the same pairs give the same bytes
        return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
    if kind == ".xz":
        return lzma.open(raw, "wb")
    if kind == ".zst":
        # level 3 compresses as well as gzip, in a fifth of the time
        return zstandard.ZstdCompressor(3).stream_writer(raw, closefd=False)
    return raw


class Translation(NamedTuple):
    """A translation of a sentence, with its negative log-likelihood."""

    text: str
    cost: float  # negative log-likelihood in nats per token; NaN if the translator computes none
