"""What a server may not do: choose where we write, send without end, lead to an unprotected address."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
import requests

from bgt_core.data.fetch import opus, request, transfer
from bgt_core.data.fetch.sources import source
from bgt_core.data.fetch.unpack import unpack
from bgt_core.errors import DataError, NotFound, UsageError


def answer(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    reply = requests.Response()
    reply.status_code, reply._content = 200, content
    monkeypatch.setattr(requests.Session, "get", lambda *_, **__: reply)


ENTRY = '{"corpora": [{"corpus": "X", "version": %s, "alignment_pairs": %s, "size": %s, "url": %s}]}'


@pytest.mark.parametrize(
    "values",
    [
        ('"/../../evil"', "1", "1", '"https://a/b"'),
        ('".."', "1", "1", '"https://a/b"'),
        ('"a\\u0000b"', "1", "1", '"https://a/b"'),
        ("7", "1", "1", '"https://a/b"'),
        ("[]", "1", "1", '"https://a/b"'),
        ('"v1"', "1", "Infinity", '"https://a/b"'),
        ('"v1"', "1", "1", '"http://a/b"'),
        ('"v1"', "1", "1", '"file:///etc/passwd"'),
        ('"v1"', "1" * 5_000, "1", '"https://a/b"'),
    ],
)
def test_an_index_that_leads_astray_is_refused(values: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, (ENTRY % values).encode())
    with pytest.raises(NotFound, match="another form than expected"):
        opus.corpora(transfer.session(), ("en", "fr"))
    answer(monkeypatch, b"[" * 100_000)
    with pytest.raises(NotFound):
        opus.corpora(transfer.session(), ("en", "fr"))


def test_a_release_is_no_path() -> None:
    with pytest.raises(UsageError, match="release"):
        request.Request.parse(source("opensubtitles"), pair="en-fr", release="x/../../../evil")


def test_a_body_longer_than_promised_is_stopped(site: Any, tmp_path: Path) -> None:
    site.files["long.bin"] = b"x" * 3_000_000
    with transfer.session() as http, pytest.raises(DataError, match="expected at most 1,000"):
        transfer.fetch(http, site.url("long.bin"), tmp_path / "long.bin", most=1_000)
    assert not (tmp_path / "long.bin").exists()


def test_a_part_counts_only_as_far_as_it_was_on_disk(site: Any, tmp_path: Path) -> None:
    """A machine that stopped may have lengthened the file without filling it."""
    site.files["file.bin"] = bytes(range(256)) * 4_000
    site.trouble = ["cut 700000", *["500"] * 9]
    with transfer.session() as http:
        with pytest.raises(NotFound):
            transfer.fetch(http, site.url("file.bin"), tmp_path / "file.bin")
        with (tmp_path / "file.bin.part").open("ab") as part:
            part.write(b"\0" * (1_024_000 - 700_000))
        site.trouble = []
        transfer.fetch(http, site.url("file.bin"), tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == site.files["file.bin"]


@pytest.mark.parametrize("address", ["http://[::1", "http://" + "a" * 300 + ".invalid/x", "https://", "http://a b/"])
def test_an_address_that_is_none(address: str, tmp_path: Path) -> None:
    with transfer.session() as http, pytest.raises(NotFound) as error:
        transfer.size(http, address)
    assert "\n" not in str(error.value)


def test_a_length_that_is_no_number_is_none() -> None:
    reply = requests.Response()
    for length, bytes_ in (("abc", None), ("-1", None), ("9" * 40, None), ("12", 12)):
        reply.headers["Content-Length"] = length
        assert transfer._length(reply) == bytes_


def test_every_hop_is_protected(monkeypatch: pytest.MonkeyPatch) -> None:
    hops = [requests.Response() for _ in range(3)]
    for hop, url in zip(hops, ["https://a/x", "http://b/x", "https://c/x"], strict=True):
        hop.url, hop.status_code, hop.raw = url, 200, io.BytesIO()
    hops[-1].history = hops[:-1]
    monkeypatch.setattr(requests.Session, "request", lambda *_, **__: hops[-1])
    with transfer.session() as http, pytest.raises(NotFound, match="http://b/x, which is not protected"):
        transfer.size(http, "https://a/x")


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
