"""Read files of translations (TSV, Moses, Parquet) as pairs of normalised sentences, and write them (TSV).

    `chunks` (rows of bytes) -> `check` (sound pairs) -> `Audit` (reports of bad rows)

Files are never held in memory: lines stream in, pairs stream out. The same pairs give the same bytes.
"""

from __future__ import annotations

import glob
import gzip
import io
import lzma
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import IO, NamedTuple, Protocol

import numpy as np
import zstandard

from bgt_core.data.columns import NAMES, SKIPPED, matching, primary, read_columns
from bgt_core.data.text import normalise
from bgt_core.data.textfile import STDIN, SUFFIXES, column_hint, line_lists, lines, no_number, number, uncompressed
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.files import alone, atomic_file, reading_parquet

EXAMPLES = 20  # number of bad lines that are kept as examples
ROWS = 4096  # rows of a Parquet file to read at once
SAMPLE = 1_000  # number of first rows that are tested for quotes around all cells
CHUNK = 2**18  # bytes of text handled together, about 2,500 pairs
TABLES = tuple(f".tsv{packed}" for packed in SUFFIXES)  # suffixes of tables that are written
LEVEL = 3  # Zstandard level: as small as gzip in a fifth of the time

Row = Sequence[bytes]  # one translation, one side per language
Bad = tuple[int, str, str]  # index of a row in its chunk, the reason, and a message with the found and expected value


@dataclass
class Skipped:
    """Lines that were skipped in reading: their number for each reason, and messages for the first ones."""

    counts: Counter[str] = field(default_factory=Counter)  # reason -> lines
    examples: list[str] = field(default_factory=list)  # "file:line: message"

    def add(self, reason: str, message: str) -> None:
        self.counts[reason] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(message)


def read_pairs(
    source: Path | str, langs: Sequence[str], skipped: Skipped, strict: bool = False
) -> Iterator[tuple[str, ...]]:
    """Read the translations of `source`, normalised, in the order of `langs`.

    `source` is a TSV (one column per language, in the order of `langs`, no quoting, no header), a Parquet file (columns
    named by language), or a prefix: `corpus` if `corpus.en` and `corpus.fr` exist, aligned by line (Moses). TSV and
    Moses files may end in .gz, .xz or .zst. Lines end at a line feed only. A column named "_" is skipped.

    A bad line is counted in `skipped` and left out; with `strict` it raises `BgtError`. `BgtError` is also raised for a
    source that is absent, empty, damaged, without a single good line, or whose files differ in their number of lines.
    """
    audit = Audit(source, langs, skipped, strict)
    for rows in chunks(source, langs):
        pairs, bad = check(rows, langs)
        audit.add(len(rows), bad)
        yield from pairs
    audit.end()


def sentences(
    sources: Iterable[Path | str],
    columns: Sequence[str],
    skipped: Skipped | None = None,
    strict: bool = False,
    without: int | None = None,
) -> Iterator[str]:
    """Yield every sentence of every column except number `without`, to train a tokenizer on; errors as in
    `read_pairs`."""
    for source in sources:
        for row in read_pairs(source, columns, Skipped() if skipped is None else skipped, strict):
            yield from (text for number, text in enumerate(row) if number != without)


def source_files(source: Path | str, langs: Sequence[str], *, once: bool = False) -> list[Path]:
    """List the files of a source: a single file, stdin ("-") or pipe, or a file per language for a Moses prefix.

    Raises NotFound if a file is missing, UsageError for stdin or a pipe unless the source is only read `once`.
    """
    source = Path(source)
    pipe = str(source) == STDIN or source.is_fifo() or source.is_char_device()
    if pipe and not once:
        raise UsageError(f"{source}: a pipe, but this text is read more than once; save it in a file first")
    if pipe or source.is_file():
        return [source]
    sides = [[path for end in SUFFIXES if (path := Path(f"{source}.{lang}{end}")).is_file()] for lang in langs]
    if not all(sides):  # files may have other language codes, as corpus.eng_Latn
        paths = filter(Path.is_file, sorted(source.parent.glob(f"{glob.escape(source.name)}.*")))
        beside = {uncompressed(path.name)[len(source.name) + 1 :]: path for path in paths}
        others = [matching(lang, beside) for lang in langs]
        sides = [side or ([beside[code]] if code else []) for side, code in zip(sides, others, strict=True)]
    if all(sides):
        return [paths[0] for paths in sides]
    if any(sides):
        absent = next(lang for lang, paths in zip(langs, sides, strict=True) if not paths)
        first = next(paths[0] for paths in sides if paths)
        raise NotFound(f"found {first}, but no {source}.{absent} beside it")
    what = f"{source} is a folder" if source.is_dir() else f"no file {source}"
    aligned = " and ".join(f"{source.name}.{lang}" for lang in langs)
    raise NotFound(f"{what}; expected a .tsv (.gz, .xz, .zst), a .parquet, or a prefix of {aligned}")


def chunks(source: Path | str, langs: Sequence[str]) -> Iterator[list[Row]]:
    """Yield the rows of `source`, unchecked, in lists of about `CHUNK` bytes; the last list may be empty."""
    files = source_files(source, langs, once=True)
    if len(files) == 1 and files[0].suffix != ".parquet":
        for part, some in enumerate(line_lists(files[0])):
            if part == 0:
                _check_plain(source, [line.split(b"\t") for line in some[:SAMPLE]], langs)
            count = max(1, len(some) * CHUNK // sum(map(len, some), len(some)))  # of lines per chunk
            for start in range(0, len(some), count):
                yield [line.split(b"\t") for line in some[start : start + count]]
        yield []
        return
    chunk: list[Row] = []
    size = 0
    for row in _moses(files) if len(files) > 1 else _parquet(files[0], langs):
        chunk.append(row)
        size += len(row) + sum(map(len, row))  # counts the separators too, so that empty lines have a size
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    yield chunk


def _check_plain(source: Path | str, rows: Sequence[Row], langs: Sequence[str]) -> None:
    """Raise DataError if a TSV begins with column names, or has quotes around all cells: both would be read as text."""
    names = [cell.decode("utf-8", "replace").strip().lower() for cell in rows[0]] if rows else []
    if len(names) == len(langs) and all(
        lang in (SKIPPED, name) or NAMES.get(name) == primary(lang) for name, lang in zip(names, langs, strict=True)
    ):
        raise DataError(f"{source}:1: names the columns, and would be read as a translation; remove the line")
    if len(rows) > 1 and all(len(cell) > 1 and cell[:1] == cell[-1:] == b'"' for row in rows for cell in row):
        raise DataError(f"{source}: every cell is quoted, and the quotes would be read as text; save it without quotes")


def check(rows: Sequence[Row], langs: Sequence[str]) -> tuple[list[tuple[str, ...]], list[Bad]]:
    """Return the sound rows, as normalised pairs without `SKIPPED` columns, and the errors of the other rows."""
    wanted = [number for number, lang in enumerate(langs) if lang != SKIPPED]
    if (sound := _all_sound(rows, len(langs), wanted)) is not None:
        return sound, []
    pairs: list[tuple[str, ...]] = []
    bad: list[Bad] = []
    for place, row in enumerate(rows):
        if len(row) != len(langs):
            columns = f"{len(row)} {'column' if len(row) == 1 else 'columns'}"
            hint = column_hint(b"\t".join(row).decode("utf-8", "replace"), len(langs))
            message = f"{columns}, expected {len(langs)} ({', '.join(langs)}){hint}"
            bad.append((place, "wrong number of columns", message))
            continue
        try:
            texts = [row[number].decode() for number in wanted]
        except UnicodeDecodeError as error:
            message = f"byte {error.object[error.start]:#04x} is not UTF-8; convert the file to UTF-8"
            bad.append((place, "not UTF-8", message))
            continue
        pair = tuple(map(normalise, texts))
        if "\0" in "".join(texts):
            bad.append((place, "NUL", "has a NUL; expected text"))
        elif not all(pair):
            bad.append((place, "empty side", f"the {langs[wanted[pair.index('')]]} side is empty; expected text"))
        else:
            pairs.append(pair)
    return pairs, bad


def _all_sound(rows: Sequence[Row], columns: int, wanted: Sequence[int]) -> list[tuple[str, ...]] | None:
    """Return the pairs if no row has an error, else None; decoding whole columns is twice as fast as single rows."""
    if not all(len(row) == columns for row in rows):
        return None
    try:
        texts = [b"\n".join([row[number] for row in rows]).decode() for number in wanted]
    except UnicodeDecodeError:
        return None
    cells = [text.split("\n") for text in texts]
    if any("\0" in text for text in texts) or any(len(column) != len(rows) for column in cells):
        return None
    pairs = list(zip(*(map(normalise, column) for column in cells), strict=True))
    return pairs if all(map(all, pairs)) else None


class Checked(NamedTuple):
    """N sound rows, with texts and numbers separated, and the errors of the other rows."""

    pairs: list[tuple[str, ...]]  # texts
    cells: list[str]  # texts of the column of numbers; empty without such a column
    values: np.ndarray  # (N,) float64, the same cells as numbers
    places: np.ndarray  # (N,) int64, the indices of the sound rows
    bad: list[Bad]


def check_labelled(rows: Sequence[Row], langs: Sequence[str], label: int) -> Checked:
    """Check rows as `check` does, and parse column `label` (an index among the columns read, or -1) as numbers."""
    pairs, bad = check(rows, langs)
    places = np.setdiff1d(np.arange(len(rows)), [place for place, *_ in bad])
    if label < 0:
        return Checked(pairs, [], np.zeros(0), places, bad)
    name, cells = read_columns(langs)[label], [pair[label] for pair in pairs]
    values = np.array([number(cell) for cell in cells])
    good = ~np.isnan(values)
    wrong = [(int(places[i]), "no number", f"the {name} {no_number(cells[i])}") for i in np.flatnonzero(~good)]
    kept = np.flatnonzero(good).tolist()
    texts = [pairs[i][:label] + pairs[i][label + 1 :] for i in kept]
    return Checked(texts, [cells[i] for i in kept], values[good], places[good], sorted([*bad, *wrong]))


@dataclass
class Audit:
    """Counts the rows of one source and reports the bad ones, or with `strict` raises an error for the first."""

    source: Path | str
    langs: Sequence[str]
    skipped: Skipped
    strict: bool
    rows: int = 0
    bad: int = 0
    first: str = ""  # the error of the first bad row

    def add(self, rows: int, bad: Sequence[Bad]) -> None:
        """Record the next chunk: its number of rows, and its bad rows; with `strict`, raise `BgtError` for the first
        bad row."""
        for place, reason, found in bad:
            message = f"{self.source}:{self.rows + place + 1}: {found}"
            if self.strict:
                raise DataError(message)
            self.first = self.first or message
            self.skipped.add(reason, message)
        self.rows += rows
        self.bad += len(bad)

    def end(self) -> None:
        """Raise `BgtError` if there was no row, or no sound row."""
        if not self.rows:
            raise DataError(f"{self.source} is empty; expected one translation per line, in {', '.join(self.langs)}")
        if self.bad == self.rows:
            raise DataError(f"none of the {self.rows} lines of {self.source} holds a translation; {self.first}")


def _moses(files: Sequence[Path]) -> Iterator[Row]:
    counts = [0] * len(files)
    for row in zip_longest(*map(lines, files)):
        counts = [count + (line is not None) for count, line in zip(counts, row, strict=True)]
        if None not in row:
            yield row
    if len(set(counts)) > 1:
        counted = ", ".join(f"{file} has {count}" for file, count in zip(files, counts, strict=True))
        raise DataError(f"line-aligned files need the same number of lines; {counted}")


def _parquet(file: Path, langs: Sequence[str]) -> Iterator[Row]:
    import pyarrow as pa  # slow to import, and only this format needs it
    import pyarrow.parquet as pq

    with reading_parquet(file), pq.ParquetFile(file) as table:
        types = dict(zip(table.schema_arrow.names, table.schema_arrow.types, strict=True))
        names = [matching(lang, types) or lang for lang in read_columns(langs)]
        langs = [lang if lang == SKIPPED else matching(lang, types) or lang for lang in langs]
        for lang in names:
            if lang not in types:
                raise DataError(f"{file} has no column {lang!r}; its columns are {', '.join(types)}")
            if not (pa.types.is_string(types[lang]) or pa.types.is_large_string(types[lang])):
                raise DataError(f"column {lang!r} of {file} holds {types[lang]}, expected text")
        for rows in table.iter_batches(ROWS, columns=list(names)):
            # as bytes, so that text that is not UTF-8 becomes a bad row, as in other files
            texts = {lang: rows.column(lang).fill_null("").cast(pa.large_binary()).to_pylist() for lang in names}
            yield from zip(*(texts.get(lang, [b""] * len(rows)) for lang in langs), strict=True)


@contextmanager
def pair_file(out: Path) -> Iterator[Callable[[Sequence[Row]], None]]:
    """Yield a function that adds rows of UTF-8 to `out`; the file appears, complete, if the block ends without error.

    Unfinished files of killed processes are removed. Raises UsageError if the suffix is not in `TABLES` or if another
    process is writing the file, NotFound if the file can't be written.
    """
    check_table(out)
    with alone(out), atomic_file(out) as partial, partial.open("wb") as raw, _compressed(raw, out.suffix) as file:

        def add(rows: Sequence[Row]) -> None:
            file.write(b"".join([b"\t".join(row) + b"\n" for row in rows]))

        yield add


def check_table(out: Path) -> None:
    """Raise UsageError for a name that does not end in one of `TABLES`."""
    if not out.name.endswith(TABLES):
        raise UsageError(f"{out}: expected a name ending in {', '.join(TABLES)}.")


def _compressed(raw: IO[bytes], kind: str) -> IO[bytes] | io.BufferedIOBase:
    if kind == ".gz":
        # without name and time, so that the same pairs give the same bytes
        return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
    if kind == ".xz":
        return lzma.open(raw, "wb")
    if kind == ".zst":
        return zstandard.ZstdCompressor(LEVEL).stream_writer(raw, closefd=False)
    return raw


class Translation(NamedTuple):
    """One translation of a sentence."""

    text: str
    cost: float  # negative log-likelihood, nats per token; NaN if the translator gives none


class SentenceTranslator(Protocol):
    """A translator: `generation.translate.BeamTranslator`, or an object of your own."""

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the translations, in one line."""

    def translate(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """Translate N sentences: the translations of each, the best first; empty for one that can't be translated."""
