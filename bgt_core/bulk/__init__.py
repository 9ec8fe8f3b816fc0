"""Embed files of any size in constant memory: lines -> chunks -> encoder -> .npy or .safetensors.

    embed_file(bgt_core.load(), Path("text.txt.zst"), Path("vectors.npy"), lang="en")

If the process is killed, the same call continues, and gives the same bytes on the same kind of device with
the same number of threads; if the file is complete it does nothing (see `files.portions`). Encoders are told
apart by their `fingerprint`; files of an encoder without one are never continued.

Shards are for parallel processes, on one machine or many: shard (2, 4) embeds the second quarter of the lines
into vectors-00002-of-00004.npy. The parts in order equal the whole, bit for bit, because shards are cut between chunks;
`join` makes them one file. No two processes write to the same file, so any shared file system will do.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bgt_core import __version__
from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.data.textfile import line_lists, lines, uncompressed
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.files import (
    alone,
    atomic_file,
    check_output,
    describe_difference,
    discard_portions,
    portions,
    record_path,
    write_json,
    writing,
)
from bgt_core.vectors.file import SUFFIXES, header, read

CHUNK = 8_192  # lines embedded and written together
CHUNK_BYTES = 8 * 2**20  # of text; a chunk ends early after this many, so that long lines don't fill the memory


class Written(NamedTuple):
    """A complete file of vectors."""

    path: Path
    rows: int
    width: int  # units of a row


def embed_file(
    encoder: SentenceEncoder,
    source: Path,
    out: Path,
    *,
    lang: str,
    latent: str = SEMANTIC,
    shard: tuple[int, int] | None = None,
    report: Callable[[int, int], None] = lambda rows, total: None,
) -> Written:
    """Embed each line of `source`, empty ones too, as a row of `out`, in order.

    `source` is UTF-8 text: a file (plain, .gz, .xz, .zst), or "-" or a pipe. Stdin and pipes are first copied to a file
    beside `out`, so that the text can be checked before the work, and resumed if it comes again. `out` is a .npy of (N,
    D) float32, or a .safetensors with that as "vectors"; with `shard`, (number from 1, count), it is `part(out,
    *shard)`. An existing file is replaced when the new one is complete. `report` gets the number of rows done and of
    all rows, after each chunk.

    Raises NotFound if the text is absent or `out` can't be written, DataError for text that is damaged, blank, not
    UTF-8 or changed meanwhile, UsageError for a language or latent that the encoder lacks, and if another process is
    writing `out`, or `out` was begun from other text, with other settings, by another encoder, or by one without a
    fingerprint.
    """
    out = part(out, *shard) if shard else out
    check(out)
    width = encoder.embed([], lang=lang, latent=latent).shape[1]
    known = bool(encoder.fingerprint)
    with _file(source, out) as file:
        before = stat_signature(file)
        total, text = validate_and_hash(file, source)
        first, last = shard_range(total, *(shard or (1, 1)), CHUNK)
        inputs: dict[str, object] = {"lines": [first, last], "text": text, "lang": lang, "latent": latent}
        inputs |= {"encoder": encoder.fingerprint, "version": __version__, "width": width}
        if known and _is_made_from(out, inputs):
            discard_portions(out, inputs)
            report(last - first, last - first)
            return Written(out, last - first, width)
        with portions(out, inputs, maker="an encoder", known=known) as parts:

            def vectors(start: int, chunk: bytes) -> tuple[bytes, dict[str, int]]:
                rows = encoder.embed(_decode(chunk, start, source).split("\n"), lang=lang, latent=latent)
                return np.ascontiguousarray(rows, "<f4").tobytes(), {"rows": len(rows)}

            report(0, last - first)
            for start, chunk in _chunks(file, first, last):
                parts.make(start, partial(vectors, start, chunk))
                report(parts.counts["rows"], last - first)
            if parts.counts["rows"] != last - first or stat_signature(file) != before:
                raise DataError(f"{source}: changed while it was read; embed it again.")
            parts.join(header(out.suffix, last - first, width), lambda _: {"rows": last - first, **inputs})
    return Written(out, last - first, width)


def check(out: Path) -> None:
    """Raise UsageError for a name that is not one of a file of vectors, NotFound if it can't be made."""
    if out.suffix not in SUFFIXES:
        raise UsageError(f"{out}: write to a .npy or .safetensors file.")
    check_output(out)


def _is_made_from(out: Path, inputs: dict[str, object]) -> bool:
    try:
        return read(out)[0] == inputs
    except BgtError:  # absent, or not one of our files: it will be replaced
        return False


def join(out: Path, shards: int) -> Written:
    """Join the parts of `out` in order into one file, the same as without shards. The parts stay.

    Raises NotFound if one is absent, DataError if one is damaged, or made from other text, by another encoder or with
    other settings.
    """
    paths = [part(out, number, shards) for number in range(1, max(1, shards) + 1)]
    parts = [read(path) for path in paths]
    whole, end = parts[0][0], 0
    for path, (provenance, vectors) in zip(paths, parts, strict=True):
        expected = {**whole, "lines": [end, end := end + len(vectors)]}
        if provenance != expected:
            difference = describe_difference(provenance, expected)
            raise DataError(f"{path}: made with {difference}, unlike {paths[0]}; embed one of them again.")
    with alone(out), atomic_file(out) as work:
        with work.open("wb") as file:
            file.write(header(out.suffix, end, whole["width"]))
            for _, vectors in parts:
                vectors.tofile(file)
        record_path(out).unlink(missing_ok=True)  # a file must never be beside another file's record
    write_json(record_path(out), {"rows": end, **whole, "lines": [0, end]}, indent=1)
    return Written(out, end, whole["width"])


@contextmanager
def _file(source: Path, out: Path) -> Iterator[Path]:
    """A file that can be read twice: `source`, or for stdin or a pipe a copy, which is deleted afterwards."""
    if str(source) != "-" and not source.is_fifo():
        yield source
        return
    copy = out.with_name(f"{out.name}.partial.{os.getpid()}{source.suffix}")
    try:
        with writing(copy), copy.open("wb") as file:
            if str(source) == "-":
                shutil.copyfileobj(sys.stdin.buffer, file)
            else:
                with source.open("rb") as pipe:
                    shutil.copyfileobj(pipe, file)
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def validate_and_hash(file: Path, name: Path) -> tuple[int, str]:
    """Read all text before the work: (number of lines, their SHA-256). Raises DataError for the first error in it."""
    total, blank, digest = 0, True, hashlib.sha256()
    for some in line_lists(file, sentences=True, name=name):
        text = b"\n".join(some) + b"\n"
        _decode(text, total, name)
        total += len(some)
        blank = blank and not text.removeprefix(BOM_UTF8).strip()
        digest.update(text)
    if blank:
        raise DataError(f"{name}: empty; expected one sentence per line.")
    return total, digest.hexdigest()


def _chunks(file: Path, first: int = 0, last: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield lines `first` to `last`, many at a time: (lines of the file before them, the lines).

    Chunks end at multiples of CHUNK, so that the cuts do not depend on where reading began.
    """
    chunk: list[bytes] = []
    size = 0
    for number, line in enumerate(islice(lines(file), first, last), first + 1):
        chunk.append(line)
        size += len(line)
        if number % CHUNK == 0 or size >= CHUNK_BYTES:
            yield number - len(chunk), b"\n".join(chunk)
            chunk, size = [], 0
    if chunk:
        yield number - len(chunk), b"\n".join(chunk)


def _decode(chunk: bytes, first: int, name: Path) -> str:
    try:
        if "\0" not in (text := chunk.decode()):
            return text
    except UnicodeDecodeError as error:
        number = first + 1 + chunk.count(b"\n", 0, error.start)
        raise DataError(f"{name}:{number}: not UTF-8; convert the file to UTF-8.") from None
    number = first + 1 + chunk.count(b"\n", 0, chunk.index(b"\0"))
    raise DataError(f"{name}:{number}: has a NUL; expected text. To remove them: tr -d '\\0'")


def part(out: Path, number: int, shards: int) -> Path:
    """Name a shard of `out`: vectors.npy -> vectors-00002-of-00004.npy. Raises BgtError for an impossible shard."""
    if not 1 <= number <= shards:
        raise UsageError(f"{number}/{shards}: expected I/N, with I from 1 to N.", parameter="shard")
    stem = Path(uncompressed(out.name)).stem
    return out.with_name(f"{stem}-{number:05}-of-{shards:05}{out.name.removeprefix(stem)}")


def shard_range(total: int, number: int, shards: int, chunk: int) -> tuple[int, int]:
    """First row and last row + 1 of a shard: whole chunks, as even as possible."""
    chunks = -(-total // chunk)
    return min(total, chunk * (chunks * (number - 1) // shards)), min(total, chunk * (chunks * number // shards))


def stat_signature(file: Path) -> tuple[int, ...] | None:
    """A value that changes with the file; None if it is gone."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
