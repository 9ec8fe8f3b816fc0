"""Files of any size to files of vectors, in constant memory: lines -> chunks -> Embedder -> .npy or .safetensors.

    embed_file(bgt_core.load(), Path("text.txt.zst"), Path("vectors.npy"), lang="en")

Killed at any moment, the same call goes on where it was, and ends in the same bytes on the same kind of device with
the same number of threads; where the file is complete it does nothing. `vectorfile` says how.

Shards are for processes side by side, on one machine or many: shard (2, 4) embeds the second quarter of the lines
into vectors-00002-of-00004.npy. The parts in order are the whole, bit for bit, as shards are cut where chunks are;
`join` makes them one file. No two processes write to one file, so any shared file system will do.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bgt_core import __version__
from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.data.parallel import lines
from bgt_core.errors import DataError, UsageError
from bgt_core.vectors.file import ResumableWriter, read, unlike, writing

if TYPE_CHECKING:
    from bgt_core.embedder import Embedder

CHUNK = 8_192  # lines embedded and written together
CHUNK_BYTES = 8 * 2**20  # of text, after which a chunk ends early: many long lines don't fill the memory


class Written(NamedTuple):
    """A complete file of vectors."""

    path: Path
    rows: int
    width: int  # units of a row


def embed_file(
    embedder: SentenceEncoder,
    source: Path,
    out: Path,
    *,
    lang: str,
    latent: str = SEMANTIC,
    shard: tuple[int, int] | None = None,
    made_by: Mapping[str, str] | None = None,
    report: Callable[[int, int], None] = lambda rows, total: None,
) -> Written:
    """SentenceEncoder each line of `source`, empty ones too, as a row of `out`; order kept.

    `source` is UTF-8 text: a file (plain, .gz, .xz, .zst), or "-" or a pipe, which is first copied to a file beside
    `out`, so that it too is checked before the work and can be gone on with when it comes again. `out` is a .npy of
    (N, D) float32, or a .safetensors with that as "vectors"; with `shard`, (number from 1, of how many), it is
    `part(out, *shard)`. A file of that name is replaced when the new one is complete. `made_by` says what decides the
    vectors of a text where the encoder is not ours. `report` gets the rows done and all rows, after each chunk.

    Raises `BgtError` for text that is absent, damaged, blank, not UTF-8 or changed meanwhile, for a language or latent
    that the model lacks, and where `out` can't be written, is being written by another process, or was begun from
    other text, by another model or with other settings.
    """
    if shard:
        out = part(out, *shard)
    width = embedder.embed([], lang=lang, latent=latent).shape[1]
    with ResumableWriter(out, width) as rows, _file(source, out) as file:
        before = _stamp(file)
        total, text = survey(file, source)
        first, last = _range(total, *(shard or (1, 1)))
        rows.go_on(
            {"lines": [first, last], "text": text, "lang": lang, "latent": latent, **(made_by or _made_by(embedder))}
        )
        report(rows.count, last - first)
        for start, chunk in _chunks(file, first + rows.count, last):
            rows.append(embedder.embed(_texts(chunk, start, source), lang=lang, latent=latent))
            report(rows.count, last - first)
        if rows.count != last - first or _stamp(file) != before:
            raise DataError(f"{source}: changed while it was read; embed it again.")
    return Written(out, rows.count, width)


def part(out: Path, number: int, shards: int) -> Path:
    """Where a shard of `out` goes: vectors.npy -> vectors-00002-of-00004.npy. Raises BgtError for no such shard."""
    if not 1 <= number <= shards:
        raise UsageError(f"Shard {number}/{shards}: expected I/N, with I from 1 to N.")
    return out.with_name(f"{out.stem}-{number:05}-of-{shards:05}{out.suffix}")


def join(out: Path, shards: int) -> Written:
    """Writes the parts of `out` in order into one file, the same as without shards. The parts stay.

    Raises `BgtError` where one is absent, damaged, or made of other text, by another model or with other settings.
    """
    paths = [part(out, number, shards) for number in range(1, max(1, shards) + 1)]
    parts = [read(path) for path in paths]
    whole, end = parts[0][0], 0
    for path, (fingerprint, vectors) in zip(paths, parts, strict=True):
        expected = {**whole, "lines": [end, end := end + len(vectors)]}
        if fingerprint != expected:
            raise DataError(f"{path}: made with {unlike(fingerprint, expected)}, unlike {paths[0]}; embed one again.")
    with ResumableWriter(out, whole["width"]) as rows:
        rows.go_on({**whole, "lines": [0, end]})
        for fingerprint, vectors in parts:
            todo = vectors[rows.count - fingerprint["lines"][0] :]
            for start in range(0, len(todo), CHUNK):
                rows.append(todo[start : start + CHUNK])
    return Written(out, rows.count, rows.width)


@contextmanager
def _file(source: Path, out: Path) -> Iterator[Path]:
    """A file that can be read twice: `source`, or while it is needed a copy of it, where it is stdin or a pipe."""
    if str(source) != "-" and not source.is_fifo():
        yield source
        return
    copy = out.with_name(out.name + ".partial.text" + source.suffix)
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


def survey(file: Path, name: Path) -> tuple[int, str]:
    """Reads text through before the work: (lines, sha256 of them), and every error there is in it."""
    total, blank, seen = 0, True, hashlib.sha256()
    for first, chunk in _chunks(file):
        total = first + len(_texts(chunk, first, name))
        blank = blank and not chunk.strip()
        seen.update(chunk + b"\n")
    if blank:
        raise DataError(f"{name}: empty; expected one sentence a line.")
    return total, seen.hexdigest()


def _chunks(file: Path, first: int = 0, last: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Lines `first` to `last`, many at a time: (lines of the file before them, the lines).

    A chunk ends where CHUNK divides the lines before it, so that the cuts do not depend on where reading began.
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


def _texts(chunk: bytes, first: int, name: Path) -> list[str]:
    try:
        return chunk.decode().split("\n")
    except UnicodeDecodeError as error:
        number = first + 1 + chunk.count(b"\n", 0, error.start)
        raise DataError(f"{name}:{number}: not UTF-8; convert the file to UTF-8.") from None


def _range(total: int, number: int, shards: int) -> tuple[int, int]:
    """First and last + 1 of the lines of a shard: whole chunks, as evenly as they go."""
    chunks = -(-total // CHUNK)
    return min(total, CHUNK * (chunks * (number - 1) // shards)), min(total, CHUNK * (chunks * number // shards))


def _stamp(file: Path) -> tuple[int, ...] | None:
    """What changes when a file does; None where it is gone."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _made_by(embedder: Embedder) -> dict[str, str]:
    """What decides the vectors of a text, beside language and latent."""
    seen = hashlib.sha256(embedder.tokenizer.model)
    for name, value in embedder.model.named_parameters():
        seen.update(name.encode() + value.detach().float().cpu().numpy().tobytes())
    computed = {"device": embedder.device.type, "precision": embedder.precision}
    return {"model": seen.hexdigest(), **computed, "version": __version__}
