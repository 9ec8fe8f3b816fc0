"""Shards of a file for parallel processes, and a check that a file is unchanged."""

from __future__ import annotations

from pathlib import Path

from bgt_core.data.textfile import uncompressed
from bgt_core.errors import UsageError


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
