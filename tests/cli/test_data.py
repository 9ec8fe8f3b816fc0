"""Test the output, files and one-line errors of `bgt data`."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bgt_core.data import fetch

ROWS = ["The dog sleeps.\tLe chien dort.", "Anna reads.\tAnna lit.", "anna reads\tanna lit", "alone"]


Bgt = Callable[..., Any]  # runs `bgt`; returns exit code, stdout, stderr


@pytest.fixture
def bgt(bgt: Bgt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bgt:
    """bgt("download"): run the command `bgt data download` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: bgt("data", *arguments)


@pytest.fixture
def books(site: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server that offers a corpus "books" in English and French."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("Books.en-fr.en", "one\ntwo\n")
        archive.writestr("Books.en-fr.fr", "un\ndeux\n")
    site.files["OPUS-Books/v1/moses/en-fr.txt.zip"] = file.getvalue()
    address = site.url("OPUS-Books/{release}/moses/{opus_pair}.txt.zip")
    books = fetch.DataSource("books", "novels", "public domain", (address,), "aligned", "any", "v1")
    monkeypatch.setattr(fetch, "SOURCES", (books,))
    return site


DOWNLOAD = ("download", "books", "--pair", "en-fr", "--out", "here")


def test_download_without_a_name_lists_the_data_sets(bgt: Bgt) -> None:
    rows = [line.split("\t") for line in bgt("download").out.splitlines()]
    assert [row[0] for row in rows[1:]] == [source.name for source in fetch.SOURCES]
    assert all(len(row) == 5 and row[3] and row[4] for row in rows)


def test_download_prints_licence_address_and_files(bgt: Bgt, books: Any) -> None:
    done = bgt(*DOWNLOAD)
    assert (done.code, done.out) == (0, "here/books.v1.en-fr.tsv.zst\n")
    assert "books.v1.en-fr; licence: public domain" in done.err
    assert books.address in done.err
    again = bgt(*DOWNLOAD)
    assert (again.code, again.out) == (0, done.out) and "nothing to do" in again.err


def test_prepare_counts_the_dropped_pairs(bgt: Bgt) -> None:
    Path("in.tsv").write_text("\n".join(ROWS), encoding="utf-8")
    done = bgt("prepare", "in.tsv", "--langs", "en,fr", "--out", "out.tsv.gz")
    assert (done.code, done.out) == (0, "out.tsv.gz\n")
    assert "skipped in.tsv:4: 1 column" in done.err
    assert "2 kept, 1 copy, 1 wrong number of columns" in done.err
    done = bgt("alter", "out.tsv.gz", "--langs", "en,fr", "--of", "en", "--out", "altered.tsv")
    assert (done.code, done.out) == (0, "altered.tsv\n") and "2 kept" in done.err
    assert all(len(line.split("\t")) == 3 for line in Path("altered.tsv").read_text("utf-8").splitlines())


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("download nothing --out here", 2, "No data set 'nothing'"),
        ("download books --pair en-fr --release v9 --out here", 3, "404"),
        ("download books --pair english --out here", 2, "--pair english"),
        ("download books --pair en-fr", 2, "--out is needed"),
    ],
)
def test_an_error_is_one_line_and_a_code(command: str, code: int, message: str, bgt: Bgt, books: Any) -> None:
    done = bgt(*command.split())
    assert (done.code, done.out) == (code, "")
    *licence, error = done.err.splitlines()
    assert message in error and error.startswith("bgt: ") and not any(line.startswith("bgt: ") for line in licence)
    assert not list(Path().iterdir())
