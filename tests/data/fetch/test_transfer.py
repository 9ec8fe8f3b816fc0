"""Downloads against a server that cuts, changes, refuses and fails: in the end the bytes are those of the file."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from pathlib import Path
from typing import Any

import pytest
import requests

from bgt_core.data.fetch import opus, transfer
from bgt_core.errors import BgtError, DataError, NotFound
from bgt_core.files import file_lock

CONTENT = bytes(range(256)) * 5000  # more than one block


@pytest.fixture
def get(site: Any, tmp_path: Path) -> Any:
    """get(): downloads the file and says what came; its bytes are checked."""
    site.files["file.bin"] = CONTENT

    def call(**how: Any) -> transfer.Fetched:
        with transfer.session() as http:
            done = transfer.fetch(http, site.url("file.bin"), tmp_path / "file.bin", **how)
        assert (tmp_path / "file.bin").read_bytes() == site.files["file.bin"]
        assert done == (len(site.files["file.bin"]), hashlib.sha256(site.files["file.bin"]).hexdigest())
        assert [path.name for path in tmp_path.iterdir()] == ["file.bin"]
        return done

    return call


@pytest.fixture
def stopped(site: Any, get: Any, tmp_path: Path) -> None:
    """A download that gave up after 700,000 bytes; the server has recovered."""
    site.trouble = ["cut 700000", *["500"] * 9]
    with pytest.raises(BgtError, match="gave up") as error:
        get()
    assert error.value.exit_code == 3
    assert {path.name for path in tmp_path.iterdir()} == {"file.bin.part", "file.bin.part.json"}
    site.trouble = []


def test_a_whole_download_reports_its_bytes(site: Any, get: Any) -> None:
    seen: list[tuple[int, int | None]] = []
    get(report=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert site.gets()[0]["Accept-Encoding"] == "identity"
    with transfer.session() as http:
        assert transfer.size(http, site.url("file.bin")) == len(CONTENT)


def test_an_empty_file_is_a_file(site: Any, get: Any) -> None:
    site.files["file.bin"] = b""
    get()


def test_a_cut_connection_is_continued(site: Any, get: Any) -> None:
    site.trouble = ["cut 700000", "cut 300000"]
    get()
    assert [headers["Range"] for headers in site.gets()] == [None, "bytes=700000-", "bytes=1000000-"]
    assert site.gets()[1]["If-Range"] == '"1"'


def test_a_later_call_continues_where_an_earlier_one_gave_up(site: Any, stopped: None, get: Any) -> None:
    get()
    assert site.gets()[-1]["Range"] == "bytes=700000-"


def test_progress_starts_the_attempts_again(site: Any, get: Any) -> None:
    site.trouble = ["500", "500", "cut 400000", "500", "cut 400000", "500", "cut 400000"]
    get()
    assert len(site.gets()) == 8


def test_a_server_that_ignores_ranges_sends_all_again(site: Any, get: Any) -> None:
    site.trouble = ["cut 700000", "no ranges"]
    get()
    assert [headers["Range"] for headers in site.gets()] == [None, "bytes=700000-"]


def test_a_file_that_changes_between_parts_is_begun_anew(site: Any, stopped: None, get: Any) -> None:
    site.files["file.bin"], site.versions["file.bin"] = CONTENT[::-1], '"2"'
    get()


def test_a_part_of_another_version_is_not_joined(site: Any, stopped: None, get: Any) -> None:
    site.trouble, site.files["file.bin"], site.versions["file.bin"] = ["careless"], CONTENT[::-1], '"2"'
    get()
    assert [headers["Range"] for headers in site.gets()[-2:]] == ["bytes=700000-", None]


@pytest.mark.parametrize("tag", ["", 'W/"1"'])
def test_without_a_version_nothing_is_joined(tag: str, site: Any, get: Any) -> None:
    site.versions["file.bin"] = tag
    site.trouble = ["cut 700000"]
    get()
    assert [headers["Range"] for headers in site.gets()] == [None, None]


def test_a_part_that_lacks_nothing_is_taken(
    site: Any, get: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the machine stopped between the last byte and the new name."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            get()
    get()
    assert site.gets()[-1]["Range"] == f"bytes={len(CONTENT)}-"


@pytest.mark.parametrize("status", ["404", "403", "410"])
def test_what_is_not_there_is_said_once(status: str, site: Any, get: Any, tmp_path: Path) -> None:
    site.trouble = [status]
    with pytest.raises(BgtError, match=f"says {status}") as error:
        get()
    assert error.value.exit_code == 3
    assert len(site.gets()) == 1
    assert not list(tmp_path.iterdir())


def test_a_busy_server_is_waited_for(site: Any, get: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", waited.append)
    monkeypatch.setattr(transfer, "RETRIES", transfer.RETRIES.new(total=4, backoff_factor=1))
    site.trouble = ["500", "500", "503 after 7", "429 after 9999"]
    get()
    assert waited == [2, 7, 120]


def test_a_connection_that_keeps_breaking_is_waited_for(site: Any, get: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", waited.append)
    monkeypatch.setattr(transfer, "RETRIES", transfer.RETRIES.new(total=2, backoff_factor=1))
    site.trouble = ["cut 9", "cut 0", "cut 0", "cut 0"]
    with pytest.raises(BgtError, match=r"broke after 9 bytes .*gave up"):
        get()
    assert waited == [2]  # the first attempt got further


def test_no_server_at_all(tmp_path: Path, site: Any) -> None:
    with transfer.session() as http, pytest.raises(BgtError, match="no connection"):
        transfer.fetch(http, "http://127.0.0.1:9/x", tmp_path / "x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("HTTPS_PROXY", "http://me:secret@127.0.0.1:9", r"proxy 127\.0\.0\.1:9 \(HTTPS_PROXY\) \(Connection refused\)"),
        ("https_proxy", "127.0.0.1:9", r"proxy 127\.0\.0\.1:9 \(https_proxy\) \(Connection refused\)"),
        ("ALL_PROXY", "http://127.0.0.1:9", r"proxy http://127\.0\.0\.1:9 \(ALL_PROXY\) \(Connection refused\)"),
    ],
)
def test_a_dead_proxy_is_named_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, told: str
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", waited.append)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(opus, "API", "https://localhost.invalid/api")
    with transfer.session() as http:
        for ask in (
            lambda: transfer.fetch(http, "https://localhost.invalid/x", tmp_path / "x"),
            lambda: opus.corpora(http, ("en", "fr")),
        ):
            with pytest.raises(NotFound, match=told) as error:
                ask()
            assert "secret" not in str(error.value)
    assert sum(waited) <= 2 and not list(tmp_path.iterdir())


def test_a_full_disk_keeps_the_part(site: Any, get: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, room = transfer._write, [2**20]

    def write(file: Any, block: bytes) -> None:
        if len(block) > room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        room[0] -= len(block)
        real(file, block)

    with monkeypatch.context() as patch:
        patch.setattr(transfer, "_write", write)
        with pytest.raises(BgtError, match="disk is full; free some space, and run the same") as full:
            get()
    assert full.value.exit_code == 3
    assert (tmp_path / "file.bin.part").read_bytes() == CONTENT[: 2**20]
    get()
    assert site.gets()[-1]["Range"] == f"bytes={2**20}-"


def test_a_folder_that_cannot_be_written(site: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with transfer.session() as http, pytest.raises(BgtError, match="can't be written"):
        transfer.fetch(http, site.url("x"), tmp_path / "file" / "x")


def test_two_processes_do_not_share_a_part(site: Any, get: Any, tmp_path: Path) -> None:
    with file_lock(tmp_path / "file.bin.part.lock"), pytest.raises(BgtError, match="another process") as error:
        get()
    assert error.value.exit_code == 2
    assert not site.gets()


def test_a_proxy_of_the_environment_is_used_and_left_alone(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files["far/file.txt"] = b"from far away"
    monkeypatch.setenv("http_proxy", site.address)
    before = dict(os.environ)
    with transfer.session() as http:
        transfer.fetch(http, "http://data.invalid/far/file.txt", tmp_path / "file.txt")
    assert (tmp_path / "file.txt").read_bytes() == b"from far away"
    assert site.gets()[0]["Host"] == "data.invalid"
    assert dict(os.environ) == before


def test_a_body_longer_than_promised_is_stopped(site: Any, tmp_path: Path) -> None:
    site.files["long.bin"] = b"x" * 3_000_000
    with transfer.session() as http, pytest.raises(DataError, match="expected at most 1,000"):
        transfer.fetch(http, site.url("long.bin"), tmp_path / "long.bin", most=1_000)
    assert not (tmp_path / "long.bin").exists()


def test_a_part_counts_only_as_far_as_it_was_on_disk(site: Any, stopped: None, get: Any, tmp_path: Path) -> None:
    """A machine that stopped may have lengthened the file without filling it."""
    with (tmp_path / "file.bin.part").open("ab") as part:
        part.write(b"\0" * (len(CONTENT) - 700_000))
    get()


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
    with transfer.session() as http, pytest.raises(NotFound, match="http://b/x, which is not encrypted"):
        transfer.size(http, "https://a/x")
