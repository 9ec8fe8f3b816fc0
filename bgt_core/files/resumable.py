"""Files that are written in portions, in constant memory, and continued after any stop; the file is complete or absent.

OUT.json, beside OUT, records the inputs that determine the content. Until OUT is complete, OUT.partial holds the
content written so far, and OUT.partial.json is a record that also counts how much of it is safe on disk. Content is on
disk before the record counts it, so the record is correct whenever a process or its machine stops.
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
    """Bytes that grow in OUT.partial, and become `out` if the `with` block ends without an error.

    After an error they stay, with their record. A lock, OUT.partial.lock, keeps other processes from writing. `counts`
    is the progress of the file: its rows, and other counts of its kind. A subclass for a kind of file adds `append`,
    `_end` and `_finished`, and may have a header and its own record.
    """

    maker: str  # for messages: the producer of the content, as "an encoder"
    verb: str  # and its action, as "embed"
    file: BinaryIO

    def __init__(self, out: Path, counts: Iterable[str] = ("rows",)):
        self.out, self.partial = out, out.with_name(out.name + PARTIAL)
        self.lock = self.partial.with_name(self.partial.name + ".lock")
        self.counts, self.complete = dict.fromkeys(counts, 0), False
        self.provenance: dict[str, object] = {}
        self.known = True  # whether its maker has a fingerprint, so that it can be continued

    def __enter__(self) -> Self:
        self.check()
        with writing(self.out), ExitStack() as held:
            if not held.enter_context(file_lock(self.lock)):
                raise UsageError(f"{self.partial}: another process is writing it; wait for it, or choose another file.")
            held.callback(self.lock.unlink, missing_ok=True)
            self.partial.touch()
            self.file = held.enter_context(self.partial.open("r+b"))
            self._held = held.pop_all()
        return self

    def check(self) -> None:
        """Raise NotFound if `out` is a folder, or its own folder does not exist."""
        with writing(self.out):
            for is_wrong, code in ((self.out.is_dir(), errno.EISDIR), (not self.out.parent.is_dir(), errno.ENOENT)):
                if is_wrong:
                    raise OSError(code, os.strerror(code))

    def begin(self, provenance: Mapping[str, object]) -> None:
        """Start over. UsageError if there is content, because its inputs are unknown."""
        self.known = False
        if os.fstat(self.file.fileno()).st_size and record_path(self.partial).exists():
            raise UsageError(
                f"{self.partial}: begun with {self.maker} that has no fingerprint, so it may be another one "
                "now; remove it to start over."
            )
        self.resume(provenance, keep_complete=False)

    def resume(self, provenance: Mapping[str, object], keep_complete: bool = True) -> None:
        """Keep the existing content, all of it if `out` is complete.

        `provenance`, JSON, describes the inputs. Raises UsageError if OUT.partial was begun from others.
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
                leftover.unlink(missing_ok=True)  # left by a process that was killed while it wrote the record
            self.file.truncate(self._end(self.counts))  # the rest was written, but not recorded
            self.file.seek(0, os.SEEK_END)

    def _write(self, data: bytes | memoryview, counts: Mapping[str, int]) -> None:
        """Add bytes, and increase the counts; both are on disk when this returns, the bytes first."""
        with writing(self.out):
            self.file.write(data)
            self.counts = {name: count + counts[name] for name, count in self.counts.items()}
            self._record({**self.counts, **self.provenance})

    def _end(self, counts: Mapping[str, int]) -> int:
        """The size in bytes of a file with these counts."""
        raise NotImplementedError

    def _finished(self) -> dict[str, int] | None:
        """The counts of `out` if it is complete and has this provenance; None for any other file, or none."""
        raise NotImplementedError

    def _header(self) -> bytes:
        """The header, written last; its size does not depend on the counts."""
        return b""

    def _final_record(self) -> Mapping[str, object]:
        """The record beside the complete file; it holds counts and provenance."""
        return {**self.counts, **self.provenance}

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        record = record_path(self.partial)
        try:
            if kind is None and not self.complete:
                with writing(self.out):
                    self.file.seek(0)
                    self.file.write(self._header())
                    self.file.flush()
                    self._record(self._final_record())
                    record_path(self.out).unlink(missing_ok=True)  # a file must never be beside another file's record
                    os.replace(self.partial, self.out)
                    os.replace(record, record_path(self.out))
        finally:
            if not record.exists():  # no earlier content
                self.partial.unlink(missing_ok=True)
            elif isinstance(error, KeyboardInterrupt):
                after = f" after row {self.counts['rows']:,}" if self.counts["rows"] else ""
                way = f"the same command continues {self.out}{after}" if self.known else f"remove {self.partial}"
                error.add_note(f"Stopped; {way}.")
            with suppress(OSError):  # on a full disk this fails as the write before
                self._held.close()

    def _record(self, record: Mapping[str, object]) -> None:
        """Sync the content to disk, then record its size."""
        self.file.flush()
        sync(self.partial)
        write_json(record_path(self.partial), record, indent=1)

    def _recorded(self) -> dict[str, int]:
        """The counts of OUT.partial on disk."""
        try:
            record = read_json(record_path(self.partial))
            counts = counts_of(record, self.counts)
        except NotFound:
            return dict.fromkeys(self.counts, 0)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError(f"{record_path(self.partial)}: damaged; remove {self.partial} to start over.") from None
        if difference := describe_difference(record, self.provenance):
            begun = f"{self.partial}: begun with {difference}"
            raise UsageError(f"{begun}; {self.verb} with the same to continue, or remove it to start over.")
        return counts


def counts_of(record: Mapping[str, Any], names: Iterable[str]) -> dict[str, int]:
    """Read these counts from a record; ValueError, KeyError or TypeError if one is missing or invalid."""
    return {name: int(record[name]) for name in names}


def describe_difference(record: Mapping[str, object], expected: Mapping[str, object]) -> str:
    """The entries of `record` that differ from the expected ones: "latent language, text 3fa8..."; hashes are
    shortened."""
    return ", ".join(
        f"{key} {' '.join(word[:16] for word in str(record.get(key)).split())}"
        for key in expected
        if record.get(key) != expected[key]
    )


def record_path(path: Path) -> Path:
    """The path of a file's record."""
    return path.with_name(path.name + ".json")
