"""Data sets from their sources: found, downloaded, verified, converted, written down.

    download(source("tatoeba"), Path("data"), pair="en-fr")

A source's archives go to OUT/.download, resumed and verified by `transfer`; `layouts` makes of them what our commands
read; the lock file OUT/bgt-data.json says what is there, from where, with which SHA-256, under which licence.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import requests

from bgt_core.data import manifest
from bgt_core.data.fetch import layouts, opus, transfer
from bgt_core.data.fetch.layouts import Wanted
from bgt_core.data.fetch.sources import PUBLISHED, SOURCES, Source, source
from bgt_core.errors import DataError, NotFound, UsageError

__all__ = ["PUBLISHED", "SOURCES", "Downloaded", "Offer", "Source", "download", "source"]

SPARE = 3  # bytes of disk for each byte of an archive: itself, and what is made of it


class Offer(NamedTuple):
    """What is about to be downloaded, for whoever agrees to it."""

    name: str
    licence: str
    addresses: list[str]
    bytes: int | None  # in all; None where a server doesn't say


class Downloaded(NamedTuple):
    """What is there now."""

    files: list[Path]
    left_out: dict[str, int]
    new: bool  # False: all was there before


def download(
    wanted_source: Source,
    out: Path,
    *,
    pair: str | None = None,
    release: str | None = None,
    max_pairs: int | None = None,
    raw: bool = False,
    agree: Callable[[Offer], None] = lambda offer: None,
    report: transfer.Report = lambda done, total: None,
    waits: Sequence[float] = transfer.WAITS,
) -> Downloaded:
    """Downloads a source into `out`, or finds it there.

    `pair` is two languages, as in en-fr; columns follow their order. `raw` keeps the source's own files. `agree` gets
    the offer before anything large moves, and raises to refuse. `report` gets the bytes of the current archive.

    Raises BgtError for what the source does not have, for a failing server, a full disk, a damaged archive, and for an
    archive whose SHA-256 is not the published one, or not that of the first download.
    """
    with transfer.session() as asks:
        if raw and max_pairs is not None:
            raise UsageError("--max-pairs makes a new file, --raw keeps the old ones: leave one out.")
        wanted, addresses = _resolve(asks, wanted_source, out, pair, release, max_pairs)
        entry = wanted.stem + ("+raw" if raw else "")
        lock = manifest.read_lock(out)
        if there := _there(lock, entry, out):
            return Downloaded(there, lock["sources"][entry]["left_out"], new=False)
        trusted = {a: archive for known in lock["sources"].values() for a, archive in known["archives"].items()}
        sizes = [transfer.size(asks, address, waits) for address in addresses]
        total = None if None in sizes else sum(sizes)
        _room(out, total)
        agree(Offer(entry, wanted_source.licence, addresses, total))
        work = out / ".download" / entry
        archives = {_name(address): work / _name(address) for address in addresses}
        record = {}
        for address, archive, size in zip(addresses, archives.values(), sizes, strict=True):
            got = _kept(archive, size) or transfer.fetch(asks, address, archive, waits=waits, report=report)
            record[address] = {**got._asdict(), "trusted": _verify(address, got, trusted, archive)}
    try:
        made = (layouts.as_is if raw else wanted_source.make)(archives, wanted)
    except DataError:  # the archive itself is bad; otherwise it stays, as when the disk is full
        shutil.rmtree(work)
        raise
    lock = manifest.read_lock(out)  # again: others may have downloaded something else meanwhile
    lock["files"] |= {
        file.path.relative_to(out).as_posix(): {
            "source": entry,
            **manifest.facts(file.path),
            "columns": list(file.columns),
            "rows": file.rows,
        }
        for file in made.files
    }
    lock["sources"][entry] = {
        "what": wanted_source.what,
        "licence": wanted_source.licence,
        "archives": record,
        "left_out": made.left_out,
        "downloaded": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    manifest.write_json(out / manifest.NAME, lock)
    shutil.rmtree(work)
    with suppress(OSError):  # parts of something else are in it
        work.parent.rmdir()
    return Downloaded([file.path for file in made.files], made.left_out, new=True)


def _name(address: str) -> str:
    """The last part of an address, as the name of a file."""
    name = address.rpartition("/")[2]
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise DataError(f"{address}: expected an address that ends in the name of a file.")
    return name


def _kept(archive: Path, size: int | None) -> transfer.Fetched | None:
    """An archive that an earlier call downloaded and could not convert, for want of room."""
    if size is None or not archive.is_file() or archive.stat().st_size != size:
        return None
    return transfer.Fetched(**manifest.facts(archive))


def _resolve(
    asks: requests.Session, chosen: Source, out: Path, pair: str | None, release: str | None, max_pairs: int | None
) -> tuple[Wanted, list[str]]:
    """What is wanted, and the addresses that have it."""
    pair = pair or (chosen.pairs if "-" in chosen.pairs else None)
    if chosen.pairs and not pair:
        raise UsageError(f"{chosen.name}: say which two languages, as in --pair en-fr.")
    langs = opus.languages(pair) if pair else ()
    if not chosen.pairs and pair:
        raise UsageError(f"{chosen.name} has no language pairs: leave --pair out.")
    if release and not chosen.release:
        raise UsageError(f"{chosen.name} has no releases: leave --release out.")
    if max_pairs is not None and (max_pairs < 1 or chosen.make is not layouts.moses):
        raise UsageError(f"--max-pairs {max_pairs}: expected 1 or more, and a corpus of OPUS.")
    if "-" in chosen.pairs and sorted(langs) != sorted(chosen.pairs.split("-")):
        raise UsageError(f"{chosen.name} has {chosen.pairs} only, not {pair}.")
    other = next((lang for lang in langs if lang != "en"), "")
    if chosen.pairs == "any pair with en" and "en" not in langs:
        raise UsageError(f"--pair {pair}: {chosen.name} is aligned with en; name it, as in en-fr.")
    release = release or chosen.release
    if release == "latest":
        corpus = chosen.addresses[0].partition("OPUS-")[2].partition("/")[0]
        found = opus.corpora(asks, langs, corpus)[0]
        release, addresses = found.release, [found.address]
    else:
        values = {"opus_pair": "-".join(sorted(langs)), "release": release, "iso": opus.ISO.get(other, other)}
        addresses = [address.format(**values) for address in chosen.addresses]
    return Wanted(chosen.name, out, langs, release, max_pairs), addresses


def _there(lock: manifest.Json, entry: str, out: Path) -> list[Path]:
    """The files of an earlier download, if all are there and as long as they were."""
    files = {out / name: known for name, known in lock["files"].items() if known["source"] == entry}
    whole = entry in lock["sources"] and all(p.is_file() and p.stat().st_size == k["bytes"] for p, k in files.items())
    return list(files) if whole else []


def _verify(address: str, got: transfer.Fetched, trusted: dict[str, manifest.Json], archive: Path) -> str:
    """Why this archive is trusted; BgtError, and the archive is gone, where it is not the one expected."""
    why, expected = "first download", got.sha256
    if address in PUBLISHED:
        why, expected = "published", PUBLISHED[address][1]
    elif address in trusted:
        why, expected = trusted[address]["trusted"], trusted[address]["sha256"]
    if got.sha256 != expected:
        archive.unlink()
        raise DataError(
            f"{address}: SHA-256 is {got.sha256}, expected {expected} ({why}): the file there was changed, or what "
            f"arrived was. To accept a new one of a first download, remove its source from {manifest.NAME}."
        )
    return why


def _room(out: Path, total: int | None) -> None:
    """BgtError where the disk is too small for certain."""
    place = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    free = shutil.disk_usage(place).free
    if total is not None and SPARE * total > free:
        raise NotFound(f"{out}: about {SPARE * total:,} bytes are needed and {free:,} are free; make room.")
