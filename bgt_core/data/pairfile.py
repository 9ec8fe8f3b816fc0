"""Write pairs to files for `parallel`: TSV (plain, .gz, .xz, .zst) or Parquet; the bytes are deterministic."""

from __future__ import annotations

import gzip
import io
import lzma
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import zstandard

from bgt_core.data.parallel import Row
from bgt_core.errors import UsageError
from bgt_core.files import alone, atomic_file

SUFFIXES = (".tsv", ".tsv.gz", ".tsv.xz", ".tsv.zst", ".parquet")
GROUP = 2**16  # pairs of a Parquet row group
LEVEL = 3  # Zstandard level: as small as gzip in a fifth of the time

Add = Callable[[Sequence[Row]], None]


@contextmanager
def pair_file(out: Path, langs: Sequence[str]) -> Iterator[Add]:
    """A function that adds rows of UTF-8 to `out`, which appears, complete, when the `with` block ends without an
    error.

    A part that a killed process left is removed. Raises UsageError for a suffix that is not in `SUFFIXES` and while
    another process writes it, NotFound if it can't be written.
    """
    suffix(out)
    opened = _parquet if out.suffix == ".parquet" else _tsv
    with alone(out), atomic_file(out) as partial, opened(partial, out.suffix, langs) as add:
        yield add


def suffix(out: Path) -> str:
    """The suffix of the name, one of `SUFFIXES`; UsageError for another."""
    for ending in SUFFIXES:
        if out.name.endswith(ending):
            return ending
    raise UsageError(f"{out}: expected a name ending in {', '.join(SUFFIXES)}.")


@contextmanager
def _tsv(partial: Path, kind: str, langs: Sequence[str]) -> Iterator[Add]:
    with partial.open("wb") as raw, _compressed(raw, kind) as file:

        def add(rows: Sequence[Row]) -> None:
            file.write(b"".join([b"\t".join(row) + b"\n" for row in rows]))

        yield add


def _compressed(raw: IO[bytes], kind: str) -> IO[bytes] | io.BufferedIOBase:
    if kind == ".gz":
        # no name and no time, so that the same pairs give the same bytes
        return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
    if kind == ".xz":
        return lzma.open(raw, "wb")
    if kind == ".zst":
        return zstandard.ZstdCompressor(LEVEL).stream_writer(raw, closefd=False)
    return raw


@contextmanager
def _parquet(partial: Path, kind: str, langs: Sequence[str]) -> Iterator[Add]:
    import pyarrow as pa  # slow to import, and only this format needs it
    import pyarrow.parquet as pq

    schema = pa.schema([(lang, pa.string()) for lang in langs])
    waiting: list[Row] = []

    def write() -> None:
        texts = [pa.array(column, pa.binary()).cast(pa.string()) for column in zip(*waiting, strict=True)]
        file.write_batch(pa.record_batch(texts, schema=schema))
        waiting.clear()

    def add(rows: Sequence[Row]) -> None:
        waiting.extend(rows)
        if len(waiting) >= GROUP:
            write()

    with pq.ParquetWriter(partial, schema, compression="zstd") as file:
        yield add
        if waiting:
            write()
