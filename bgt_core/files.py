"""Write files that are always complete, lock files, read JSON and Parquet, and hash files.

Every file is first written under a temporary name in the same folder, and then renamed. So a reader always finds the
old file or the new one, even if the process or the machine stops while the file is written.
"""

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

from bgt_core import PRETRAINED
from bgt_core.errors import BgtError, DataError, NotFound, UsageError

OF_FILES = ("sentence-transformers", "onnx", "vectors", "split")  # kinds of encoders that may be named KIND:PATH
PARTIAL = ".partial"  # Suffix of an unfinished file or folder.
# Temporary names contain MACHINE, which differs between machines, because two machines may write to the same disk.
MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:6]


@contextmanager
def writing(path: Path, way_out: str = "") -> Iterator[None]:
    """Turn an OSError while `path` is written into NotFound, whose message ends with the advice `way_out`."""
    try:
        yield
    except OSError as error:
        raise NotFound(f"{path}: can't be written ({error.strerror or error}){way_out}.") from error


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` if the block ends without an error, else delete it.

    If several processes write the same file, the file of the last one to finish stays. Temporary files left by
    killed processes of this machine are deleted. Raises NotFound if the file can't be written.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}-{MACHINE}{PARTIAL}")
    try:
        with writing(path):
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
    """Test whether the process with this process id is running on this machine; return True if that can't be known."""
    if os.name != "posix" or not process.isdecimal():
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # the process belongs to another user, or the number is too large
        return True
    return True


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Lock `path` against other writers until the block ends; delete temporary files left by killed processes.

    Raises UsageError if another process is writing `path`, NotFound if `path` can't be written.
    """
    lock = path.with_name(f"{path.name}{PARTIAL}.lock")
    with ExitStack() as held:
        with writing(path):
            if not held.enter_context(file_lock(lock)):
                raise UsageError(f"{path}: another process is writing it; wait, or choose another path.")
            held.callback(lock.unlink, missing_ok=True)
            for leftover in path.parent.glob(f"{glob.escape(path.name)}.[0-9]*{PARTIAL}"):
                leftover.unlink(missing_ok=True)
        yield


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder to fill; rename it to `folder` if the block ends without an error, else delete it.

    Raises UsageError if `folder` exists or another process is writing it, NotFound if it can't be written.
    """
    partial = folder.with_name(folder.name + PARTIAL)
    with alone(folder), writing(folder):
        check_absent(folder)
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


def check_absent(folder: Path, parameter: str = "") -> None:
    """Raise UsageError if `folder` exists already."""
    if folder.exists():
        raise UsageError(f"{folder}: exists already; choose another folder, or remove it.", parameter=parameter)


def lasting_name(encoder: str) -> str:
    """Make the path in an encoder's name absolute: "runs/a" -> "/me/runs/a", "split:b" -> "split:/me/b".

    So an encoder can be opened by its stored name from any working folder. The path of a shipped model becomes the
    model's name. Names of hub models, modules and baselines do not change.
    """
    if Path(encoder).parent == PRETRAINED.parent:
        return Path(encoder).name
    kind, _, path = encoder.partition(":")
    if kind in OF_FILES and not Path(encoder).exists() and Path(path).exists():
        return f"{kind}:{os.path.abspath(path)}"
    return os.path.abspath(encoder) if encoder and Path(encoder).exists() else encoder


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with its content; do nothing if the path does not exist."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def parse_json(text: str | bytes, source: str) -> Any:
    """Parse a JSON document; NaN and infinity are errors, because they are not JSON.

    Raises DataError for invalid JSON, deep nesting, and integers of thousands of digits; the message names `source`.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:
        reason = "a number is too long" if "integer string conversion" in str(error) else str(error)
    raise DataError(f"{source}: not valid JSON ({reason}).")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def read_json(path: Path) -> Any:
    """Parse a JSON file in UTF-8; NotFound if the file can't be read, DataError as in `parse_json`."""
    try:
        return parse_json(path.read_bytes(), str(path))
    except OSError as error:
        raise NotFound(f"{path}: can't be read ({error.strerror or error}).") from None


def json_lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return (line, parsed object) for each line that is a JSON object; NotFound if the file can't be read.

    Other lines are skipped, because a killed process may have left an incomplete last line.
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
        except (DataError, UnicodeDecodeError):  # the parser accepts UTF-16, but we only write UTF-8
            continue
    return objects


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` in UTF-8; NotFound if the file can't be written."""
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object, indent: int | None = 2) -> None:
    """Write a JSON document to `path`; NotFound if the file can't be written."""
    write_text(path, json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


@contextmanager
def file_lock(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Lock the file `path` until the block ends, and yield True. If another process has the lock, yield False.

    With `wait`, wait until the lock is free. A lock is released when its process ends, but the file stays. Raises
    NotFound if the file can't be written.
    """
    # The timeout, in seconds, is not 0, because other processes lock the file briefly to test whether it is locked.
    lock = FileLock(path, timeout=-1 if wait else 0.25)
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
    """Return the SHA-256 of the file's bytes, 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Flush a file or folder to the disk. Folders are skipped on Windows, which can't flush them."""
    with suppress(PermissionError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def reading_parquet(file: Path | str, expected: str = "a Parquet file") -> Iterator[None]:
    """Turn pyarrow's errors about `file` into NotFound if the system can't read the file, else into DataError.

    `expected` is the part of the message after "not", as in "not a Parquet file, or damaged".
    """
    import pyarrow as pa  # slow to import, and only this format needs it

    try:
        yield
    except BgtError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, ArithmeticError, MemoryError,
            NotImplementedError) as error:  # fmt: skip
        if isinstance(error, OSError) and error.errno:
            raise NotFound(f"{file}: can't be read ({error.strerror}).") from None
        raise DataError(f"{file}: not {expected}, or damaged ({str(error)[:200]}).") from None


def record_path(path: Path) -> Path:
    """Return the path of the JSON file that describes how a file was made: FILE.json for FILE."""
    return path.with_name(path.name + ".json")
