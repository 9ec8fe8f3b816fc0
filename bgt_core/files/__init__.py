"""Files that are whole or absent, locks that end with their process, and hashes of what is on disk.

Everything that is kept is first written under another name beside its place and then renamed: who looks finds the old
file or the new one, never half of either, whenever the process or the machine stops.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from filelock import FileLock, Timeout

from bgt_core.errors import DataError, NotFound, UsageError

PARTIAL = ".partial"  # what the name of an unfinished file or folder ends in
# Machines that share a disk may number their processes alike.
MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:6]


@contextmanager
def writing(path: Path, way_out: str = "") -> Iterator[None]:
    """Turns what the system says against writing `path` into NotFound; `way_out` ends the message."""
    try:
        yield
    except OSError as error:
        raise NotFound(f"{path}: can't be written ({error.strerror or error}){way_out}.") from error


@contextmanager
def atomic_file(path: Path, way_out: str = "") -> Iterator[Path]:
    """A name beside `path` to write to; it becomes `path` when the block ends well, and is gone when it does not.

    Several processes may write the same file: the last one wins, whole. What those of this machine left that were
    killed is removed. Raises NotFound where it can't be written.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}-{MACHINE}{PARTIAL}")
    try:
        with writing(path, way_out):
            path.parent.mkdir(parents=True, exist_ok=True)
            for leftover in path.parent.glob(f"{glob.escape(path.name)}.*-{MACHINE}{PARTIAL}"):
                if not runs(leftover.name.removesuffix(f"-{MACHINE}{PARTIAL}").rpartition(".")[2]):
                    leftover.unlink(missing_ok=True)
            yield partial
            sync(partial)
            os.replace(partial, path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def runs(process: str) -> bool:
    """Whether a process of this machine is there, by its number; True where that can't be told."""
    if os.name != "posix" or not process.isdecimal():
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's; no number of a process
        return True
    return True


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """No other process writes `path` by this until the block ends; what killed ones left of it is removed.

    Raises UsageError while another does, NotFound where it can't be written.
    """
    lock = path.with_name(f"{path.name}{PARTIAL}.lock")
    with ExitStack() as held:
        with writing(path):
            if not held.enter_context(file_lock(lock)):
                raise UsageError(f"{path}: another process is writing it; wait for it, or choose another file.")
            held.callback(lock.unlink, missing_ok=True)
            for leftover in path.parent.glob(f"{glob.escape(path.name)}.[0-9]*{PARTIAL}"):
                leftover.unlink(missing_ok=True)
        yield


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `folder` when the block ends well, and is gone when it does not.

    Raises UsageError where `folder` is there already or another process writes it, NotFound where it can't be written.
    """
    partial = folder.with_name(folder.name + PARTIAL)
    with alone(folder), writing(folder):
        if folder.exists():
            raise UsageError(f"{folder}: is there already; name another folder or remove it.")
        remove(partial)
        partial.mkdir(parents=True)
        try:
            yield partial
            for path in partial.iterdir():
                sync(path)
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        sync(folder.parent)


def remove(path: Path) -> None:
    """A file, a link, or a folder with all it holds, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def parse_json(text: str | bytes, source: str) -> Any:
    """The value of a JSON document, by the standard alone: no NaN, no infinity.

    Raises DataError, which names `source`, for anything else, for nesting deeper than Python reads, and for whole
    numbers of thousands of digits.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:
        reason = "a number is too long" if "integer string conversion" in str(error) else str(error)
    raise DataError(f"{source}: not valid JSON ({reason}).")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def read_json(path: Path) -> Any:
    """The value of a JSON file in UTF-8. Raises NotFound where it can't be read, DataError as `parse_json`."""
    try:
        return parse_json(path.read_bytes(), str(path))
    except OSError as error:
        raise NotFound(f"{path}: can't be read ({error.strerror or error}).") from None


def json_lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a file of JSON lines, each with its line.

    Left out are lines that hold none, as a kill or a stranger leaves them, and one cut off at the end. NotFound where
    the file can't be read.
    """
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise NotFound(f"{path}: can't be read ({error.strerror or error}).") from None
    objects = []
    for line in lines:
        try:
            value = parse_json(line, str(path))
            if isinstance(value, dict) and line.endswith(b"\n"):
                objects.append((line.decode("utf-8"), value))
        except (DataError, UnicodeDecodeError):  # JSON may be UTF-16; we write none
            continue
    return objects


def write_text(path: Path, text: str) -> None:
    """`text` as the whole of `path`, in UTF-8; NotFound where it can't be written."""
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object, indent: int | None = 2) -> None:
    """A JSON document as the whole of `path`; NotFound where it can't be written."""
    write_text(path, json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


@contextmanager
def file_lock(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Whether the lock is ours until the block ends: always after waiting, else not while another process has it.

    The lock goes with its process, however that ends; the lock file stays. NotFound where it can't be written.
    """
    lock = FileLock(path, timeout=-1 if wait else 0.25)  # who only looks holds a lock for less
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(Timeout):
            lock.acquire()
    if not lock.is_locked:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def sha256_file(path: Path) -> str:
    """SHA-256 of the file's bytes, 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Ask the system to put a file or folder on disk before what is done next; Windows can't for folders."""
    with suppress(PermissionError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
