"""Files of translations to pairs of normalised sentences: TSV, Moses, Parquet.

Nothing here holds a file in memory: lines stream in, pairs stream out.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

import zstandard

from bgt_core.errors import BadInput
from bgt_core.text import normalise

SUFFIXES = ("", ".gz", ".xz", ".zst")
LONGEST_LINE = 16 * 2**20  # bytes; a longer one is no text, and would fill the memory
EXAMPLES = 20  # of bad lines that are kept
ROWS = 4096  # of a Parquet file read together
BLOCK = 2**20  # bytes read together


@dataclass
class Skipped:
    """What reading left out: how many lines for each reason, and the first of them."""

    counts: Counter[str] = field(default_factory=Counter)  # reason -> lines
    examples: list[str] = field(default_factory=list)  # "file:line: what was found and what is expected"

    def add(self, reason: str, message: str) -> None:
        self.counts[reason] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(message)


def read_pairs(
    source: Path | str, langs: Sequence[str], skipped: Skipped, strict: bool = False
) -> Iterator[tuple[str, ...]]:
    """Translations of `source`, normalised, in the order of `langs`.

    `source` is a TSV (one column a language, in the order of `langs`, no quoting, no header), a Parquet file (columns
    named by language), or a prefix: `corpus` where `corpus.en` and `corpus.fr` exist, aligned by line (Moses).
    TSV and Moses files may end in .gz, .xz or .zst. Lines end at a line feed and nowhere else.

    A bad line is counted in `skipped` and left out; with `strict` it raises `BadInput`. So does a source that is
    absent, empty, damaged, without a single good line, or whose files differ in their number of lines.
    """
    files = source_files(source, langs)
    good = number = 0
    first = ""
    for number, row in enumerate(_rows(files, langs), start=1):
        pair, reason, message = _check(row, langs)
        if pair:
            good += 1
            yield pair
            continue
        message = f"{source}:{number}: {message}"
        if strict:
            raise BadInput(message)
        first = first or message
        skipped.add(reason, message)
    if not number:
        raise BadInput(f"{source} is empty; expected one translation a line, in {', '.join(langs)}")
    if not good:
        raise BadInput(f"none of the {number} lines of {source} holds a translation; {first}")


def sentences(
    sources: Iterable[Path | str], langs: Sequence[str], skipped: Skipped | None = None, strict: bool = False
) -> Iterator[str]:
    """Every sentence of every language, to train a tokenizer on; errors as in `read_pairs`."""
    for source in sources:
        for pair in read_pairs(source, langs, Skipped() if skipped is None else skipped, strict):
            yield from pair


def source_files(source: Path | str, langs: Sequence[str]) -> list[Path]:
    """The file that `source` names, or one a language where it is a Moses prefix; `BadInput` where none exists."""
    source = Path(source)
    if source.is_file():
        return [source]
    sides = [[path for end in SUFFIXES if (path := Path(f"{source}.{lang}{end}")).is_file()] for lang in langs]
    if all(sides):
        return [paths[0] for paths in sides]
    if any(sides):
        absent = next(lang for lang, paths in zip(langs, sides, strict=True) if not paths)
        found = next(paths[0] for paths in sides if paths)
        raise BadInput(f"found {found}, but no {source}.{absent} beside it", exit_code=3)
    what = f"{source} is a folder" if source.is_dir() else f"no file {source}"
    aligned = " and ".join(f"{source.name}.{lang}" for lang in langs)
    raise BadInput(f"{what}; expected a .tsv (.gz, .xz, .zst), a .parquet, or a prefix of {aligned}", exit_code=3)


def _check(row: Sequence[bytes | None], langs: Sequence[str]) -> tuple[tuple[str, ...] | None, str, str]:
    """(the normalised translation, "", "") or (None, the reason, what was found and what is expected)."""
    if len(row) != len(langs):
        columns = "column" if len(row) == 1 else "columns"
        return None, "wrong number of columns", f"{len(row)} {columns}, expected {len(langs)} ({', '.join(langs)})"
    try:
        pair = tuple(normalise(side.decode()) if side else "" for side in row)
    except UnicodeDecodeError as error:
        return None, "not UTF-8", f"byte {error.object[error.start]:#04x} is not UTF-8; convert the file to UTF-8"
    if not all(pair):
        return None, "empty side", f"the {langs[pair.index('')]} side is empty; expected text"
    return pair, "", ""


def _rows(files: Sequence[Path], langs: Sequence[str]) -> Iterator[Sequence[bytes | None]]:
    if len(files) > 1:
        return _moses(files)
    if files[0].suffix == ".parquet":
        return _parquet(files[0], langs)
    return (line.split(b"\t") for line in lines(files[0]))


def _moses(files: Sequence[Path]) -> Iterator[Sequence[bytes]]:
    counts = [0] * len(files)
    for row in zip_longest(*map(lines, files)):
        counts = [count + (line is not None) for count, line in zip(counts, row, strict=True)]
        if None not in row:
            yield row
    if len(set(counts)) > 1:
        found = ", ".join(f"{file} has {count}" for file, count in zip(files, counts, strict=True))
        raise BadInput(f"line-aligned files need the same number of lines; {found}")


def _parquet(file: Path, langs: Sequence[str]) -> Iterator[Sequence[bytes | None]]:
    import pyarrow as pa  # slow to import, and only this format needs it
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as table:
            types = dict(zip(table.schema_arrow.names, table.schema_arrow.types, strict=True))
            for lang in langs:
                if lang not in types:
                    raise BadInput(f"{file} has no column {lang!r}; its columns are {', '.join(types)}")
                if not (pa.types.is_string(types[lang]) or pa.types.is_large_string(types[lang])):
                    raise BadInput(f"column {lang!r} of {file} holds {types[lang]}, expected text")
            for rows in table.iter_batches(ROWS, columns=list(langs)):
                # as bytes, so that bad UTF-8 is a bad line here too
                columns = [rows.column(lang).cast(pa.large_binary()).to_pylist() for lang in langs]
                yield from zip(*columns, strict=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInput(f"{file} is not a Parquet file, or is damaged: {error}") from error


def lines(file: Path) -> Iterator[bytes]:
    """Lines of a file (plain, .gz, .xz, .zst) as bytes, without their line feed and a carriage return before it.

    Raises `BadInput` for a file that is absent, cut short or damaged, and for a line of more than 16 MiB.
    """
    rest = b""
    for block in _blocks(file):
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r")
        if len(rest) > LONGEST_LINE:
            raise BadInput(f"{file} has a line of more than {LONGEST_LINE} bytes; expected text, one sentence a line")
    if rest:
        yield rest.removesuffix(b"\r")


def _blocks(file: Path) -> Iterator[bytes]:
    try:
        with {".gz": gzip.open, ".xz": lzma.open}.get(file.suffix, open)(file, "rb") as raw:
            if file.suffix == ".zst":
                yield from _unzst(raw)  # to the end of the file
            while block := raw.read(BLOCK):
                yield block
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        raise BadInput(f"{file} is cut short or damaged: {error}; fetch it again") from error
    except OSError as error:
        raise BadInput(f"{file}: can't be read ({error.strerror})", exit_code=3) from error


def _unzst(raw: BinaryIO) -> Iterator[bytes]:
    """Frame by frame: zstandard's own file reader takes a truncated file for a complete one."""
    frame = None
    while block := raw.read(BLOCK // 8):
        while block:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            yield frame.decompress(block)
            block, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame:
        raise EOFError("the last frame has no end")
