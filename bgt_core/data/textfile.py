"""Read text files line by line, and parse the numbers in their cells.

Only a line feed ends a line. Other characters stay unchanged, or raise an error that names the character.
"""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import math
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import zstandard

from bgt_core.errors import DataError, NotFound

if TYPE_CHECKING:
    from io import BufferedReader

SUFFIXES = ("", ".gz", ".xz", ".zst")
LONGEST_LINE = 16 * 2**20  # in bytes; longer lines raise an error, because they are hardly text
BLOCK = 2**18  # number of bytes that are read together, about 2,500 pairs of sentences
STDIN = "-"
NOT_TEXT = {  # first bytes of a file that is not plain text -> its format, and what to do
    b"\x1f\x8b": "compressed by gzip; end its name in .gz",
    b"\xfd7zXZ\0": "compressed by xz; end its name in .xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; end its name in .zst",
    b"BZh91AY&SY": "compressed by bzip2; unpack it",
    b"PAR1\x15": "a Parquet file; save its column as text, or if a table is expected, end its name in .parquet",
    b"PK\x03\x04": "a zip archive, as .xlsx and .docx are; save it as plain text",
    b"\xd0\xcf\x11\xe0": "an Office document; save it as plain text",
    b"%PDF-": "a PDF; save it as plain text",
    b"{\\rtf": "an RTF document; save it as plain text",
    **dict.fromkeys((b"<!DOCTYPE html", b"<!doctype html", b"<html", b"<HTML"), "a web page; save it as plain text"),
    b"\x93NUMPY": "an array of numbers (.npy); give its text",
}
WIDE = ("UTF-32LE", "UTF-32BE", "UTF-16LE", "UTF-16BE")
MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
NEW_LINES = r"tr '\r' '\n'"  # the command that converts carriage returns to line feeds
SAMPLE = 4_096  # number of bytes at the start of a file from which the encoding is guessed; a multiple of 4
QUOTED_CSV = re.compile(rb'"(?:[^"]|"")*"(?:[,;]"(?:[^"]|"")*")+\r?')
RECORDS = (".csv", ".json", ".jsonl", ".ndjson")  # suffixes of files that never have one sentence per line


def text_lines(path: Path, *, sentences: bool = False, name: Path | None = None) -> Iterator[tuple[int, str]]:
    """Yield the number (from 1) and the text of each line of a UTF-8 file (plain, .gz, .xz or .zst) or of stdin ("-").

    Line ends and a byte order mark are removed. See `line_lists` for the arguments and for further errors. Raises
    DataError, which names the file and the line, for text that is not UTF-8 or contains a NUL.
    """
    blocks = line_lists(path, sentences=sentences, name=name)
    for number, line in enumerate(chain.from_iterable(blocks), 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{name or path}:{number}: not UTF-8; convert the file to UTF-8.") from None
        if "\0" in text:
            raise DataError(f"{name or path}:{number}: contains a NUL; expected text. To remove NULs: tr -d '\\0'")
        yield number, text


def lines(file: Path) -> Iterator[bytes]:
    """Yield the lines of a file one by one, without line ends; see `line_lists` for the errors."""
    return chain.from_iterable(line_lists(file))


def line_lists(file: Path, *, sentences: bool = False, name: Path | None = None) -> Iterator[list[bytes]]:
    """Yield the lines of a file in lists, one list for each block of the file; line ends are removed.

    `file` is a plain, .gz, .xz or .zst file, or "-" for stdin. If it is a copy, `name` is its name in messages. With
    `sentences`, each line must be one sentence: JSON, files whose suffix is in `RECORDS`, tables (a tab in the first
    line, or in most lines of the first block) and a carriage return inside a line raise a DataError. Other reasons for
    it are a file that is cut short, damaged, not text, or in UTF-16 or UTF-32, and a line of more than 16 MiB.
    """
    name, rest, count = name or file, b"", 0
    for block in chain(filter(None, _blocks(file, name)), [b""]):
        if not count and not rest:
            _check_start(block, name)
        text = rest + block
        *whole, rest = text.split(b"\n")
        if not block and rest:  # the last line has no line feed
            whole, rest = [rest], b""
        if len(rest) > LONGEST_LINE:
            raise DataError(
                f"{name} has a line of more than {LONGEST_LINE} bytes; expected text, one sentence per line"
            )
        if whole:
            if sentences:
                _check_sentences(whole, count, name)
            if b"\r" in text:
                whole = [line.removesuffix(b"\r") for line in whole]
            yield whole
            count += len(whole)


def uncompressed(name: str) -> str:
    """Remove the suffix of a compressed file from its name: "fr.txt.xz" -> "fr.txt"."""
    suffix = Path(name).suffix
    return name.removesuffix(suffix) if suffix in SUFFIXES else name


def column_hint(line: str, columns: int) -> str:
    """Guess why a line has a wrong number of columns; return a hint for the end of the message, or ""."""
    if "\r" in line:
        return "; it has a carriage return inside: end lines in a line feed"
    for mark in ";,|" if "\t" not in line else "":
        try:
            if len(next(csv.reader([line], delimiter=mark), ())) == columns:
                return f"; if '{mark}' separates them, save the table with tabs"
        except csv.Error:  # csv rejects a cell of more than 131,072 characters
            continue
    return ""


def _check_start(block: bytes, name: Path) -> None:
    """Raise DataError if the first block shows that a file is not UTF-8 text with line feeds."""
    if kind := next((kind for start, kind in NOT_TEXT.items() if block.startswith(start)), ""):
        raise DataError(f"{name}: {kind}.")
    if encoding := next((each for start, each in MARKS.items() if block.startswith(start)), "") or _wide(block):
        raise DataError(f"{name} is in {encoding}; save it as UTF-8, for example by iconv -f {encoding} -t UTF-8")
    if b"\r" in block.rstrip(b"\r") and b"\n" not in block:
        raise DataError(f"{name}: its lines end in a carriage return alone; convert them to line feeds: {NEW_LINES}")


def _wide(block: bytes) -> str:
    """Guess whether a block of bytes is UTF-16 or UTF-32 text with line feeds; return the encoding, or ""."""
    sample = block[:SAMPLE]
    for encoding in WIDE if b"\0" in sample else ():
        text = sample[: len(sample) // 4 * 4].decode(encoding, "replace")
        good = sum(char.isprintable() or char.isspace() for char in text)
        if "\n" in text and "\N{REPLACEMENT CHARACTER}" not in text[:-1] and good > 0.95 * len(text):
            return encoding
    return ""


def _check_sentences(some: list[bytes], before: int, name: Path) -> None:
    """Raise DataError unless each line in `some` is one sentence; `before` lines precede them."""
    expected = "expected one sentence per line"
    number, line = next(((row, line) for row, line in enumerate(some, before + 1) if line.strip()), (0, b""))
    if not before and number:
        kind = Path(uncompressed(name.name)).suffix.lower()
        is_json = False
        with suppress(ValueError, RecursionError):
            is_json = line.lstrip()[:1] in (b"{", b"[") and isinstance(json.loads(line), dict | list)
        if kind in RECORDS or QUOTED_CSV.fullmatch(line) or is_json:
            kind = kind if kind in RECORDS else "quoted CSV" if line.startswith(b'"') else "JSON"
            raise DataError(f"{name}: has records ({kind}); {expected}. Save the sentences as plain text.")
        with_tab = sum(b"\t" in each for each in some)
        if b"\t" in line or 2 * with_tab > sum(bool(each.strip()) for each in some):
            cells = next(each for each in some if b"\t" in each).decode("utf-8", "replace").split("\t")
            shown = " | ".join(cell[:30] for cell in cells[:4]) + " | ..." * (len(cells) > 4)
            problem = f"{name}:{number}: {len(cells)} columns ({shown}); {expected}"
            raise DataError(f"{problem}. Take one column, for example by cut -f1")
    for number, line in enumerate(some, before + 1):
        if b"\r" in line.rstrip(b"\r"):
            problem = f"{name}:{number}: a carriage return inside the line; {expected}"
            raise DataError(f"{problem}. Replace it: {NEW_LINES}")


def _blocks(file: Path, name: Path) -> Iterator[bytes]:
    if str(file) == STDIN:
        while block := cast("BufferedReader", sys.stdin.buffer).read1(BLOCK):
            yield block
        return
    try:
        opened: Callable[..., BinaryIO] = {".gz": gzip.open, ".xz": lzma.open}.get(file.suffix, open)  # type: ignore[assignment]
        with opened(file, "rb") as raw:
            if file.suffix == ".zst":
                yield from _unzst(raw)  # reads the file to its end, so that the loop below ends at once
            while block := raw.read(BLOCK):
                yield block
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        raise DataError(f"{name} is cut short or damaged: {error}; fetch it again") from error
    except OSError as error:
        raise NotFound(f"{name}: can't be read ({error.strerror})") from error


def _unzst(raw: BinaryIO) -> Iterator[bytes]:
    """Decompress a .zst file frame by frame, because the file reader of zstandard accepts truncated files."""
    frame = None
    while block := raw.read(BLOCK // 8):
        while block:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            yield frame.decompress(block)
            block, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame:
        raise EOFError("the last frame is incomplete")


# The following functions parse numbers in the cells of a table.


def number(text: str) -> float:
    """Parse a finite number, whose decimal mark, if any, is a point. Return NaN for any other text."""
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def no_number(text: str) -> str:
    """Return the end of an error message about a cell that is not a number; the caller puts the column's name first."""
    return f"is not a number: {text.strip()[:60]!r}; expected one with a decimal point, as 4.5"
