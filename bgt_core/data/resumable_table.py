"""A table with a card that is written in portions, and can be continued after any stop (`files.resumable`).

Each portion is compressed by itself, as a separate member, stream or frame, which these formats allow: a
file can then be cut after any portion and extended, and files can be concatenated.
"""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path

import zstandard

from bgt_core.data import manifest
from bgt_core.data.pairfile import LEVEL, suffix
from bgt_core.data.parallel import Row
from bgt_core.errors import BgtError, UsageError
from bgt_core.files.resumable import ResumableFile, counts_of, describe_difference


class ResumableTable(ResumableFile):
    """Rows of `columns` that grow in OUT.partial, a TSV (plain, .gz, .xz or .zst); OUT.json becomes its card.

    `counts` are counters beside those of bytes and rows.
    """

    def __init__(self, out: Path, columns: Sequence[str], counts: Sequence[str], maker: str, verb: str):
        """UsageError for a name with another ending. See `ResumableFile` for `maker` and `verb`."""
        self.suffix = suffix(out)
        if self.suffix == ".parquet":
            raise UsageError(f"{out}: Parquet can't be continued; write to a .tsv, .tsv.gz, .tsv.xz or .tsv.zst.")
        super().__init__(out, ("bytes", "rows", *counts))
        self.columns, self.maker, self.verb = tuple(columns), maker, verb
        self.about: manifest.Json = {}  # further entries of the card; at least the licence

    def append(self, rows: Sequence[Row], **counts: int) -> None:
        """Add a portion of UTF-8 rows, and increase each of the other counters."""
        data = compressed(b"".join([b"\t".join(row) + b"\n" for row in rows]), self.suffix) if rows else b""
        self._write(data, {"bytes": len(data), "rows": len(rows), **counts})

    def _end(self, counts: Mapping[str, int]) -> int:
        return counts["bytes"]

    def _finished(self) -> dict[str, int] | None:
        try:
            card = manifest.read_card(self.out) or {}
            counts = counts_of(card, self.counts)
            whole = manifest.facts(self.out)["bytes"] == counts["bytes"]
        except (BgtError, KeyError, TypeError, ValueError):  # not one of our files: it will be replaced
            return None
        return counts if whole and not describe_difference(card, self.provenance) else None

    def _final_record(self) -> Mapping[str, object]:
        facts = {**manifest.facts(self.partial), "columns": list(self.columns), "rows": self.counts["rows"]}
        return {"schema": manifest.CARD, "file": facts, **self.about, **super()._final_record()}


def compressed(data: bytes, kind: str) -> bytes:
    """Compress bytes for files of that suffix; the result is deterministic."""
    if kind.endswith(".gz"):
        return gzip.compress(data, mtime=0)
    if kind.endswith(".xz"):
        return lzma.compress(data)
    if kind.endswith(".zst"):
        return zstandard.ZstdCompressor(LEVEL).compress(data)
    return data
