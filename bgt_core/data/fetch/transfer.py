"""Download one address to one file: resumed, retried, hashed; the file is complete or absent.

Until OUT is complete, OUT.part holds the bytes so far, and OUT.part.json names the address and the version
of the file (its ETag or date). A later call requests the rest of that version (RFC 9110, If-Range); if the
server has another version by then, or can't send parts, it starts over.

urllib3 repeats failed requests; this module continues interrupted files.
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
from requests.utils import get_environ_proxies, select_proxy

from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.files import file_lock, read_json, write_json, writing

BLOCK = 2**20  # bytes read, hashed and written together
RETRIES = urllib3.Retry(  # for a request, and for a file without progress: after 0, 2, 4, 8 and 16 seconds
    total=5,
    connect=1,  # a refused connection, of a server or a proxy, is rarely accepted later
    backoff_factor=1,
    status_forcelist={408, 425, 429, 500, 502, 503, 504},  # statuses of temporary failures
    raise_on_status=False,
    retry_after_max=120,  # seconds, whatever the server asks for
)
UNPROMISED = 2**30  # maximum size of a file whose size the server does not give
SAFE = 2**26  # bytes after which the part is synced to disk and recorded
TIMEOUT = (10.0, 60.0)  # seconds: to connect, and between two blocks
FULL = {errno.ENOSPC, errno.EDQUOT}
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "bgt"}  # as stored, so that parts and sizes fit the file

Report = Callable[[int, int | None], None]  # bytes so far, and bytes in all if the server gives them


class Fetched(NamedTuple):
    """A complete file."""

    bytes: int
    sha256: str


class _Broken(Exception):
    """The transfer broke off; the received bytes are kept."""


def session() -> requests.Session:
    """The session for all requests of a command. Proxies and certificates come from the environment."""
    http = requests.Session()
    http.headers.update(HEADERS)
    for scheme in ("http://", "https://"):
        http.mount(scheme, HTTPAdapter(max_retries=RETRIES))
    return http


def size(http: requests.Session, url: str) -> int | None:
    """The size of the file at `url`, or None if the server doesn't give it; NotFound if the file does not exist."""
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
    """Download `url` to `out`, replacing it, and continue the part of an earlier call.

    The file may have up to `most` bytes, the size that the server gave before, or by default a gibibyte. Raises
    DataError for more, and NotFound if the address has no such file, if the server fails after every attempt, and if
    the disk is full or `out` can't be written; OUT.part stays, and the same call continues from there. Raises
    UsageError while another process downloads to `out`.
    """
    part, retries = out.with_name(out.name + ".part"), RETRIES
    with _alone(part):
        with part.open("a+b", buffering=0) as file:  # unbuffered, so that a full disk raises an error at once
            while True:
                before = part.stat().st_size
                try:
                    fetched = _attempt(http, url, file, part, UNPROMISED if most is None else most, report)
                    break
                except _Broken as error:
                    if part.stat().st_size > before:
                        retries = RETRIES  # progress resets the count of attempts
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
    """Fetch the rest of the file, or all of it; _Broken if it breaks off or the reply is not the requested part."""
    version, safe = _recorded(part, url)
    have = min(part.stat().st_size, safe) if version else 0
    file.truncate(have)  # bytes that were not synced may be wrong
    ask = {"Range": f"bytes={have}-", "If-Range": version} if version and have else {}
    with _request(http, "GET", url, ask) as response:
        if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            if response.headers.get("Content-Range") == f"bytes */{have}":
                return Fetched(have, _hash(file).hexdigest())  # nothing was missing
            file.truncate(0)
            raise _Broken("the partial download was longer than the file")
        _refuse(response, url)
        if response.status_code == HTTPStatus.PARTIAL_CONTENT:
            start = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            if not start or _version_of(response) not in (version, None):
                file.truncate(0)
                raise _Broken("the server sent a different range than requested")
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
            for block in response.raw.stream(BLOCK, decode_content=False):  # raises if fewer bytes come than promised
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
            with suppress(NotFound):  # on a full disk this fails as the write before
                _keep(part, file, url, version)
    return Fetched(have, digest.hexdigest())


def _length(response: requests.Response) -> int | None:
    """The number of bytes that the server promises; None if it gives none, or not a number."""
    length = response.headers.get("Content-Length", "")
    return int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None


def _check_most(url: str, size: int, most: int) -> None:
    if size > most:
        raise DataError(f"{url}: sends {size:,} bytes or more, expected at most {most:,}; stopped.")


def _keep(part: Path, file: IO[bytes], url: str, version: str | None) -> None:
    """Sync the part to disk, and record its size and version."""
    with _room(part):
        os.fsync(file.fileno())
        have = os.fstat(file.fileno()).st_size
        write_json(_record(part), {"url": url, "version": version, "bytes": have})


def _request(http: requests.Session, method: str, url: str, headers: dict[str, str]) -> requests.Response:
    try:
        response = http.request(method, url, headers=headers, stream=True, timeout=TIMEOUT, allow_redirects=True)
    except (requests.ConnectionError, requests.Timeout) as error:
        raise unreachable(url, error) from error
    except (
        requests.RequestException,
        urllib3.exceptions.HTTPError,
        ValueError,
    ) as error:  # ValueError: of a host's name
        raise NotFound(f"{url}: can't be requested ({one_line(error)}).") from error
    for hop in [*response.history, response]:
        if url.startswith("https:") and not hop.url.startswith("https:"):
            response.close()
            raise NotFound(f"{url}: redirects to {hop.url}, which is not encrypted; nothing was read.")
    return response


def unreachable(url: str, error: BaseException | None) -> NotFound:
    """An error for an address without a connection: it names the reason, and a proxy with its variable."""
    reason, proxy = type(error).__name__, proxy_of(url)
    while error is not None:  # the system's error is the innermost
        reason = error.strerror if isinstance(error, OSError) and error.strerror else reason
        error = error.__cause__ or error.__context__
    way_out = "check that variable, or unset it" if proxy else "check the network, or try again later"
    return NotFound(f"{url}: no connection{proxy} ({reason}); {way_out}.")


def proxy_of(url: str) -> str:
    """The proxy for an address and the variable that names it, as messages show them; "" without one."""
    proxy = select_proxy(url, get_environ_proxies(url))
    if not proxy:
        return ""
    variables = [name for name, value in os.environ.items() if name.lower().endswith("_proxy") and value == proxy]
    return f" through the proxy {proxy.rpartition('@')[2]} ({', '.join(variables) or 'of the system'})"  # no password


def one_line(error: BaseException) -> str:
    """An error's message, shortened."""
    return " ".join(str(error).split())[:200]


def _refuse(response: requests.Response, url: str) -> None:
    status = response.status_code
    if status in RETRIES.status_forcelist:
        raise NotFound(f"{url}: the server says {status}; gave up. The same command continues later.")
    if status not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
        raise NotFound(f"{url}: the server says {status} {response.reason}; is there such a file?")


def _version_of(response: requests.Response) -> str | None:
    """The version of the file: a strong ETag, else the date, else None."""
    tag = response.headers.get("ETag", "W/")
    return response.headers.get("Last-Modified") if tag.startswith("W/") else tag


def _recorded(part: Path, url: str) -> tuple[str | None, int]:
    """The version of the part, None if it can't be continued, and the number of synced bytes."""
    try:
        record = read_json(_record(part))
        return (record["version"], int(record["bytes"])) if record["url"] == url else (None, 0)
    except (ValueError, KeyError, TypeError):
        return None, 0


def _record(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _hash(file: IO[bytes]) -> hashlib._Hash:
    """The hash of the part."""
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
    """Turn a full disk into NotFound, with the way to continue."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise NotFound(f"{part}: can't be written ({error.strerror}).") from error
        raise NotFound(f"{part}: the disk is full; free some space, and run the same command to continue.") from error


@contextmanager
def _alone(part: Path) -> Iterator[None]:
    """Lock the part; UsageError if another process has it. An empty part is deleted at the end of the block."""
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
                lock.unlink()  # deleted while it is locked: a process that waits for it opens a new one
