"""Archives that mean harm, and archives that are broken: one line, and nothing written."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from bgt_core.data.fetch.unpack import unpack
from bgt_core.errors import BgtError, DataError


def zip_of(path: Path, *names: str, link: bool = False) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o120777 if link else 0o100644) << 16
            archive.writestr(entry, b"content of " + name.encode())
    return path


def tar_of(path: Path, *names: str, kind: bytes = tarfile.REGTYPE) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            content = b"content of " + name.encode() if kind == tarfile.REGTYPE else b""
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


@pytest.mark.parametrize(("make", "suffix"), [(zip_of, ".zip"), (tar_of, ".tar.gz")])
def test_files_come_out_as_they_went_in(make: Any, suffix: str, tmp_path: Path) -> None:
    names = ("a/b/c.txt", "d.txt", "__MACOSX/d.txt", "a/.DS_Store", "a/._b", "a..b/..c")
    files = unpack(make(tmp_path / f"x{suffix}", *names), tmp_path / "out")
    assert {path.relative_to(tmp_path / "out").as_posix() for path in files} == {"a/b/c.txt", "d.txt", "a..b/..c"}
    assert (tmp_path / "out/a/b/c.txt").read_bytes() == b"content of a/b/c.txt"
    assert {path.name for path in tmp_path.iterdir()} == {f"x{suffix}", "out"}


@pytest.mark.parametrize("name", ["../out.txt", "a/../../out.txt", "/etc/x", "C:/x", "a\\..\\..\\x"])
@pytest.mark.parametrize(("make", "suffix"), [(zip_of, ".zip"), (tar_of, ".tar.gz")])
def test_nothing_leaves_the_folder(name: str, make: Any, suffix: str, tmp_path: Path) -> None:
    archive = make(tmp_path / f"x{suffix}", "good.txt", name)
    with pytest.raises(BgtError, match="leads out of the folder") as error:
        unpack(archive, tmp_path / "deep" / "out")
    assert error.value.exit_code == 4
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [archive.name]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(kind: bytes, tmp_path: Path) -> None:
    with pytest.raises(BgtError, match="a link or a device"):
        unpack(tar_of(tmp_path / "x.tar.gz", "x", kind=kind), tmp_path / "out")
    with pytest.raises(BgtError, match="a link or a device"):
        unpack(zip_of(tmp_path / "x.zip", "x", link=True), tmp_path / "out")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a"), ("a", "a"), ("a/b", "a//b")])
@pytest.mark.parametrize(("make", "suffix"), [(zip_of, ".zip"), (tar_of, ".tar.gz")])
def test_two_files_of_one_name_are_refused(names: tuple[str, str], make: Any, suffix: str, tmp_path: Path) -> None:
    with pytest.raises(BgtError, match="two files of the name"):
        unpack(make(tmp_path / f"x{suffix}", *names), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz", ".gz"])
def test_damage_is_said_and_an_older_folder_stays(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/old.txt").write_text("old")
    if suffix == ".zip":
        archive = zip_of(tmp_path / "x.zip", "one.txt", "two.txt")
        content = bytearray(archive.read_bytes())
        content[content.index(b"content of two")] ^= 1
        archive.write_bytes(content)
    else:
        archive = tar_of(tmp_path / f"x{suffix}", "one.txt", "two.txt")
        archive.write_bytes(archive.read_bytes()[: -len(archive.read_bytes()) // 2])
    with pytest.raises(BgtError, match=r"damaged|not a zip, tar or gzip"):
        unpack(archive, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["old.txt"]
    assert {path.name for path in tmp_path.iterdir()} == {archive.name, "out"}


def test_what_is_no_archive_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello")
    with pytest.raises(BgtError, match="not a zip, tar or gzip file"):
        unpack(tmp_path / "x.txt", tmp_path / "out")


def test_an_archive_made_to_fill_a_disk_is_not_unpacked(tmp_path: Path) -> None:
    lines = b"a line\n" * (12 * 2**20)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as inside:
        inside.writestr("a.txt", lines)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(lines))
    for name in ("bomb.zip", "bomb.gz"):
        with pytest.raises(DataError, match="nothing was unpacked"):
            unpack(tmp_path / name, tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("é.txt", "x")
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xff\xfe"))
    with pytest.raises(DataError, match="damaged"):
        unpack(path, tmp_path / "out")


def test_a_file_without_a_name_is_refused(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as inside:
        inside.writestr("x", b"text")
    (tmp_path / "a.zip").write_bytes(file.getvalue().replace(b"x", b"\0"))
    with pytest.raises(DataError):
        unpack(tmp_path / "a.zip", tmp_path / "out")
