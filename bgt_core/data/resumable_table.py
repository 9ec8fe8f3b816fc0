"""A table that is written a portion at a time and continued after any stop (`files.resumable`), with a card.

A portion is compressed by itself, as a member, stream or frame of its own, which is what these formats are made of: a
file can then be cut after any portion and grow on, and files one after another are one file.
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

    `counts` are what is counted beside the bytes and the rows written.
    """

    def __init__(self, out: Path, columns: Sequence[str], counts: Sequence[str], maker: str, verb: str):
        """UsageError for a name with another ending. See `ResumableFile` for `maker` and `verb`."""
        self.suffix = suffix(out)
        if self.suffix == ".parquet":
            raise UsageError(f"{out}: Parquet can't be continued; write to a .tsv, .tsv.gz, .tsv.xz or .tsv.zst.")
        super().__init__(out, ("bytes", "rows", *counts))
        self.columns, self.maker, self.verb = tuple(columns), maker, verb
        self.about: manifest.Json = {}  # what the card says besides; at least the licence

    def append(self, rows: Sequence[Row], **counts: int) -> None:
        """Adds a portion of UTF-8 rows, and to each of the other counts."""
        data = compressed(b"".join([b"\t".join(row) + b"\n" for row in rows]), self.suffix) if rows else b""
        self._write(data, {"bytes": len(data), "rows": len(rows), **counts})

    def _end(self, counts: Mapping[str, int]) -> int:
        return counts["bytes"]

    def _finished(self) -> dict[str, int] | None:
        try:
            card = manifest.read_card(self.out) or {}
            counts = counts_of(card, self.counts)
            whole = manifest.facts(self.out)["bytes"] == counts["bytes"]
        except (BgtError, KeyError, TypeError, ValueError):  # none of ours: it will be replaced
            return None
        return counts if whole and not describe_difference(card, self.provenance) else None

    def _final_record(self) -> Mapping[str, object]:
        facts = {**manifest.facts(self.partial), "columns": list(self.columns), "rows": self.counts["rows"]}
        return {"schema": manifest.CARD, "file": facts, **self.about, **super()._final_record()}


def compressed(data: bytes, kind: str) -> bytes:
    """The bytes as files of that suffix hold them; the same bytes give the same."""
    if kind.endswith(".gz"):
        return gzip.compress(data, mtime=0)
    if kind.endswith(".xz"):
        return lzma.compress(data)
    if kind.endswith(".zst"):
        return zstandard.ZstdCompressor(LEVEL).compress(data)
    return data
