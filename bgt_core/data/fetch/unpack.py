"""Archives to folders, as a stream, and nothing outside the folder: zip, tar, tar.gz, gz.

An archive comes from elsewhere, so its names are not trusted: a path that leads out of the folder, a link or a device
is refused before anything is written.
"""

from __future__ import annotations

import gzip
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from bgt_core.errors import DataError
from bgt_core.files import writing

JUNK = ("__MACOSX/", "._", ".DS_Store")  # what one system leaves in its archives


def unpack(archive: Path, folder: Path) -> list[Path]:
    """The files of `archive`, written to `folder`, in the order of their names.

    `folder` appears complete or not at all, and is replaced where it exists. Raises BgtError for an archive that is
    damaged, of no known kind, or unsafe, and where the disk is full.
    """
    work = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    try:
        with writing(folder), damaged(archive):
            work.mkdir(parents=True)
            for name, member in _members(archive):
                out = work / name
                out.parent.mkdir(parents=True, exist_ok=True)
                with out.open("xb") as file:
                    shutil.copyfileobj(member, file, 2**20)
            shutil.rmtree(folder, ignore_errors=True)
            work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return sorted(path for path in folder.rglob("*") if path.is_file())


@contextmanager
def damaged(archive: Path) -> Iterator[None]:
    """Turns what the readers of archives say into BgtError."""
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError) as error:
        raise DataError(f"{archive}: damaged, or not what its name says ({error}); download it again.") from error
    except (FileExistsError, NotADirectoryError) as error:
        raise DataError(f"{archive}: holds two files of the name {error.filename}; nothing was unpacked.") from error
    except (NotImplementedError, RuntimeError) as error:  # zipfile: unknown compression, encrypted
        raise DataError(f"{archive}: can't be unpacked ({error}).") from error


def _members(archive: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    """(safe name, open file) of each file inside; every name is looked at before the first is opened."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as inside:
            entries = [entry for entry in inside.infolist() if not entry.is_dir()]
            names = [_safe(archive, entry.filename, _is_link(entry)) for entry in entries]
            for name, entry in zip(names, entries, strict=True):
                if name:
                    with inside.open(entry) as member:
                        yield name, member
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as inside:
            entries = [entry for entry in inside if not entry.isdir()]
            names = [_safe(archive, entry.name, not entry.isfile()) for entry in entries]
            for name, entry in zip(names, entries, strict=True):
                if name:
                    yield name, inside.extractfile(entry)
    elif archive.suffix == ".gz":
        with gzip.open(archive) as member:
            yield PurePosixPath(archive.stem), member
    else:
        raise DataError(f"{archive}: no zip, tar or gzip file; is the address still right?")


def _safe(archive: Path, name: str, special: bool) -> PurePosixPath | None:
    """The name as a path inside the folder, None for what nobody wants; BgtError for what leads elsewhere."""
    path = PurePosixPath(name)
    if special:
        raise DataError(f"{archive}: {name!r} is a link or a device; nothing was unpacked.")
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or ":" in name or not path.parts:
        raise DataError(f"{archive}: {name!r} leads out of the folder; nothing was unpacked.")
    return None if name.startswith(JUNK[0]) or path.name.startswith(JUNK[1:]) else path


def _is_link(entry: zipfile.ZipInfo) -> bool:
    return (entry.external_attr >> 16) & 0o170000 == 0o120000
