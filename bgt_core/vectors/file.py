"""Files of vectors, .npy or .safetensors, with a record of what made them: their header, and how they are read."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from bgt_core.errors import DataError, NotFound
from bgt_core.files import read_json, record_path

SUFFIXES = (".npy", ".safetensors")
TENSOR = "vectors"  # the one tensor of a .safetensors file


def read(path: Path) -> tuple[dict[str, Any], np.ndarray]:
    """Open a complete file of vectors: (its provenance, (N, D) float32 read from disk as it is used).

    Raises NotFound if the file or its record is absent, DataError if they do not belong together.
    """
    try:
        provenance = read_json(record_path(path))
        shape = provenance.pop("rows"), provenance["width"]
        head = header(path.suffix, *shape)
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


def header(suffix: str, rows: int, width: int) -> bytes:
    """The bytes before the float32 of a file of this suffix."""
    if suffix == ".npy":
        file = io.BytesIO()
        npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)})
        return file.getvalue()
    tensor = {"dtype": "F32", "shape": [rows, width], "data_offsets": [0, 4 * rows * width]}
    text = json.dumps({TENSOR: tensor}).ljust(184)  # padding is part of the format
    return struct.pack("<Q", len(text)) + text.encode()
