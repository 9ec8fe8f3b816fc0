"""Download data sets, check, unpack and convert them, and record where they come from.

    download(choose("tatoeba", pair="en-fr"), Path("data"))

`pooch` downloads each archive of a source (`data.sources`) to OUT/.download, complete or not at all. A function of
`LAYOUTS` converts the unpacked files. The manifest OUT/bgt-data.json records source, SHA-256 and licence.
"""

import gzip
import re
import shutil
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from bgt_core.data import manifest
from bgt_core.data.columns import THREE_LETTERS
from bgt_core.data.parallel import Row, pair_file
from bgt_core.data.sources import HEADERS, PUBLISHED, TIMEOUT, Choice, check_encrypted, explained
from bgt_core.data.textfile import lines
from bgt_core.errors import BgtError, DataError
from bgt_core.files import alone, file_lock, sha256_file, write_json, writing

SMALL, MOST = 2**26, 100  # an archive may grow to SMALL bytes, or to MOST times its size (text: 3 to 20 times)
UNPROMISED = 2**30  # maximum number of bytes of a file whose size the server does not announce
CHUNK = 4096  # rows written together
STS_COLUMNS = ("gold", "sentence", "sentence")
NOT_TEXT = (b"version https://git-lfs", b"<!doctype", b"<html")  # first bytes of a reply that is not the requested text

# errors of Python's unpackers; RuntimeError: the archive is encrypted, or packed in an unknown way
DAMAGE = (
    zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, LookupError, RuntimeError
)  # fmt: skip

Report = Callable[[int, int | None], None]  # called with the bytes so far, and all bytes (None if unknown)


class Downloaded(NamedTuple):
    """The result of a download."""

    files: list[Path]  # all files of the source in the folder
    left_out: dict[str, int]  # reason -> number of rows left out
    new: bool  # False if all files were there before


class OutputFile(NamedTuple):
    """A file that a layout has made; a table has columns and a number of rows."""

    path: Path
    columns: Sequence[str] = ()
    rows: int | None = None


Layout = Callable[[list[Path], Choice, Path, Counter[str]], list[OutputFile]]


def download(choice: Choice, out: Path, *, report: Report = lambda done, total: None) -> Downloaded:
    """Download the chosen data into the folder `out`, unless it has them already.

    Args:
        choice: What to download, from `sources.choose`.
        out: A folder, which is made if it does not exist.
        report: Called with the bytes read of the current archive, and its size.

    Raises:
        NotFound: A server fails, or the disk is full; complete archives are kept for the next call.
        DataError: An archive is damaged, or its SHA-256 is not the published one, or not that of the first download.
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
            except DataError:  # the archive is bad; after other errors, such as a full disk, it is kept
                shutil.rmtree(work, ignore_errors=True)
                raise
            _write_down(choice, archives, made, left_out, out)
            shutil.rmtree(work)
    finally:
        with suppress(OSError):  # not empty: an archive is kept, or another process is downloading
            if work.exists():
                work.rmdir()
            if {path.name for path in work.parent.iterdir()} <= {"manifest.lock"}:
                shutil.rmtree(work.parent)
            out.rmdir()
    return Downloaded([file.path for file in made], dict(left_out), new=True)


def _write_down(
    choice: Choice, archives: manifest.Json, made: Sequence[OutputFile], left_out: Counter[str], out: Path
) -> None:
    """Add the files and their source to the manifest, locked, because other processes may write it, too."""
    entry = {"what": choice.source.what, "licence": choice.source.licence, "archives": archives}
    entry |= {"left_out": dict(left_out), "downloaded": datetime.now(UTC).isoformat(timespec="seconds")}
    with file_lock(out / ".download" / "manifest.lock", wait=True):
        records = manifest.read_manifest(out)
        for path, columns, rows in made:
            facts = {"source": choice.stem, **manifest.facts(path), "columns": list(columns), "rows": rows}
            records["files"][path.relative_to(out).as_posix()] = facts
        records["sources"][choice.stem] = entry
        write_json(out / manifest.NAME, records, indent=1)


def _get(address: str, folder: Path, trusted: manifest.Json, report: Report) -> Path:
    """Download an archive, unless an earlier call has; DataError if its SHA-256 is not the trusted one."""
    import pooch

    name = address.rpartition("/")[2]
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise DataError(f"{address}: expected an address that ends in the name of a file.")
    pooch.get_logger().setLevel("ERROR")
    bar, hooks = _Bar(address, report), {"response": check_encrypted}
    get = pooch.HTTPDownloader(progressbar=bar, headers=HEADERS, timeout=TIMEOUT, hooks=hooks)
    path = folder / name
    with writing(path, "; the same command starts this file again"), explained(address):
        pooch.retrieve(address, None, fname=name, path=folder, downloader=get)
        digest = sha256_file(path)
    if digest != trusted.get("sha256", digest):
        raise DataError(
            f"{address}: SHA-256 is {digest}, expected {trusted['sha256']} ({trusted['trusted']}): the file there has "
            f"changed, or the download is damaged. To accept a new version, remove its source from {manifest.NAME}."
        )
    return path


class _Bar:
    """A progress bar for `pooch`; raises DataError if the server sends too many bytes."""

    def __init__(self, address: str, report: Report):
        self.address, self.report = address, report
        self.total = self.done = 0  # bytes; `pooch` sets the total, 0 if the server does not announce it

    def update(self, count: int) -> None:
        if self.done > (self.total or UNPROMISED):  # pooch rounds the last block up
            raise DataError(f"{self.address}: sends more than {self.done:,} bytes, which is too much; stopped.")
        self.done += count
        self.report(min(self.done, self.total or self.done), self.total or None)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        """Do nothing; `pooch` calls this."""


def unpack(archive: Path, folder: Path) -> list[Path]:
    """Unpack a zip, tar, tar.gz or gz file into `folder`, which is replaced, and write nothing outside it.

    Returns the files, sorted by name, without those that macOS adds to archives; only `archive` if it is none.

    Raises:
        DataError: The archive is damaged, contains a link or a device, or grows more than text does.
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
                    inside.extractall(folder)  # writes only inside the folder, and links as files
            elif tarfile.is_tarfile(archive):
                with tarfile.open(archive) as tar:
                    size = 0
                    for member in tar:  # one by one: even a list of all would decompress everything
                        _check_size(archive, size := size + member.size)
                        if not (member.isfile() or member.isdir()):
                            raise DataError(f"{archive}: {member.name!r} is a link or a device; nothing was unpacked.")
                    tar.extraction_filter = getattr(tarfile, "data_filter", None)  # absent before Python 3.11.4
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
            raise DataError(f"{archive}: damaged, or its name is wrong ({error}); download it again.") from error
        undo.pop_all()
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path for path in paths if "__MACOSX" not in path.parts and not path.name.startswith(("._", ".DS_Store"))]


def _check_size(archive: Path, size: int) -> None:
    """Raise DataError if an archive grows to `size` bytes, more than text does: it may be meant to fill a disk."""
    allowed = max(SMALL, MOST * archive.stat().st_size)
    if size > allowed:
        raise DataError(
            f"{archive}: grows to {size:,} bytes or more, expected at most {allowed:,}, {MOST} times its size; nothing "
            "was unpacked."
        )


def _whole(files: list[Path], choice: Choice, out: Path, left_out: Counter[str]) -> list[OutputFile]:
    """Move every file to a folder with the name of the source."""
    moved = []
    for path in files:
        inside = path.relative_to(out / ".download" / choice.stem)
        parts = inside.parts[1:] if inside.parts[0].endswith(".d") else inside.parts
        moved.append(_moved(path, out.joinpath(choice.stem, *parts)))
    return moved


def _tracks(files: list[Path], choice: Choice, out: Path, left_out: Counter[str]) -> list[OutputFile]:
    """Combine SemEval-2017's archives of sentences and scores into one folder, STS.input.* beside STS.gs.*."""
    sets = [path for path in files if path.name.startswith("STS.")]
    if not sets:
        raise DataError(f"{choice.stem}: the archives hold no STS.input.NAME.txt; the addresses may have changed.")
    return [_moved(path, out / choice.stem / path.name) for path in sorted(sets, key=lambda path: path.name)]


def _aligned(files: list[Path], choice: Choice, out: Path, left_out: Counter[str]) -> list[OutputFile]:
    """Convert line-aligned files, NAME.fr or NAME.fra, to one TSV, with columns in the order of `choice.langs`.

    Pairs with an empty side are left out.
    """
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
    """Convert SemEval's STS.input.X.txt and STS.gs.X.txt to YEAR/X.tsv: gold, sentence, sentence.

    Pairs without a score (most of 2015 and 2016) are left out.
    """
    texts: dict[str, dict[str, list[bytes]]] = {}  # name of the set -> "input" or "gs" -> lines
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
        tables.append(_table(table, STS_COLUMNS, iter(scored)))
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
