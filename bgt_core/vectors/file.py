"""Files of vectors, .npy or .safetensors, written as the rows come, in constant memory: whole or not there.

Beside OUT lies its record, OUT.json: what the rows are made of. Until OUT is complete there are OUT.partial, its rows
so far, and OUT.partial.json, the record that also says how many of them are safe on disk. Rows are on disk before a
record counts them, so whenever a process or its machine stops, what the record says is true.
"""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from bgt_core.errors import BgtError, DataError, NotFound, UsageError

SUFFIXES = (".npy", ".safetensors")
TENSOR = "vectors"  # the one tensor of a .safetensors file


class ResumableWriter:
    """Rows of `width` units that grow in OUT.partial, and become `out` when the `with` block ends well.

    After an error they stay, with their record. Nobody else can write the file meanwhile.
    """

    def __init__(self, out: Path, width: int):
        if out.suffix not in SUFFIXES:
            raise UsageError(f"{out}: write to a .npy or .safetensors file.")
        self.out, self.partial = out, out.with_name(out.name + ".partial")
        self.width, self.count, self.complete = width, 0, False

    def __enter__(self) -> ResumableWriter:
        with writing(self.out):
            if self.out.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            self.partial.touch()
            self.file = self.partial.open("r+b")
        if not self._alone():
            self.file.close()
            raise UsageError(f"{self.partial}: another process is writing it; wait for it, or choose another file.")
        return self

    def go_on(self, fingerprint: Mapping[str, object]) -> None:
        """Keeps the rows that are there, all of them if `out` is complete.

        `fingerprint` is what decides them, JSON. Raises BgtError where those in OUT.partial are made of something else.
        """
        self.fingerprint = {**fingerprint, "width": self.width}
        with suppress(BgtError):  # no such file, or none of ours: it will be replaced
            there, vectors = read(self.out)
            if there == self.fingerprint:
                self.count, self.complete = len(vectors), True
                return
        head, row = len(_header(self.out.suffix, 0, self.width)), 4 * self.width
        with writing(self.out):
            size = os.fstat(self.file.fileno()).st_size
            recorded = self._recorded() if size else 0
            self.count = recorded if head + row * recorded <= size else 0
            if not self.count:
                beside(self.partial).unlink(missing_ok=True)
            self.file.truncate(head + row * self.count)  # the rest was written, but not recorded
            self.file.seek(0, os.SEEK_END)

    def append(self, vectors: np.ndarray) -> None:
        """Adds (N, D). They are on disk before the record counts them, and counted when this returns."""
        with writing(self.out):
            self.file.write(np.ascontiguousarray(vectors, "<f4"))
            self.count += len(vectors)
            _sync(self.file)
            self._record()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        record = beside(self.partial)
        try:
            if kind is None and not self.complete:
                with writing(self.out):
                    self.file.seek(0)
                    self.file.write(_header(self.out.suffix, self.count, self.width))
                    _sync(self.file)
                    self._record()
                    beside(self.out).unlink(missing_ok=True)  # a file never lies beside another's record
                    os.replace(self.partial, self.out)
                    os.replace(record, beside(self.out))
        finally:
            if not record.exists():  # nothing to go on with
                self.partial.unlink(missing_ok=True)
            with suppress(OSError):  # a full disk refuses again what it refused before
                self.file.close()

    def _record(self) -> None:
        fresh = self.partial.with_name(self.partial.name + ".new")
        with fresh.open("w", encoding="utf-8") as file:
            json.dump({"rows": self.count, **self.fingerprint}, file, indent=1)
            _sync(file)
        os.replace(fresh, beside(self.partial))

    def _recorded(self) -> int:
        """Rows of OUT.partial that are on disk."""
        try:
            found = json.loads(beside(self.partial).read_text(encoding="utf-8"))
            count = int(found.pop("rows"))
        except FileNotFoundError:
            return 0
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError(f"{beside(self.partial)}: damaged; remove {self.partial} to begin anew.") from None
        if found != self.fingerprint:
            begun = f"{self.partial}: begun with {unlike(found, self.fingerprint)}"
            raise UsageError(f"{begun}; embed with the same to go on, or remove it to begin anew.")
        return count

    def _alone(self) -> bool:
        """Locks the file; False where another process has. The lock ends with the process, however that ends."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        there = self.partial.exists() and self.partial.stat()
        return there and os.path.samestat(there, os.fstat(self.file.fileno()))  # not just completed by another


def read(path: Path) -> tuple[dict[str, Any], np.ndarray]:
    """A complete file of vectors: (what they are made of, (N, D) float32 read from disk as it is used).

    Raises BgtError where the file or its record is absent, or they do not belong together.
    """
    try:
        fingerprint = json.loads(beside(path).read_text(encoding="utf-8"))
        shape = fingerprint.pop("rows"), fingerprint["width"]
        head = _header(path.suffix, *shape)
        with path.open("rb") as file:
            if file.read(len(head)) != head or path.stat().st_size != len(head) + 4 * shape[0] * shape[1]:
                raise ValueError(f"no {shape[0]} x {shape[1]} float32")
        return fingerprint, np.memmap(path, "<f4", "r", len(head), shape)
    except OSError as error:
        raise NotFound(f"{error.filename}: can't be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise DataError(
            f"{path}: damaged, or {beside(path).name} is not its record ({error}); embed it again."
        ) from None


def unlike(found: Mapping[str, object], expected: Mapping[str, object]) -> str:
    """What `found` says where it is not what is expected: "latent language, text 3fa8 ..."."""
    return ", ".join(f"{key} {str(found.get(key))[:16]}" for key in expected if found.get(key) != expected[key])


def beside(path: Path) -> Path:
    """The record of a file."""
    return path.with_name(path.name + ".json")


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Turns what the system says against writing `out` into BgtError."""
    try:
        yield
    except OSError as error:
        raise NotFound(f"{out}: can't be written ({error.strerror}).") from None


def _sync(file: IO) -> None:
    """Returns when what was written is on disk."""
    file.flush()
    os.fsync(file.fileno())


def _header(suffix: str, rows: int, width: int) -> bytes:
    """What comes before the rows: as long for any number of them, so that it can be written last."""
    if suffix == ".npy":
        file = io.BytesIO()
        npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)})
        return file.getvalue()
    tensor = {"dtype": "F32", "shape": [rows, width], "data_offsets": [0, 4 * rows * width]}
    text = json.dumps({TENSOR: tensor}).ljust(184)  # padding is part of the format
    return struct.pack("<Q", len(text)) + text.encode()
