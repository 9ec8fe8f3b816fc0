"""Files of vectors, .npy or .safetensors, written as the rows come, in constant memory: whole or absent.

Beside OUT lies its record, OUT.json: what decided the rows. Until OUT is complete there are OUT.partial, its rows
so far, and OUT.partial.json, the record that also says how many of them are safe on disk. Rows are on disk before a
record counts them, so whenever a process or its machine stops, what the record says is true.
"""

from __future__ import annotations

import errno
import glob
import io
import json
import os
import struct
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from bgt_core.files import PARTIAL, file_lock, sync, write_json, writing

SUFFIXES = (".npy", ".safetensors")
TENSOR = "vectors"  # the one tensor of a .safetensors file


class ResumableWriter:
    """Rows of `width` units that grow in OUT.partial, and become `out` when the `with` block ends well.

    After an error they stay, with their record. A lock, OUT.partial.lock, keeps other processes from writing meanwhile.
    """

    file: BinaryIO

    def __init__(self, out: Path, width: int):
        if out.suffix not in SUFFIXES:
            raise UsageError(f"{out}: write to a .npy or .safetensors file.")
        self.out, self.partial = out, out.with_name(out.name + PARTIAL)
        self.lock = self.partial.with_name(self.partial.name + ".lock")
        self.width, self.count, self.complete = width, 0, False

    def __enter__(self) -> ResumableWriter:
        with writing(self.out), ExitStack() as held:
            for is_wrong, code in ((self.out.is_dir(), errno.EISDIR), (not self.out.parent.is_dir(), errno.ENOENT)):
                if is_wrong:
                    raise OSError(code, os.strerror(code))
            if not held.enter_context(file_lock(self.lock)):
                raise UsageError(f"{self.partial}: another process is writing it; wait for it, or choose another file.")
            held.callback(self.lock.unlink, missing_ok=True)
            self.partial.touch()
            self.file = held.enter_context(self.partial.open("r+b"))
            self._held = held.pop_all()
        return self

    def begin(self, provenance: Mapping[str, object]) -> None:
        """Starts anew. UsageError where rows are there: nothing tells whether they were made in the same way."""
        if os.fstat(self.file.fileno()).st_size and record_path(self.partial).exists():
            raise UsageError(
                f"{self.partial}: begun with an encoder that has no fingerprint, so nothing tells whether this is the "
                "same one; remove it to begin anew."
            )
        self.resume(provenance, keep_complete=False)

    def resume(self, provenance: Mapping[str, object], keep_complete: bool = True) -> None:
        """Keeps the rows that are there, all of them if `out` is complete.

        `provenance`, JSON, is what decides them. Raises UsageError where those in OUT.partial came from something else.
        """
        self.provenance = {**provenance, "width": self.width}
        if keep_complete:
            with suppress(BgtError):  # no such file, or none of ours: it will be replaced
                complete, vectors = read(self.out)
                if complete == self.provenance:
                    self.count, self.complete = len(vectors), True
                    return
        head, row = len(_header(self.out.suffix, 0, self.width)), 4 * self.width
        with writing(self.out):
            size = os.fstat(self.file.fileno()).st_size
            recorded = self._recorded() if size else 0
            self.count = recorded if head + row * recorded <= size else 0
            if not self.count:
                record_path(self.partial).unlink(missing_ok=True)
            for leftover in self.out.parent.glob(f"{glob.escape(record_path(self.partial).name)}.*{PARTIAL}"):
                leftover.unlink(missing_ok=True)  # of a process that was killed while it wrote the record
            self.file.truncate(head + row * self.count)  # the rest was written, but not recorded
            self.file.seek(0, os.SEEK_END)

    def append(self, vectors: np.ndarray) -> None:
        """Adds (N, D). They are on disk before the record counts them, and counted when this returns."""
        with writing(self.out):
            self.file.write(np.ascontiguousarray(vectors, "<f4").data)
            self.count += len(vectors)
            self._record()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        record = record_path(self.partial)
        try:
            if kind is None and not self.complete:
                with writing(self.out):
                    self.file.seek(0)
                    self.file.write(_header(self.out.suffix, self.count, self.width))
                    self._record()
                    record_path(self.out).unlink(missing_ok=True)  # a file never lies beside another's record
                    os.replace(self.partial, self.out)
                    os.replace(record, record_path(self.out))
        finally:
            if not record.exists():  # nothing to continue from
                self.partial.unlink(missing_ok=True)
            with suppress(OSError):  # a full disk refuses again what it refused before
                self._held.close()

    def _record(self) -> None:
        """Settles the rows on disk, then says in the record how many there are."""
        self.file.flush()
        sync(self.partial)
        write_json(record_path(self.partial), {"rows": self.count, **self.provenance}, indent=1)

    def _recorded(self) -> int:
        """Rows of OUT.partial that are on disk."""
        try:
            record = json.loads(record_path(self.partial).read_text(encoding="utf-8"))
            count = int(record.pop("rows"))
        except FileNotFoundError:
            return 0
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError(f"{record_path(self.partial)}: damaged; remove {self.partial} to begin anew.") from None
        if record != self.provenance:
            begun = f"{self.partial}: begun with {describe_difference(record, self.provenance)}"
            raise UsageError(f"{begun}; embed with the same to continue, or remove it to begin anew.")
        return count


def read(path: Path) -> tuple[dict[str, Any], np.ndarray]:
    """A complete file of vectors: (what decided them, (N, D) float32 read from disk as it is used).

    Raises NotFound where the file or its record is absent, DataError where they do not belong together.
    """
    try:
        provenance = json.loads(record_path(path).read_text(encoding="utf-8"))
        shape = provenance.pop("rows"), provenance["width"]
        head = _header(path.suffix, *shape)
        with path.open("rb") as file:
            if file.read(len(head)) != head or path.stat().st_size != len(head) + 4 * shape[0] * shape[1]:
                raise ValueError(f"no {shape[0]} x {shape[1]} float32")
        return provenance, np.memmap(path, "<f4", "r", len(head), shape)
    except OSError as error:
        raise NotFound(f"{error.filename}: can't be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        record = record_path(path).name
        raise DataError(f"{path}: damaged, or {record} is not its record ({error}); embed it again.") from None


def describe_difference(record: Mapping[str, object], expected: Mapping[str, object]) -> str:
    """What `record` says where it is not what is expected: "latent language, text 3fa8..."; hashes cut short."""
    return ", ".join(
        f"{key} {' '.join(word[:16] for word in str(record.get(key)).split())}"
        for key in expected
        if record.get(key) != expected[key]
    )


def record_path(path: Path) -> Path:
    """The record of a file of vectors."""
    return path.with_name(path.name + ".json")


def _header(suffix: str, rows: int, width: int) -> bytes:
    """The file header; of the same length for any number of rows, so that it can be written last."""
    if suffix == ".npy":
        file = io.BytesIO()
        npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)})
        return file.getvalue()
    tensor = {"dtype": "F32", "shape": [rows, width], "data_offsets": [0, 4 * rows * width]}
    text = json.dumps({TENSOR: tensor}).ljust(184)  # padding is part of the format
    return struct.pack("<Q", len(text)) + text.encode()
