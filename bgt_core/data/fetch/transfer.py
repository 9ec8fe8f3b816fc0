"""One address to one file: resumed, retried, verified; whole or not there.

Until OUT is complete there are OUT.part, its bytes so far, and OUT.part.json, which names the address and the version
of the file (its ETag or date). A later call asks for the rest of that very version (RFC 9110, If-Range); where the
server has another one by then, or can't send parts, it begins anew.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

import requests
import urllib3

from bgt_core.errors import NotFound, UsageError
from bgt_core.files import writing

BLOCK = 2**20  # bytes read, hashed and written together
WAITS = (1.0, 2.0, 4.0, 8.0, 16.0)  # seconds before each new attempt; one that got further starts them again
LONGEST_WAIT = 120.0  # seconds; a server that asks for more is not waited for so long
TIMEOUT = (15.0, 60.0)  # seconds: to connect, and between two blocks
BUSY = {408, 425, 429, 500, 502, 503, 504}  # statuses that may pass
FULL = {errno.ENOSPC, errno.EDQUOT}
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "bgt"}  # as stored, so that parts and sizes fit the file

Answer = TypeVar("Answer")
Report = Callable[[int, int | None], None]  # bytes there, bytes in all where the server says so


class Fetched(NamedTuple):
    """A complete file."""

    bytes: int
    sha256: str


class _Passing(Exception):
    """What another attempt may cure; `wait` is what the server asked for, in seconds."""

    def __init__(self, message: str, wait: float = 0.0):
        super().__init__(message)
        self.wait = wait


def session() -> requests.Session:
    """One for all that a command asks for. Proxies and certificates are those of the environment."""
    made = requests.Session()
    made.headers.update(HEADERS)
    return made


def size(asks: requests.Session, url: str, waits: Sequence[float] = WAITS) -> int | None:
    """Bytes of the file at `url`, or None where the server doesn't say; BgtError where there is none."""
    return _patient(lambda: _length(asks, url), url, waits)


def fetch(
    asks: requests.Session,
    url: str,
    out: Path,
    *,
    waits: Sequence[float] = WAITS,
    report: Report = lambda done, total: None,
) -> Fetched:
    """Downloads `url` to `out`, replacing it, and goes on with what an earlier call has left.

    Raises BgtError where the address has no such file, where the server fails after every attempt, and where the disk
    is full or `out` can't be written; OUT.part stays, and the same call goes on from there.
    """
    part = out.with_name(out.name + ".part")
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        file = part.open("a+b", buffering=0)  # unbuffered: what is written is there, and a full disk says so at once
    with file, _alone(file, part):
        done = _patient(lambda: _attempt(asks, url, file, part, report), url, waits, lambda: part.stat().st_size)
        with writing(out):
            os.fsync(file.fileno())
            os.replace(part, out)
            _record(part).unlink(missing_ok=True)
    return done


def _attempt(asks: requests.Session, url: str, file: IO[bytes], part: Path, report: Report) -> Fetched:
    """The rest of the file, or all of it; _Passing where the connection or the server fails."""
    version = _version(part, url)
    have = part.stat().st_size if version else 0
    ask = {"Range": f"bytes={have}-", "If-Range": version} if have else {}
    with _asked(asks, "GET", url, ask) as answer:
        if answer.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            if answer.headers.get("Content-Range") == f"bytes */{have}":
                return Fetched(have, _hash(file).hexdigest())  # nothing was missing
            file.truncate(0)
            raise _Passing("the part was longer than the file")
        _refuse(answer, url)
        goes_on = answer.status_code == HTTPStatus.PARTIAL_CONTENT
        if goes_on and not (
            answer.headers.get("Content-Range", "").startswith(f"bytes {have}-") and _of(answer) in (version, None)
        ):
            file.truncate(0)
            raise _Passing("the server sent another part than was asked for")
        if not goes_on:
            have = 0
            with _room(part):
                file.truncate(0)
                _record(part).write_text(json.dumps({"url": url, "version": _of(answer)}), encoding="utf-8")
        seen, rest = _hash(file), answer.headers.get("Content-Length")
        total = have + int(rest) if rest else None
        report(have, total)
        try:
            for block in answer.raw.stream(BLOCK, decode_content=False):
                seen.update(block)
                with _room(part):
                    _write(file, block)
                have += len(block)
                report(have, total)
        except urllib3.exceptions.HTTPError as error:
            raise _Passing(f"the connection broke after {have:,} bytes ({type(error).__name__})") from error
    if total is not None and have != total:  # a server that closes early in good manners
        raise _Passing(f"the connection ended after {have:,} of {total:,} bytes")
    return Fetched(have, seen.hexdigest())


def _patient(
    attempt: Callable[[], Answer], url: str, waits: Sequence[float], progress: Callable[[], int] = lambda: 0
) -> Answer:
    """What `attempt` returns at last; BgtError where it fails once more than there are `waits` without progress."""
    failures, before = 0, progress()
    while True:
        try:
            return attempt()
        except _Passing as error:
            now = progress()
            failures, before = (1 if now > before else failures + 1), now
            if failures > len(waits):
                raise NotFound(f"{url}: {error}; gave up. The same command goes on from there.") from error
            time.sleep(max(waits[failures - 1], min(error.wait, LONGEST_WAIT)))


def _length(asks: requests.Session, url: str) -> int | None:
    with _asked(asks, "HEAD", url, {}) as answer:
        if answer.status_code in (HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED):
            return None
        _refuse(answer, url)
        length = answer.headers.get("Content-Length")
    return int(length) if length else None


def _asked(asks: requests.Session, method: str, url: str, headers: dict[str, str]) -> requests.Response:
    try:
        answer = asks.request(method, url, headers=headers, stream=True, timeout=TIMEOUT, allow_redirects=True)
    except (requests.ConnectionError, requests.Timeout) as error:
        raise _Passing(f"no connection ({type(error).__name__})") from error
    except requests.RequestException as error:
        raise NotFound(f"{url}: can't be asked for ({error}).") from error
    if url.startswith("https:") and not answer.url.startswith("https:"):
        answer.close()
        raise NotFound(f"{url}: leads to {answer.url}, which is not protected; nothing was read.")
    return answer


def _refuse(answer: requests.Response, url: str) -> None:
    if answer.status_code in BUSY:
        wait = answer.headers.get("Retry-After", "")
        raise _Passing(f"the server says {answer.status_code}", float(wait) if wait.isdecimal() else 0.0)
    if answer.status_code not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
        raise NotFound(f"{url}: the server says {answer.status_code} {answer.reason}; is there such a file?")


def _of(answer: requests.Response) -> str | None:
    """What tells this version of the file from others: a strong ETag, else the date, else nothing."""
    tag = answer.headers.get("ETag", "W/")
    return answer.headers.get("Last-Modified") if tag.startswith("W/") else tag


def _version(part: Path, url: str) -> str | None:
    """Of which version the part is; None where it can't be gone on with."""
    try:
        found = json.loads(_record(part).read_text(encoding="utf-8"))
        return found["version"] if found["url"] == url else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _record(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _hash(file: IO[bytes]) -> hashlib._Hash:
    """Of what the part holds."""
    seen = hashlib.sha256()
    file.seek(0)
    while block := file.read(BLOCK):
        seen.update(block)
    return seen


def _write(file: IO[bytes], block: bytes) -> None:
    view = memoryview(block)
    while view:  # an unbuffered file may take less than it is given
        view = view[file.write(view) :]


@contextmanager
def _room(part: Path) -> Iterator[None]:
    """Turns a full disk into BgtError that says how to go on."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise NotFound(f"{part}: can't be written ({error.strerror}).") from error
        raise NotFound(f"{part}: the disk is full; make room, and the same command goes on.") from error


@contextmanager
def _alone(file: IO[bytes], part: Path) -> Iterator[None]:
    """Locks the part; BgtError where another process has it. The lock ends with the process."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"{part}: another process is downloading it; wait for it.") from None
    except OSError:  # a file system without locks
        pass
    if not part.exists() or not os.path.samestat(part.stat(), os.fstat(file.fileno())):
        raise UsageError(f"{part}: another process has just completed it; look again.")
    try:
        yield
    finally:
        if part.exists() and not part.stat().st_size:
            with suppress(OSError):
                part.unlink()
                _record(part).unlink(missing_ok=True)
