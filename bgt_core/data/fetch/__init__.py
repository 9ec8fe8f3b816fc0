"""Download data sets, verify and convert them, and record their sources.

    download(Request.parse(source("tatoeba"), pair="en-fr"), Path("data"))

A source's archives go to OUT/.download, resumed and verified by `transfer`; `layouts` turns them into files that our
commands read; the manifest OUT/bgt-data.json records the source, SHA-256 and licence of each file.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bgt_core.data import manifest
from bgt_core.data.fetch import layouts, transfer
from bgt_core.data.fetch.request import Converted, DataSource, Request
from bgt_core.data.fetch.sources import PUBLISHED, SOURCES, source
from bgt_core.errors import DataError, NotFound
from bgt_core.files import file_lock, read_json, write_json

__all__ = ["PUBLISHED", "SOURCES", "DataSource", "Downloaded", "Offer", "Request", "download", "source"]

DOWNLOADS = ".download"  # the folder of unfinished downloads
SPARE = 3  # bytes of disk for each byte of an archive: the archive, and the files made from it


class Offer(NamedTuple):
    """A description of the download, for the user's consent."""

    name: str
    licence: str
    addresses: list[str]
    bytes: int | None  # total; None if a server does not say


class Downloaded(NamedTuple):
    """The files in the folder after a download."""

    files: list[Path]
    left_out: dict[str, int]
    new: bool  # False if all files were there before


def download(
    request: Request,
    out: Path,
    *,
    agree: Callable[[Offer], None] = lambda offer: None,
    report: transfer.Report = lambda done, total: None,
) -> Downloaded:
    """Download the requested data into the folder `out`, unless it is there.

    `agree` gets the offer before anything large is transferred, and raises an error to refuse. `report` gets the bytes
    of the current archive. Raises NotFound for a failing server or a full disk, and DataError for a damaged archive or
    one whose SHA-256 is not the published one, or not that of the first download.
    """
    with transfer.session() as http:
        request, addresses = request.resolve(http)
        records = manifest.read_manifest(out)
        if files := _present(records, request.entry, out):
            return Downloaded(files, records["sources"][request.entry]["left_out"], new=False)
        sizes = [transfer.size(http, address) for address in addresses]
        known = [size for size in sizes if size is not None]
        total = sum(known) if len(known) == len(sizes) else None
        _check_room(out, total)
        agree(Offer(request.entry, request.source.licence, addresses, total))
        work = out / DOWNLOADS / request.entry
        archives = {_name(address): work / _name(address) for address in addresses}
        trusted = {a: archive for entry in records["sources"].values() for a, archive in entry["archives"].items()}
        record = {}
        for address, archive, size in zip(addresses, archives.values(), sizes, strict=True):
            fetched = _kept(archive) or transfer.fetch(http, address, archive, most=size, report=report)
            write_json(_complete(archive), fetched._asdict())
            record[address] = {**fetched._asdict(), "trusted": _verify(address, fetched, trusted, archive)}
    try:
        converted = (layouts.as_is if request.raw else request.source.convert)(archives, request, out)
    except DataError:  # the archive itself is bad; after other errors, such as a full disk, it stays
        shutil.rmtree(work)
        raise
    _write_down(request, record, converted, out)
    shutil.rmtree(work)
    with suppress(OSError):  # the folder holds parts of other downloads
        work.parent.rmdir()
    return Downloaded([file.path for file in converted.files], converted.left_out, new=True)


def _write_down(request: Request, archives: manifest.Json, converted: Converted, out: Path) -> None:
    """Add files and source to the manifest, under a lock: another process may be adding its own."""
    files = {
        file.path.relative_to(out).as_posix(): {
            "source": request.entry,
            **manifest.facts(file.path),
            "columns": list(file.columns),
            "rows": file.rows,
        }
        for file in converted.files
    }
    source = {
        "what": request.source.what,
        "licence": request.source.licence,
        "archives": archives,
        "left_out": converted.left_out,
        "downloaded": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    lock = out / DOWNLOADS / "manifest.lock"
    with file_lock(lock, wait=True):
        records = manifest.read_manifest(out)
        records["files"] |= files
        records["sources"][request.entry] = source
        manifest.write_manifest(out, records)
        with suppress(OSError):
            lock.unlink()  # while it is locked: a process that waits for it opens a new one


def _name(address: str) -> str:
    """The last part of an address, as a file name."""
    name = address.rpartition("/")[2]
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise DataError(f"{address}: expected an address that ends in the name of a file.")
    return name


def _complete(archive: Path) -> Path:
    """The path of the record of a complete archive."""
    return archive.with_name(archive.name + ".complete.json")


def _kept(archive: Path) -> transfer.Fetched | None:
    """Find an archive that an earlier call downloaded but had no space to convert; None if it has changed."""
    try:
        fetched = transfer.Fetched(**read_json(_complete(archive)))
    except (ValueError, TypeError):
        return None
    return fetched if archive.is_file() and manifest.facts(archive) == fetched._asdict() else None


def _present(records: manifest.Json, entry: str, out: Path) -> list[Path]:
    """The files of an earlier download, if all exist with their sizes."""
    files = {out / name: facts for name, facts in records["files"].items() if facts["source"] == entry}
    whole = all(path.is_file() and path.stat().st_size == facts["bytes"] for path, facts in files.items())
    return list(files) if whole and entry in records["sources"] else []


def _verify(address: str, fetched: transfer.Fetched, trusted: dict[str, manifest.Json], archive: Path) -> str:
    """Explain why this archive is trusted; if it is not the expected one, delete it and raise DataError."""
    why, expected = "first download", fetched.sha256
    if address in PUBLISHED:
        why, expected = "published", PUBLISHED[address][1]
    elif address in trusted:
        why, expected = trusted[address]["trusted"], trusted[address]["sha256"]
    if fetched.sha256 != expected:
        archive.unlink()
        _complete(archive).unlink(missing_ok=True)
        raise DataError(
            f"{address}: SHA-256 is {fetched.sha256}, expected {expected} ({why}): the file there has changed, or "
            f"the download is damaged. To accept a new version, remove its source from {manifest.NAME}."
        )
    return why


def _check_room(out: Path, total: int | None) -> None:
    """Raise NotFound if the disk is certainly too small."""
    existing = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if total is not None and SPARE * total > free:
        raise NotFound(f"{out}: about {SPARE * total:,} bytes are needed, but only {free:,} are free; free some space.")
