"""Download data sets, check, unpack and convert them, and record where they come from.

    download(choose("tatoeba", pair="en-fr"), Path("data"))

The library `pooch` downloads each archive of a data set to OUT/.download, completely or not at all. A function of
`LAYOUTS` converts the unpacked files. The file OUT/bgt-data.json records the addresses, SHA-256 sums and licences.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bgt_core.data import manifest
from bgt_core.data.columns import THREE_LETTERS, lang_code, lang_hint, split_langs
from bgt_core.data.parallel import Row, pair_file
from bgt_core.data.textfile import lines
from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from bgt_core.files import alone, file_lock, sha256_file, write_json, writing

if TYPE_CHECKING:
    import requests

SMALL, MOST = 2**26, 100  # unpacked, an archive may have MOST times its size (text: 3 to 20), and always SMALL bytes
UNPROMISED = 2**30  # maximum number of bytes of a file whose size the server does not announce
CHUNK = 4096  # number of rows that are written together
NOT_TEXT = (b"version https://git-lfs", b"<!doctype", b"<html")  # first bytes of a reply that is not the requested text

# the errors that Python's unpackers raise; RuntimeError means that an archive is encrypted, or its format is unknown
DAMAGE = (
    zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, LookupError, RuntimeError
)  # fmt: skip
OPUS = "https://object.pouta.csc.fi/OPUS-{corpus}/{release}/moses/{opus_pair}.txt.zip"
# regular expression for the name of a release, which must not contain "..", because it becomes a part of file names
LABEL = r"(?!.*\.\.)[A-Za-z0-9](?:[\w.-]{0,98}[A-Za-z0-9])?"
CODE = r"[a-z]{2,3}(?:_[A-Za-z]+)?"  # a language code of OPUS, such as fr or pt_BR


# The addresses in sources.tsv come from public code of 2020-2026, and the licences from the web pages of the sources.
# Neither addresses nor licences were checked on the servers. If the SHA-256 of an archive is in published.tsv (copied
# from the library `datasets`), a download must match it. Otherwise the first download is trusted, and later downloads
# must have the same SHA-256 as the first.


class DataSource(NamedTuple):
    """A data set that can be downloaded.

    In its addresses, {opus_pair} is replaced by the languages (en-fr), {release} by the release, and {iso} by the
    three-letter code of the language that is not English.
    """

    name: str  # name of the data set on the command line
    what: str  # a short description
    licence: str
    addresses: tuple[str, ...]
    layout: str = "files"  # key in `LAYOUTS` of the function that converts the files
    pairs: str = ""  # allowed language pairs: "any", "any pair with en", or a single pair; "" if the data are not pairs
    release: str = ""  # the default release; "needed" if users must choose one, "" if there are no releases


def _packaged_table(name: str) -> list[list[str]]:
    """Read a table that is part of this package, and return its rows without the header."""
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines[1:]]


SOURCES = tuple(
    DataSource(name, what, licence, tuple(addresses.split()), *rest)
    for name, what, licence, addresses, *rest in _packaged_table("sources.tsv")
)
PUBLISHED = dict(_packaged_table("published.tsv"))


def languages(pair: str) -> tuple[str, str]:
    """Split a language pair: "en-fr" or "eng_Latn-fra_Latn" -> ("en", "fr"). A region is kept, as in pt_BR."""
    given = split_langs(pair)
    first, *rest = [code if "-" not in (code := lang_code(lang)) else lang for lang in given] or [""]
    if len(rest) != 1 or rest[0] == first or not all(re.fullmatch(CODE, lang) for lang in (first, *rest)):
        hint = next(filter(None, map(lang_hint, given)), "")
        raise UsageError(f"{pair}: expected two language codes, as in en-fr.{hint}", parameter="pair")
    return first, rest[0]


class Choice(NamedTuple):
    """A data set with the languages and the release that a user chose."""

    source: DataSource
    langs: tuple[str, ...] = ()  # languages, in the order of the output's columns
    release: str = ""

    @property
    def stem(self) -> str:
        """The data set's name in file names and in the manifest, such as "opensubtitles.v2018.en-fr"."""
        parts = [self.source.name, self.release, "-".join(self.langs)]
        return ".".join(filter(None, parts))

    @property
    def archives(self) -> list[str]:
        """The URLs of the data set's archives."""
        other = next((lang for lang in self.langs if lang != "en"), "")
        values = {"opus_pair": "-".join(sorted(self.langs)), "iso": THREE_LETTERS.get(other, other)}
        return [address.format(**values, release=self.release) for address in self.source.addresses]


def choose(name: str, *, pair: str | None = None, release: str | None = None) -> Choice:
    """Check a user's choice of a data set, languages and release; UsageError if this combination does not exist.

    `name` is the name of one of `SOURCES`, or "opus:NAME" for any other corpus of OPUS; NAME is spelt as in OPUS.
    """
    known = {source.name: source for source in SOURCES}
    if name.lower().startswith("opus:") and len(name) > 5:
        address, licence = (
            OPUS.replace("{corpus}", name[5:]),
            "not known here; see its LICENSE and https://opus.nlpl.eu",
        )
        chosen = DataSource(name[5:].lower(), "a corpus of OPUS", licence, (address,), "aligned", "any", "needed")
    elif name.lower() in known:
        chosen = known[name.lower()]
    else:
        raise UsageError(f"No data set {name!r}; choose from {', '.join(known)}, or opus:NAME for a corpus of OPUS.")
    only = chosen.pairs if "-" in chosen.pairs else None
    pair = pair or only
    langs = languages(pair) if pair else ()
    if chosen.pairs and not pair:
        raise UsageError(f"is needed: {name} has many language pairs; choose one, such as en-fr.", parameter="pair")
    if pair and not chosen.pairs:
        raise UsageError(f"{pair}: {name} has no language pairs; leave the pair out.", parameter="pair")
    if only and sorted(langs) != sorted(only.split("-")):
        raise UsageError(f"{pair}: {name} has only the pair {only}.", parameter="pair")
    if chosen.pairs == "any pair with en" and "en" not in langs:
        raise UsageError(f"{pair}: all pairs of {name} contain en; choose one, such as en-fr.", parameter="pair")
    if chosen.release == "needed" and not release:
        raise UsageError(f"is needed; https://opus.nlpl.eu lists the releases of {name}.", parameter="release")
    if release and not chosen.release:
        raise UsageError(f"{release}: {name} has no releases; leave the release out.", parameter="release")
    if release and not re.fullmatch(LABEL, release):
        raise UsageError(f"{release!r}: expected letters, digits, '.', '_', '-', like v2018.", parameter="release")
    return Choice(chosen, langs, release or chosen.release)


Report = Callable[[int, int | None], None]  # called with the bytes read so far and the total (None if unknown)


class Downloaded(NamedTuple):
    """The files of a downloaded data set, and counts of rows that were left out."""

    files: list[Path]  # all files of the data set that are now in the folder
    left_out: dict[str, int]  # reason -> number of rows left out
    new: bool  # False if all files already existed


class OutputFile(NamedTuple):
    """A file of a converted data set; `columns` and `rows` are set only for a table of translations."""

    path: Path
    columns: Sequence[str] = ()
    rows: int | None = None


Layout = Callable[[list[Path], Choice, Path, Counter[str]], list[OutputFile]]


def download(choice: Choice, out: Path, *, report: Report = lambda done, total: None) -> Downloaded:
    """Download the chosen data into the folder `out`, unless the data are there already.

    `choose` returns the `choice`. `report` is called with the bytes of the current archive that were read, and with its
    size in bytes. Raises NotFound if a server fails or the disk is full; complete archives are kept for the next
    call. Raises DataError if an archive is damaged, or its SHA-256 is not the published one, or has changed.
    """
    records = manifest.read_manifest(out)
    there = {out / name: facts for name, facts in records["files"].items() if facts["source"] == choice.stem}
    whole = all(path.is_file() and path.stat().st_size == facts["bytes"] for path, facts in there.items())
    if there and whole and choice.stem in records["sources"]:
        return Downloaded(list(there), records["sources"][choice.stem]["left_out"], new=False)
    trusted = {a: archive for entry in records["sources"].values() for a, archive in entry["archives"].items()}
    trusted |= {a: {"sha256": PUBLISHED[a], "trusted": "published"} for a in PUBLISHED.keys() & choice.archives}
    work, left_out = out / ".download" / choice.stem, Counter[str]()
    try:
        with alone(work):
            archives, unpacked = {}, list[Path]()
            try:
                for number, address in enumerate(choice.archives):
                    archive = _get(address, work, trusted.get(address, {}), report)
                    why = trusted.get(address, {}).get("trusted", "first download")
                    archives[address] = {**manifest.facts(archive), "trusted": why}
                    unpacked += unpack(archive, work / f"{number}.d")
                made = LAYOUTS[choice.source.layout](unpacked, choice, out, left_out)
            except DataError:  # delete a bad archive; after other errors, such as a full disk, keep it
                shutil.rmtree(work, ignore_errors=True)
                raise
            entry = {"what": choice.source.what, "licence": choice.source.licence, "archives": archives}
            entry |= {"left_out": dict(left_out), "downloaded": datetime.now(UTC).isoformat(timespec="seconds")}
            with file_lock(out / ".download" / "manifest.lock", wait=True):  # other processes may write the manifest
                records = manifest.read_manifest(out)
                for path, columns, rows in made:
                    facts = {"source": choice.stem, **manifest.facts(path), "columns": list(columns), "rows": rows}
                    records["files"][path.relative_to(out).as_posix()] = facts
                records["sources"][choice.stem] = entry
                write_json(out / manifest.NAME, records, indent=1)
            shutil.rmtree(work)
    finally:
        with suppress(OSError):  # rmdir fails if the folder has an archive, or if another process uses it
            if work.exists():
                work.rmdir()
            if {path.name for path in work.parent.iterdir()} <= {"manifest.lock"}:
                shutil.rmtree(work.parent)
            out.rmdir()
    return Downloaded([file.path for file in made], dict(left_out), new=True)


def _get(address: str, folder: Path, trusted: manifest.Json, report: Report) -> Path:
    """Download an archive if it is not in the folder; DataError if its SHA-256 is not the one in `trusted`."""
    import pooch

    name = address.rpartition("/")[2]
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise DataError(f"{address}: expected an address that ends in the name of a file.")
    pooch.get_logger().setLevel("ERROR")
    bar, hooks = _Bar(address, report), {"response": [check_encrypted, close_failed]}
    headers = {"Accept-Encoding": "identity", "User-Agent": "bgt"}  # uncompressed, so that the announced size is right
    timeout = (10.0, 60.0)  # in seconds: time to connect, and time to wait for the next block
    get = pooch.HTTPDownloader(progressbar=bar, headers=headers, timeout=timeout, hooks=hooks)
    path = folder / name
    with writing(path, "; the same command starts this file again"), explained(address):
        pooch.retrieve(address, None, fname=name, path=folder, downloader=get)
        digest = sha256_file(path)
    if digest != trusted.get("sha256", digest):
        raise DataError(
            f"{address}: SHA-256 is {digest}, expected {trusted['sha256']} ({trusted['trusted']}). The server's "
            f"file has changed, or is damaged. To accept it, remove the data set from 'sources' in {manifest.NAME}."
        )
    return path


class _Bar:
    """A progress bar for `pooch`; raises DataError if the server sends too many bytes."""

    def __init__(self, address: str, report: Report):
        self.address, self.report = address, report
        self.total = self.done = 0  # in bytes; `pooch` sets the total, to 0 if the server does not announce it

    def update(self, count: int) -> None:
        if self.done > (self.total or UNPROMISED):  # without `count`, which pooch rounds up for the last block
            raise DataError(f"{self.address}: the server has sent {self.done:,} bytes, more than expected; stopped.")
        self.done += count
        self.report(min(self.done, self.total or self.done), self.total or None)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        """Do nothing; `pooch` calls this."""


def unpack(archive: Path, folder: Path) -> list[Path]:
    """Unpack a zip, tar, tar.gz or gz file into `folder`, and nothing outside it. An old `folder` is replaced.

    Returns the unpacked files, sorted by name, without the files that macOS adds to archives. If `archive` has another
    format, returns only `archive`.

    Raises:
        DataError: The archive is damaged, contains a link or a device, or is too large when unpacked.
        NotFound: The disk is full, or the system does not allow a file name.
    """
    shutil.rmtree(folder, ignore_errors=True)
    with writing(folder), ExitStack() as undo:
        folder.mkdir(parents=True)
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            if zipfile.is_zipfile(archive):
                with zipfile.ZipFile(archive) as inside:
                    _check_size(archive, sum(entry.file_size for entry in inside.infolist()))
                    inside.extractall(folder)  # writes nothing outside the folder, and writes links as files
            elif tarfile.is_tarfile(archive):
                with tarfile.open(archive) as tar:
                    size = 0
                    for member in tar:  # members one by one, because listing all would decompress all
                        _check_size(archive, size := size + member.size)
                        if not (member.isfile() or member.isdir()):
                            raise DataError(f"{archive}: {member.name!r} is a link or a device; nothing was unpacked.")
                    tar.extraction_filter = getattr(tarfile, "data_filter", None)  # new in Python 3.11.4
                    tar.extractall(folder)
            elif archive.suffix == ".gz":
                with gzip.open(archive) as packed, (folder / archive.stem).open("wb") as file:
                    while block := packed.read(2**20):
                        _check_size(archive, file.tell() + len(block))
                        file.write(block)
            else:
                return [archive]
        except BgtError:
            raise
        except DAMAGE as error:
            raise DataError(f"{archive}: damaged, or has a wrong suffix ({error}); download it again.") from error
        undo.pop_all()
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path for path in paths if "__MACOSX" not in path.parts and not path.name.startswith(("._", ".DS_Store"))]


def _check_size(archive: Path, size: int) -> None:
    """Raise DataError if `size`, in bytes, is too large for unpacked text: the archive may be meant to fill a disk."""
    allowed = max(SMALL, MOST * archive.stat().st_size)
    if size > allowed:
        raise DataError(
            f"{archive}: unpacks to {size:,} bytes or more, but an archive of text with this size should contain at "
            f"most {allowed:,}; nothing was unpacked."
        )


def _whole(files: list[Path], choice: Choice, out: Path, left_out: Counter[str]) -> list[OutputFile]:
    """Move the files of a data set, unchanged, to a folder that is named after the data set."""
    moved = []
    for path in files:
        inside = path.relative_to(out / ".download" / choice.stem)
        parts = inside.parts[1:] if inside.parts[0].endswith(".d") else inside.parts
        moved.append(_moved(path, out.joinpath(choice.stem, *parts)))
    return moved


def _tracks(files: list[Path], choice: Choice, out: Path, left_out: Counter[str]) -> list[OutputFile]:
    """Move the files of SemEval-2017's two archives, STS.input.* (sentences) and STS.gs.* (scores), to one folder."""
    sets = [path for path in files if path.name.startswith("STS.")]
    if not sets:
        raise DataError(f"{choice.stem}: the archives have no file STS.input.NAME.txt; the addresses may have changed.")
    return [_moved(path, out / choice.stem / path.name) for path in sorted(sets, key=lambda path: path.name)]


def _aligned(files: list[Path], choice: Choice, out: Path, left_out: Counter[str]) -> list[OutputFile]:
    """Convert line-aligned files (NAME.fr, NAME.fra) to a TSV of `choice.langs`; drop pairs with an empty line."""
    sides = []
    for lang in choice.langs:
        endings = (f".{lang}", f".{THREE_LETTERS.get(lang, lang)}")
        if len(chosen := [path for path in files if path.name.endswith(endings)]) != 1:
            names = ", ".join(path.name for path in files)
            raise DataError(f"{choice.stem}: expected one file ending in .{lang}, found {names}.")
        _check_text(chosen[0])
        sides += chosen

    def full_rows() -> Iterator[Row]:
        for row in zip_longest(*map(lines, sides)):
            if None in row:
                raise DataError(f"{' and '.join(path.name for path in sides)} differ in their number of lines.")
            cells = list(map(_cell, row))
            if all(cells):
                yield cells
            else:
                left_out["empty side"] += 1

    table = _table(out / f"{choice.stem}.tsv.zst", choice.langs, full_rows())
    if not table.rows:
        table.path.unlink()
        raise DataError(f"{choice.stem}: the archive has no pairs.")
    notes = [path for path in files if path.name in ("LICENSE", "README")]
    return [table, *(_moved(path, out / f"{choice.stem}.{path.name}") for path in notes)]


def _sts(files: list[Path], choice: Choice, out: Path, left_out: Counter[str]) -> list[OutputFile]:
    """Convert SemEval's STS.input.X.txt and STS.gs.X.txt to YEAR/X.tsv; leave out pairs that have no score."""
    texts: dict[str, dict[str, list[bytes]]] = {}  # test set -> "input" or "gs" (gold scores) -> lines
    for path in files:
        match = re.fullmatch(r"STS(?:\d{4})?\.(input|gs)\.(?:surprise\.)?([\w-]+)\.txt", path.name)
        if match and match[2] != "ALL":
            texts.setdefault(match[2], {})[match[1]] = list(lines(path))
    if not texts:
        raise DataError(f"{choice.stem}: the archive has no file STS.input.NAME.txt; the address may have changed.")
    tables = []
    for name, of_set in sorted(texts.items()):
        gold, pairs = of_set.get("gs", []), [line.split(b"\t")[:2] for line in of_set.get("input", [])]
        if len(gold) != len(pairs) or any(len(pair) < 2 for pair in pairs):
            raise DataError(f"{choice.stem}: {name} has {len(gold)} scores for {len(pairs)} lines of two sentences.")
        rows = [[_cell(cell) for cell in (score, *pair)] for score, pair in zip(gold, pairs, strict=True)]
        scored = [row for row in rows if row[0]]
        table = out / choice.source.name.removeprefix("sts") / f"{name}.tsv"
        tables.append(_table(table, ("gold", "sentence", "sentence"), iter(scored)))
        left_out["no score"] += len(rows) - len(scored)
    return tables


LAYOUTS: dict[str, Layout] = {"files": _whole, "tracks": _tracks, "aligned": _aligned, "sts": _sts}


def _table(path: Path, columns: Sequence[str], rows: Iterator[Row]) -> OutputFile:
    count = 0
    with pair_file(path) as add:
        while chunk := list(islice(rows, CHUNK)):
            add(chunk)
            count += len(chunk)
    return OutputFile(path, columns, count)


def _cell(line: bytes) -> bytes:
    return line.replace(b"\t", b" ").replace(b"\r", b" ").strip()


def _moved(path: Path, out: Path) -> OutputFile:
    _check_text(path)
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        path.replace(out)
    return OutputFile(out)


def _check_text(path: Path) -> None:
    """Raise DataError if the server sent a web page or a Git LFS pointer in place of the text."""
    with path.open("rb") as file:
        if (start := file.read(64).lower().lstrip()).startswith(NOT_TEXT):
            raise DataError(f"{path}: expected text, found {start[:30]!r}; the address may have changed.")


# Helpers for requests to servers. Their errors name the address, the reason, and what the user can do.


def check_encrypted(response: requests.Response, **_: object) -> None:
    """Raise NotFound if a server redirects from an encrypted to an unencrypted address; a hook for `requests`."""
    target = response.headers.get("Location", "")
    if response.is_redirect and response.url.startswith("https:") and target.lower().startswith("http:"):
        raise NotFound(f"{response.url}: redirects to {target}, which is not encrypted; nothing was downloaded.")


def close_failed(response: requests.Response, **_: object) -> None:
    """Close the connection if a request failed, because `pooch` would leave it open; a hook for `requests`."""
    if not response.ok:
        response.close()


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn errors of `requests` into NotFound; the message states the reason and what the user can do."""
    import requests
    import urllib3

    try:
        yield
    except requests.HTTPError as error:
        status, reason = getattr(error.response, "status_code", 0), getattr(error.response, "reason", "")
        hint = "try again later" if status == 429 or status >= 500 else "check that the file exists"
        raise NotFound(f"{url}: the server answers {status} {reason}; {hint}") from error
    except requests.exceptions.ChunkedEncodingError as error:
        raise NotFound(f"{url}: the connection broke; run the command again to download this file.") from error
    except (requests.ConnectionError, requests.Timeout) as error:
        inner, reason = error, type(error).__name__
        while inner is not None:  # the innermost error comes from the operating system
            reason = inner.strerror if isinstance(inner, OSError) and inner.strerror else reason
            inner = inner.__cause__ or inner.__context__  # type: ignore[assignment]
        proxy = proxy_of(url)
        way_out = "check that variable, or unset it" if proxy else "check the network, or try again later"
        raise NotFound(f"{url}: no connection{proxy} ({reason}); {way_out}.") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError, UnicodeError) as error:
        raise NotFound(f"{url}: can't be requested ({' '.join(str(error).split())[:200]}).") from error


def proxy_of(url: str) -> str:
    """Return the proxy of an address and the variable that sets the proxy, as text for an error; "" without a proxy."""
    from requests.utils import get_environ_proxies, select_proxy

    proxy = select_proxy(url, get_environ_proxies(url))
    if not proxy:
        return ""
    variables = [name for name, value in os.environ.items() if name.lower().endswith("_proxy") and value == proxy]
    return f" through the proxy {proxy.rpartition('@')[2]} ({', '.join(variables) or 'of the system'})"  # no password
