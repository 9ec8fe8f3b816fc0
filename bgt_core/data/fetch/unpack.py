"""Unpack archives into a folder, and never outside it: zip, tar, tar.gz, gz.

The names in an archive are not trusted: if one leads out of the folder, or is a link or a
device, nothing is written. The standard library's own filters are a second check.
"""

from __future__ import annotations

import gzip
import lzma
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from bgt_core.errors import BgtError, DataError
from bgt_core.files import writing

BLOCK = 2**20  # bytes unpacked together
# bytes that any archive may expand to; beyond, the maximum ratio to its own size: text has 3 to 20
SMALL, MOST = 2**26, 100
DAMAGE = (
    zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, struct.error,
    EOFError, ValueError, OverflowError,
)  # fmt: skip
JUNK = ("__MACOSX", "._", ".DS_Store")  # files that systems add to their archives


def unpack(archive: Path, folder: Path) -> list[Path]:
    """Write the files of `archive` to `folder`, and return them in the order of their names.

    `folder` appears complete or not at all, and is replaced if it exists. Raises DataError for an archive that is
    damaged, unsafe, or of an unknown kind, and NotFound if the disk is full.
    """
    with writing(folder), damaged(archive):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as work:
            fresh = Path(work) / folder.name
            fresh.mkdir()
            _extract(archive, fresh)
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
    return sorted(path for path in folder.rglob("*") if path.is_file())


@contextmanager
def damaged(archive: Path) -> Iterator[None]:
    """Turn the errors of archive readers into DataError."""
    try:
        yield
    except BgtError:
        raise
    except DAMAGE as error:
        raise DataError(f"{archive}: damaged, or not what its name says ({error}); download it again.") from error
    except (NotImplementedError, RuntimeError) as error:  # zipfile: unknown compression, encrypted
        raise DataError(f"{archive}: can't be unpacked ({error}).") from error


def _extract(archive: Path, folder: Path) -> None:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as inside:
            check_size(archive, inside)
            files = [entry for entry in inside.infolist() if not entry.filename.endswith("/")]
            inside.extractall(
                folder, _wanted(archive, [(e.filename, stat.S_ISLNK(e.external_attr >> 16)) for e in files])
            )
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            members, size = [], 0
            for member in tar:  # in a compressed archive, listing means unpacking
                size += member.size
                check_bytes(archive, size)
                members += [] if member.isdir() else [member]
            names = _wanted(archive, [(member.name, not member.isfile()) for member in members])
            tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.3 and older have none
            tar.extractall(folder, [member for member in members if member.name in names])
    elif archive.suffix == ".gz":
        with gzip.open(archive) as packed, (folder / archive.stem).open("wb") as file:
            size = 0
            while block := packed.read(BLOCK):
                size += len(block)
                check_bytes(archive, size)
                file.write(block)
    else:
        raise DataError(f"{archive}: not a zip, tar or gzip file; check the address.")


def check_size(archive: Path, inside: zipfile.ZipFile) -> None:
    """As `check_bytes`, for all files in a zip, whose declared sizes are upper bounds."""
    check_bytes(archive, sum(entry.file_size for entry in inside.infolist()))


def check_bytes(archive: Path, size: int) -> None:
    """Raise DataError if an archive expands more than text does: it may be meant to fill a disk."""
    allowed = max(SMALL, MOST * archive.stat().st_size)
    if size > allowed:
        raise DataError(
            f"{archive}: grows to {size:,} bytes or more, expected at most {allowed:,}, {MOST} times its size; nothing "
            "was unpacked."
        )


def _wanted(archive: Path, entries: Sequence[tuple[str, bool]]) -> set[str]:
    """The names to unpack, without junk; DataError for (name, whether it is a link or a device) that is unsafe."""
    paths = [PurePosixPath(name) for name, _ in entries]
    taken = {parent for path in paths for parent in path.parents}
    for (name, special), path in zip(entries, paths, strict=True):
        if special:
            raise DataError(f"{archive}: {name!r} is a link or a device; nothing was unpacked.")
        if path.is_absolute() or ".." in path.parts or set("\\\0:") & set(name) or not path.parts:
            raise DataError(f"{archive}: {name!r} leads out of the folder; nothing was unpacked.")
        if path in taken:
            raise DataError(f"{archive}: holds two files of the name {name}; nothing was unpacked.")
        taken.add(path)
    return {
        name
        for (name, _), path in zip(entries, paths, strict=True)
        if path.parts[0] != JUNK[0] and not path.name.startswith(JUNK[1:])
    }
