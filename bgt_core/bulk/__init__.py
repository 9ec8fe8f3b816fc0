"""Embed the lines of a file of any size into a .npy or .safetensors file, chunk by chunk in constant memory.

    embed_file(bgt_core.load(), Path("text.txt.zst"), Path("vectors.npy"), lang="en")

A file of vectors is written completely or not at all. The file is not computed again if text and settings are the same
and the encoder has the same `fingerprint`. An empty fingerprint never counts as the same.

Shards divide the work among processes: shard (2, 4) embeds the second quarter of the lines into
vectors-00002-of-00004.npy. Shards consist of whole chunks, so the shards joined in order equal the file made without
shards, bit for bit.
"""

import errno
import hashlib
import io
import json
import os
import shutil
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from bgt_core import __version__
from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.data.textfile import text_lines, uncompressed
from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from bgt_core.files import alone, atomic_file, read_json, record_path, write_json, writing

SUFFIXES = (".npy", ".safetensors")
CHUNK = 8_192  # number of lines that are embedded and written together
CHUNK_BYTES = 8 * 2**20  # maximum number of bytes of a chunk, so that long lines don't fill the memory


class Written(NamedTuple):
    """A complete file of vectors, and the shape of its array."""

    path: Path
    rows: int
    width: int  # size of a vector


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
    """Embed each line of the file `source`, even empty lines, and write the vectors to the rows of `out` in order.

    Args:
        encoder: Any encoder of sentences.
        source: UTF-8 text: a file (plain, .gz, .xz, .zst), "-" for stdin, or a pipe. Stdin and pipes are first copied
            to a file beside `out`, so that all text is checked before any of it is embedded.
        out: A .npy file of (N, D) float32, or a .safetensors file with this array as "vectors". An existing file is
            replaced when the new one is complete.
        lang: The language of the text.
        latent: The latent to embed, such as "semantic".
        shard: (i, n): embed only shard i of n shards, counted from 1, and write it to `part(out, i, n)`.
        report: Called after each chunk with the number of rows done and the number of all rows.

    Raises:
        NotFound: The text is absent, or `out` can't be written.
        DataError: The text is damaged, blank, not UTF-8, or has changed while it was embedded.
        UsageError: The encoder lacks the language or the latent, or another process is writing `out`.
    """
    out = part(out, *shard) if shard else out
    check(out)
    width = encoder.embed([], lang=lang, latent=latent).shape[1]
    with _file(source, out) as file:
        before = stat_signature(file)
        total, text = validate_and_hash(file, source)
        first, last = shard_range(total, *(shard or (1, 1)), CHUNK)
        rows = last - first
        inputs: dict[str, object] = {"lines": [first, last], "text": text, "lang": lang, "latent": latent}
        inputs |= {"encoder": encoder.fingerprint, "version": __version__, "width": width}
        with suppress(BgtError):  # if `read` fails, `out` is written anew below
            if encoder.fingerprint and read(out)[0] == inputs:
                report(rows, rows)
                return Written(out, rows, width)

        def vectors() -> Iterator[np.ndarray]:
            done = 0
            report(done, rows)
            for chunk in _chunks(text_lines(file, name=source), first, last):
                of_chunk = encoder.embed(chunk, lang=lang, latent=latent)
                yield of_chunk
                done += len(of_chunk)
                report(done, rows)
            if done != rows or stat_signature(file) != before:
                raise DataError(f"{source}: changed while it was read; embed it again.")

        return _write(out, rows, width, vectors(), inputs)


def _write(out: Path, rows: int, width: int, vectors: Iterable[np.ndarray], inputs: Mapping[str, object]) -> Written:
    """Write a file of vectors, and a JSON file that describes the text and encoder from which they were made."""
    with alone(out), atomic_file(out) as work:
        with work.open("wb") as file:
            file.write(header(out.suffix, rows, width))
            for some in vectors:
                file.write(np.ascontiguousarray(some, "<f4").data)
        record_path(out).unlink(missing_ok=True)  # the old JSON file must not describe the new vectors
    write_json(record_path(out), {"rows": rows, **inputs}, indent=1)
    return Written(out, rows, width)


def check(out: Path) -> None:
    """Raise UsageError unless `out` ends in one of `SUFFIXES`, NotFound if the file can't be written."""
    if out.suffix not in SUFFIXES:
        raise UsageError(f"{out}: write to a .npy or .safetensors file.")
    check_output(out)


def check_output(out: Path) -> None:
    """Raise NotFound if `out` is a folder, or if its parent folder does not exist."""
    with writing(out):
        for is_wrong, code in ((out.is_dir(), errno.EISDIR), (not out.parent.is_dir(), errno.ENOENT)):
            if is_wrong:
                raise OSError(code, os.strerror(code))


def join(out: Path, shards: int) -> Written:
    """Join all shards of `out` into one file, which equals the file made without shards. The shards are kept.

    Raises NotFound if a shard is absent. Raises DataError if a shard is damaged, or if its text, encoder or settings
    differ from those of the first shard.
    """
    paths = [part(out, number, shards) for number in range(1, max(1, shards) + 1)]
    parts = [read(path) for path in paths]
    whole, end = parts[0][0], 0
    for path, (made, vectors) in zip(paths, parts, strict=True):
        expected = {**whole, "lines": [end, end := end + len(vectors)]}
        if other := [f"{key} {str(made.get(key))[:16]}" for key in expected if made.get(key) != expected[key]]:
            raise DataError(f"{path}: made with {', '.join(other)}, unlike {paths[0]}; embed one of the two again.")
    return _write(out, end, whole["width"], (vectors for _, vectors in parts), {**whole, "lines": [0, end]})


@contextmanager
def _file(source: Path, out: Path) -> Iterator[Path]:
    """Yield a file that can be read twice: `source` itself, or a temporary copy of stdin or of a pipe."""
    if str(source) != "-" and not source.is_fifo():
        yield source
        return
    copy = out.with_name(f"{out.name}.partial.{os.getpid()}{source.suffix}")
    try:
        pipe = nullcontext(sys.stdin.buffer) if str(source) == "-" else source.open("rb")
        with writing(copy), pipe as opened, copy.open("wb") as file:
            shutil.copyfileobj(opened, file)
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def validate_and_hash(file: Path, name: Path) -> tuple[int, str]:
    """Check all text for errors before any of it is embedded; return (number of lines, SHA-256 of the text)."""
    total, blank, digest = 0, True, hashlib.sha256()
    for number, line in text_lines(file, sentences=True, name=name):
        total = number
        blank = blank and not line.strip()
        digest.update(f"{line}\n".encode())
    if blank:
        raise DataError(f"{name}: empty; expected one sentence per line.")
    return total, digest.hexdigest()


def _chunks(numbered: Iterable[tuple[int, str]], first: int, last: int) -> Iterator[list[str]]:
    """Group lines `first` to `last` - 1 into chunks. The ends of chunks do not depend on `first` or `last`."""
    chunk: list[str] = []
    size = 0
    for number, line in islice(numbered, first, last):
        chunk.append(line)
        size += len(line.encode())
        if number % CHUNK == 0 or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def part(out: Path, number: int, shards: int) -> Path:
    """Return the file name of a shard: vectors.npy -> vectors-00002-of-00004.npy; UsageError for an invalid number."""
    if not 1 <= number <= shards:
        raise UsageError(f"{number}/{shards}: expected I/N, with I from 1 to N.", parameter="shard")
    stem = Path(uncompressed(out.name)).stem
    return out.with_name(f"{stem}-{number:05}-of-{shards:05}{out.name.removeprefix(stem)}")


def shard_range(total: int, number: int, shards: int, chunk: int) -> tuple[int, int]:
    """Return (first row, last row + 1) of a shard. The sizes of shards differ by at most one whole chunk."""
    chunks = -(-total // chunk)
    return min(total, chunk * (chunks * (number - 1) // shards)), min(total, chunk * (chunks * number // shards))


def stat_signature(file: Path) -> tuple[int, ...] | None:
    """Return a value that changes whenever the file is written or replaced; None if the file is absent."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def read(path: Path) -> tuple[dict[str, Any], np.ndarray]:
    """Open a file of vectors: return its description, and the vectors, (N, D) float32, mapped from disk.

    The description, a JSON file beside the vectors, contains the text's hash, the encoder and the settings. Raises
    NotFound if one of the two files is absent, DataError if they do not match.
    """
    try:
        provenance = read_json(record_path(path))
        shape = provenance.pop("rows"), provenance["width"]
        head = header(path.suffix, *shape)
        with path.open("rb") as file:
            if file.read(len(head)) != head or path.stat().st_size != len(head) + 4 * shape[0] * shape[1]:
                raise ValueError(f"expected an array of {shape[0]} x {shape[1]} float32")
        return provenance, np.memmap(path, "<f4", "r", len(head), shape)
    except NotFound:
        raise
    except OSError as error:
        raise NotFound(f"{error.filename}: can't be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        record = record_path(path).name
        raise DataError(f"{path}: damaged, or {record} describes another file ({error}); embed it again.") from None


def header(suffix: str, rows: int, width: int) -> bytes:
    """Return the bytes that precede the float32 values in a .npy or .safetensors file of this shape."""
    if suffix == ".npy":
        file = io.BytesIO()
        npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)})
        return file.getvalue()
    tensor = {"dtype": "F32", "shape": [rows, width], "data_offsets": [0, 4 * rows * width]}
    text = json.dumps({"vectors": tensor}).ljust(184)  # pad the header with spaces, which the format allows
    return struct.pack("<Q", len(text)) + text.encode()
