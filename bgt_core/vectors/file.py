"""Files of vectors, .npy or .safetensors, written row by row, and continued after any stop (`files.resumable`)."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from bgt_core.files import read_json
from bgt_core.files.resumable import ResumableFile, record_path

SUFFIXES = (".npy", ".safetensors")
TENSOR = "vectors"  # the one tensor of a .safetensors file


class ResumableWriter(ResumableFile):
    """Rows of `width` units that grow in OUT.partial, and become `out` if the `with` block ends without an error."""

    maker, verb = "an encoder", "embed"

    def __init__(self, out: Path, width: int):
        if out.suffix not in SUFFIXES:
            raise UsageError(f"{out}: write to a .npy or .safetensors file.")
        super().__init__(out)
        self.width = width

    @property
    def count(self) -> int:
        """The number of rows so far."""
        return self.counts["rows"]

    def resume(self, provenance: Mapping[str, object], keep_complete: bool = True) -> None:
        """See `ResumableFile.resume`."""
        super().resume({**provenance, "width": self.width}, keep_complete)

    def append(self, vectors: np.ndarray) -> None:
        """Add (N, D). They are on disk before the record counts them, and recorded when this returns."""
        self._write(np.ascontiguousarray(vectors, "<f4").data, {"rows": len(vectors)})

    def _end(self, counts: Mapping[str, int]) -> int:
        return len(self._header()) + 4 * self.width * counts["rows"]

    def _header(self) -> bytes:
        return _header(self.out.suffix, self.count, self.width)

    def _finished(self) -> dict[str, int] | None:
        try:
            provenance, vectors = read(self.out)
        except BgtError:  # absent, or not one of our files: it will be replaced
            return None
        return {"rows": len(vectors)} if provenance == self.provenance else None


def read(path: Path) -> tuple[dict[str, Any], np.ndarray]:
    """Open a complete file of vectors: (its provenance, (N, D) float32 read from disk as it is used).

    Raises NotFound if the file or its record is absent, DataError if they do not belong together.
    """
    try:
        provenance = read_json(record_path(path))
        shape = provenance.pop("rows"), provenance["width"]
        head = _header(path.suffix, *shape)
        with path.open("rb") as file:
            if file.read(len(head)) != head or path.stat().st_size != len(head) + 4 * shape[0] * shape[1]:
                raise ValueError(f"no {shape[0]} x {shape[1]} float32")
        return provenance, np.memmap(path, "<f4", "r", len(head), shape)
    except NotFound:
        raise
    except OSError as error:
        raise NotFound(f"{error.filename}: can't be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        record = record_path(path).name
        raise DataError(f"{path}: damaged, or {record} is not its record ({error}); embed it again.") from None


def _header(suffix: str, rows: int, width: int) -> bytes:
    """The file header; its length does not depend on the number of rows, so that it can be written last."""
    if suffix == ".npy":
        file = io.BytesIO()
        npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)})
        return file.getvalue()
    tensor = {"dtype": "F32", "shape": [rows, width], "data_offsets": [0, 4 * rows * width]}
    text = json.dumps({TENSOR: tensor}).ljust(184)  # padding is part of the format
    return struct.pack("<Q", len(text)) + text.encode()
