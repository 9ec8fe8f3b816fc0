"""One address to one file: resumed, retried, hashed; whole or not there.

Until OUT is complete there are OUT.part, its bytes so far, and OUT.part.json, which names the address and the version
of the file (its ETag or date). A later call asks for the rest of that very version (RFC 9110, If-Range); where the
server has another one by then, or can't send parts, it begins anew.

urllib3 repeats requests that a busy server or the network refuses; what is here continues a file that breaks off.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import IO, NamedTuple

import requests
import urllib3
from requests.adapters import HTTPAdapter

from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.files import file_lock, read_json, write_json, writing

BLOCK = 2**20  # bytes read, hashed and written together
RETRIES = urllib3.Retry(  # of one request, and of a file without progress: after 0, 2, 4, 8 and 16 seconds
    total=5,
    backoff_factor=1,
    status_forcelist={408, 425, 429, 500, 502, 503, 504},  # statuses that may pass
    raise_on_status=False,
    retry_after_max=120,  # seconds, whatever the server asks for
)
UNPROMISED = 2**30  # bytes of a file whose size the server does not say, at most
SAFE = 2**26  # bytes after which what has arrived is put on disk and recorded
TIMEOUT = (15.0, 60.0)  # seconds: to connect, and between two blocks
FULL = {errno.ENOSPC, errno.EDQUOT}
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "bgt"}  # as stored, so that parts and sizes fit the file

Report = Callable[[int, int | None], None]  # bytes so far, bytes in all where the server says


class Fetched(NamedTuple):
    """A complete file."""

    bytes: int
    sha256: str


class _Broken(Exception):
    """The file broke off; what has arrived is kept."""


def session() -> requests.Session:
    """One for all requests of a command. Proxies and certificates are those of the environment."""
    http = requests.Session()
    http.headers.update(HEADERS)
    for scheme in ("http://", "https://"):
        http.mount(scheme, HTTPAdapter(max_retries=RETRIES))
    return http


def size(http: requests.Session, url: str) -> int | None:
    """Bytes of the file at `url`, or None where the server doesn't say; NotFound where there is no such file."""
    with _request(http, "HEAD", url, {}) as response:
        if response.status_code in (HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED):
            return None
        _refuse(response, url)
        return _length(response)


def fetch(
    http: requests.Session,
    url: str,
    out: Path,
    *,
    most: int | None = None,
    report: Report = lambda done, total: None,
) -> Fetched:
    """Downloads `url` to `out`, replacing it, and continues with what an earlier call has left.

    The file may have `most` bytes, those that the server promised before; where it promised none, a gibibyte. Raises
    DataError for more, NotFound where the address has no such file, where the server fails after every attempt, and
    where the disk is full or `out` can't be written; OUT.part stays, and the same call continues from there. Raises
    UsageError while another process downloads to `out`.
    """
    part, retries = out.with_name(out.name + ".part"), RETRIES
    with _alone(part):
        with part.open("a+b", buffering=0) as file:  # unbuffered, so that a full disk says so at once
            while True:
                before = part.stat().st_size
                try:
                    fetched = _attempt(http, url, file, part, UNPROMISED if most is None else most, report)
                    break
                except _Broken as error:
                    if part.stat().st_size > before:
                        retries = RETRIES  # an attempt that got further starts the count again
                    try:
                        retries = retries.increment("GET", url, error=error)
                    except urllib3.exceptions.MaxRetryError:
                        raise NotFound(f"{url}: {error}; gave up. The same command continues from there.") from error
                    retries.sleep()
            os.fsync(file.fileno())
        part.replace(out)
        _record(part).unlink(missing_ok=True)
    return fetched


def _attempt(http: requests.Session, url: str, file: IO[bytes], part: Path, most: int, report: Report) -> Fetched:
    """The rest of the file, or all of it; _Broken where it breaks off or is not what was asked for."""
    version, safe = _recorded(part, url)
    have = min(part.stat().st_size, safe) if version else 0
    file.truncate(have)  # what was not on disk for certain may be anything
    ask = {"Range": f"bytes={have}-", "If-Range": version} if version and have else {}
    with _request(http, "GET", url, ask) as response:
        if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            if response.headers.get("Content-Range") == f"bytes */{have}":
                return Fetched(have, _hash(file).hexdigest())  # nothing was missing
            file.truncate(0)
            raise _Broken("the part was longer than the file")
        _refuse(response, url)
        if response.status_code == HTTPStatus.PARTIAL_CONTENT:
            start = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            if not start or _version_of(response) not in (version, None):
                file.truncate(0)
                raise _Broken("the server sent another part than was asked for")
        else:
            have = 0
            with _room(part):
                file.truncate(0)
        version = _version_of(response)
        _keep(part, file, url, version)
        digest, rest = _hash(file), _length(response)
        total = None if rest is None else have + rest
        _check_most(url, total or 0, most)
        report(have, total)
        try:
            for block in response.raw.stream(
                BLOCK, decode_content=False
            ):  # raises where fewer bytes come than promised
                digest.update(block)
                _check_most(url, have + len(block), most)
                with _room(part):
                    _write(file, block)
                have += len(block)
                if have % SAFE < len(block):
                    _keep(part, file, url, version)
                report(have, total)
        except urllib3.exceptions.HTTPError as error:
            raise _Broken(f"the connection broke after {have:,} bytes ({type(error).__name__})") from error
        finally:
            with suppress(NotFound):  # a full disk refuses again what it refused before
                _keep(part, file, url, version)
    return Fetched(have, digest.hexdigest())


def _length(response: requests.Response) -> int | None:
    """The bytes that the server promises; None where it says nothing that is a number."""
    length = response.headers.get("Content-Length", "")
    return int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None


def _check_most(url: str, size: int, most: int) -> None:
    if size > most:
        raise DataError(f"{url}: sends {size:,} bytes or more, expected at most {most:,}; stopped.")


def _keep(part: Path, file: IO[bytes], url: str, version: str | None) -> None:
    """Puts what the part holds on disk, and records how many bytes of which version that is."""
    with _room(part):
        os.fsync(file.fileno())
        have = os.fstat(file.fileno()).st_size
        write_json(_record(part), {"url": url, "version": version, "bytes": have})


def _request(http: requests.Session, method: str, url: str, headers: dict[str, str]) -> requests.Response:
    try:
        response = http.request(method, url, headers=headers, stream=True, timeout=TIMEOUT, allow_redirects=True)
    except (requests.ConnectionError, requests.Timeout) as error:
        raise NotFound(f"{url}: no connection ({type(error).__name__}); gave up. Try again later.") from error
    except (
        requests.RequestException,
        urllib3.exceptions.HTTPError,
        ValueError,
    ) as error:  # ValueError: of a host's name
        raise NotFound(f"{url}: can't be requested ({one_line(error)}).") from error
    for hop in [*response.history, response]:
        if url.startswith("https:") and not hop.url.startswith("https:"):
            response.close()
            raise NotFound(f"{url}: leads to {hop.url}, which is not protected; nothing was read.")
    return response


def one_line(error: BaseException) -> str:
    """What an error says, short."""
    return " ".join(str(error).split())[:200]


def _refuse(response: requests.Response, url: str) -> None:
    status = response.status_code
    if status in RETRIES.status_forcelist:
        raise NotFound(f"{url}: the server says {status}; gave up. The same command continues later.")
    if status not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
        raise NotFound(f"{url}: the server says {status} {response.reason}; is there such a file?")


def _version_of(response: requests.Response) -> str | None:
    """What distinguishes this version of the file from others: a strong ETag, else the date, else nothing."""
    tag = response.headers.get("ETag", "W/")
    return response.headers.get("Last-Modified") if tag.startswith("W/") else tag


def _recorded(part: Path, url: str) -> tuple[str | None, int]:
    """The version that the part is of, None where it can't be continued, and its bytes that are on disk for certain."""
    try:
        record = read_json(_record(part))
        return (record["version"], int(record["bytes"])) if record["url"] == url else (None, 0)
    except (ValueError, KeyError, TypeError):
        return None, 0


def _record(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _hash(file: IO[bytes]) -> hashlib._Hash:
    """Of what the part holds."""
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(BLOCK):
        digest.update(block)
    return digest


def _write(file: IO[bytes], block: bytes) -> None:
    view = memoryview(block)
    while view:  # an unbuffered file may take less than it is given
        view = view[file.write(view) :]


@contextmanager
def _room(part: Path) -> Iterator[None]:
    """Turns a full disk into NotFound that says how to continue."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise NotFound(f"{part}: can't be written ({error.strerror}).") from error
        raise NotFound(f"{part}: the disk is full; make room, and the same command continues.") from error


@contextmanager
def _alone(part: Path) -> Iterator[None]:
    """Locks the part; UsageError where another process has it. An empty part goes when the block ends."""
    lock = part.with_name(part.name + ".lock")
    with writing(part), file_lock(lock) as ours:
        if not ours:
            raise UsageError(f"{part}: another process is downloading it; wait for it.")
        try:
            yield
        finally:
            with suppress(OSError):
                if part.exists() and not part.stat().st_size:
                    part.unlink()
                    _record(part).unlink(missing_ok=True)
                lock.unlink()  # while it is ours: who waits on a file that is gone opens a new one
