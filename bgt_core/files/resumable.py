"""Files that are written as their content comes, in constant memory, and continued after any stop: whole or absent.

Beside OUT lies its record, OUT.json: what decided the content. Until OUT is complete there are OUT.partial, what is
written so far, and OUT.partial.json, the record that also says how much of it is safe on disk. Content is on disk
before a record counts it, so whenever a process or its machine stops, what the record says is true.
"""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.files import PARTIAL, file_lock, read_json, sync, write_json, writing


class ResumableFile:
    """Bytes that grow in OUT.partial, and become `out` when the `with` block ends well.

    After an error they stay, with their record. A lock, OUT.partial.lock, keeps other processes from writing meanwhile.
    `counts` says how far the file has come: its rows, and whatever else a kind of file counts. A kind of file adds an
    `append`, `_end` and `_finished`, and may have a header and a record of its own.
    """

    maker: str  # in messages: who makes the content, as "an encoder",
    verb: str  # and what that one does, as "embed"
    file: BinaryIO

    def __init__(self, out: Path, counts: Iterable[str] = ("rows",)):
        self.out, self.partial = out, out.with_name(out.name + PARTIAL)
        self.lock = self.partial.with_name(self.partial.name + ".lock")
        self.counts, self.complete = dict.fromkeys(counts, 0), False
        self.provenance: dict[str, object] = {}

    def __enter__(self) -> Self:
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
        """Starts anew. UsageError where content is there: nothing tells whether it was made in the same way."""
        if os.fstat(self.file.fileno()).st_size and record_path(self.partial).exists():
            raise UsageError(
                f"{self.partial}: begun with {self.maker} that has no fingerprint, so nothing tells whether this is "
                "the same one; remove it to begin anew."
            )
        self.resume(provenance, keep_complete=False)

    def resume(self, provenance: Mapping[str, object], keep_complete: bool = True) -> None:
        """Keeps the content that is there, all of it if `out` is complete.

        `provenance`, JSON, is what decides it. Raises UsageError where that in OUT.partial came from something else.
        """
        self.provenance = dict(provenance)
        if keep_complete and (counts := self._finished()) is not None:
            self.counts, self.complete = counts, True
            return
        with writing(self.out):
            size = os.fstat(self.file.fileno()).st_size
            nothing = dict.fromkeys(self.counts, 0)
            counts = self._recorded() if size else nothing
            self.counts = counts if self._end(counts) <= size else nothing
            if not any(self.counts.values()):
                record_path(self.partial).unlink(missing_ok=True)
            for leftover in self.out.parent.glob(f"{glob.escape(record_path(self.partial).name)}.*{PARTIAL}"):
                leftover.unlink(missing_ok=True)  # of a process that was killed while it wrote the record
            self.file.truncate(self._end(self.counts))  # the rest was written, but not recorded
            self.file.seek(0, os.SEEK_END)

    def _write(self, data: bytes | memoryview, counts: Mapping[str, int]) -> None:
        """Adds bytes, and to every count. They are on disk before the record counts them, and counted when this
        returns."""
        with writing(self.out):
            self.file.write(data)
            self.counts = {name: count + counts[name] for name, count in self.counts.items()}
            self._record({**self.counts, **self.provenance})

    def _end(self, counts: Mapping[str, int]) -> int:
        """The bytes of a file that has come so far."""
        raise NotImplementedError

    def _finished(self) -> dict[str, int] | None:
        """The counts of `out` where it is complete and of this provenance; None for any other file, or none."""
        raise NotImplementedError

    def _header(self) -> bytes:
        """Its first bytes, written last: as many whatever the counts."""
        return b""

    def _final_record(self) -> Mapping[str, object]:
        """What lies beside the complete file; it holds counts and provenance."""
        return {**self.counts, **self.provenance}

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        record = record_path(self.partial)
        try:
            if kind is None and not self.complete:
                with writing(self.out):
                    self.file.seek(0)
                    self.file.write(self._header())
                    self.file.flush()
                    self._record(self._final_record())
                    record_path(self.out).unlink(missing_ok=True)  # a file never lies beside another's record
                    os.replace(self.partial, self.out)
                    os.replace(record, record_path(self.out))
        finally:
            if not record.exists():  # nothing to continue from
                self.partial.unlink(missing_ok=True)
            with suppress(OSError):  # a full disk refuses again what it refused before
                self._held.close()

    def _record(self, record: Mapping[str, object]) -> None:
        """Settles the content on disk, then says in the record how much there is."""
        self.file.flush()
        sync(self.partial)
        write_json(record_path(self.partial), record, indent=1)

    def _recorded(self) -> dict[str, int]:
        """How far OUT.partial has come on disk."""
        try:
            record = read_json(record_path(self.partial))
            counts = counts_of(record, self.counts)
        except NotFound:
            return dict.fromkeys(self.counts, 0)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError(f"{record_path(self.partial)}: damaged; remove {self.partial} to begin anew.") from None
        if difference := describe_difference(record, self.provenance):
            begun = f"{self.partial}: begun with {difference}"
            raise UsageError(f"{begun}; {self.verb} with the same to continue, or remove it to begin anew.")
        return counts


def counts_of(record: Mapping[str, Any], names: Iterable[str]) -> dict[str, int]:
    """These counts of a record; ValueError, KeyError or TypeError where they are not there."""
    return {name: int(record[name]) for name in names}


def describe_difference(record: Mapping[str, object], expected: Mapping[str, object]) -> str:
    """What `record` says where it is not what is expected: "latent language, text 3fa8..."; hashes cut short."""
    return ", ".join(
        f"{key} {' '.join(word[:16] for word in str(record.get(key)).split())}"
        for key in expected
        if record.get(key) != expected[key]
    )


def record_path(path: Path) -> Path:
    """The record of a file."""
    return path.with_name(path.name + ".json")
