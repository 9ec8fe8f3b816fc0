"""A download yields files that this toolkit can read, or raises an error. A local server offers small archives."""

import gc
import gzip
import hashlib
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from bgt_core.data import fetch
from bgt_core.data.fetch import SOURCES, Choice, DataSource, Downloaded, choose, download, unpack
from bgt_core.data.manifest import facts
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.evaluation.sts_files import read_sets

PATH = "OPUS-Books/v1/moses/de-en.txt.zip"
ENGLISH = [f"sentence {number}" for number in range(100)]
GERMAN = [f"Satz {number}" for number in range(100)]
CORPUS = {
    "Books.de-en.de": "\n".join([*GERMAN, "", "ein\tTab"]).encode() + b"\r\n",
    "Books.de-en.en": "\n".join([*ENGLISH, "no German", "a\ttab"]).encode() + b"\n",
    "Books.de-en.xml": b"<links/>",
    "LICENSE": b"for this test",
    "README": b"read me",
}


def zipped(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def tarred(files: dict[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, "/etc/passwd", len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


@pytest.fixture
def books(site: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Downloaded]:
    """books(folder, pair="de-en"): download release v1 of the corpus "books" in German and English, as from OPUS."""
    address = site.url("OPUS-Books/{release}/moses/{opus_pair}.txt.zip")
    books = DataSource("books", "novels", "public domain", (address,), "aligned", "any", "v1")
    monkeypatch.setattr(fetch, "SOURCES", (books,))
    site.files[PATH] = zipped(CORPUS)
    return lambda out, **options: download(choose("books", **{"pair": "de-en"} | options), out)


@pytest.fixture
def get(site: Any, tmp_path: Path) -> Callable[..., list[str]]:
    """get(layout, files, *langs): download archives with this layout, and return the paths of the new files."""

    def call(layout: str, files: dict[str, bytes], *langs: str, name: str = "x") -> list[str]:
        site.files |= files
        source = DataSource(name, "", "", tuple(map(site.url, files)), layout)
        done = download(Choice(source, langs), tmp_path)
        return [path.relative_to(tmp_path).as_posix() for path in done.files]

    return call


def manifest(out: Path) -> dict:
    return json.loads((out / "bgt-data.json").read_text("utf-8"))


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_opus_becomes_a_table_in_the_order_of_the_languages(site: Any, books: Any, tmp_path: Path) -> None:
    done = books(tmp_path, pair="en-de")
    names = ["books.v1.en-de.tsv.zst", "books.v1.en-de.LICENSE", "books.v1.en-de.README"]
    assert [path.name for path in done.files] == names
    assert {path.name for path in tmp_path.iterdir()} == {*names, "bgt-data.json"}
    pairs = list(read_pairs(done.files[0], ("en", "de"), Skipped(), strict=True))
    assert pairs == [*zip(ENGLISH, GERMAN, strict=True), ("a tab", "ein Tab")]
    assert done.left_out == {"empty side": 1}
    (source,) = manifest(tmp_path)["sources"].values()
    digest = hashlib.sha256(site.files[PATH]).hexdigest()
    assert source["licence"] == "public domain"
    assert list(source["archives"].values()) == [
        {"bytes": len(site.files[PATH]), "sha256": digest, "trusted": "first download"}
    ]
    assert manifest(tmp_path)["files"][names[0]]["rows"] == 101
    assert all(record.items() >= facts(tmp_path / name).items() for name, record in manifest(tmp_path)["files"].items())
    calls = len(site.asked)
    again = books(tmp_path, pair="en-de")
    assert (done.new, again.new, len(site.asked)) == (True, False, calls)
    assert (again.files, again.left_out) == (done.files, done.left_out)


def test_two_downloads_at_once_are_both_in_the_manifest(books: Any, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda pair: books(tmp_path, pair=pair), ("en-de", "de-en")))
    names = {path.name for one in done for path in one.files}
    assert len(manifest(tmp_path)["sources"]) == 2 and manifest(tmp_path)["files"].keys() == names


def test_a_changed_archive_is_refused_once_trusted(
    site: Any, books: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    books(tmp_path).files[0].unlink()
    kept = manifest(tmp_path)
    site.files[PATH] = zipped(CORPUS | {"README": b"another"})
    with pytest.raises(DataError, match=r"SHA-256 is \w{64}, expected \w{64} \(first download\).* remove the data set"):
        books(tmp_path)
    assert manifest(tmp_path) == kept and not list(tmp_path.rglob("*.zip"))
    digest = hashlib.sha256(site.files[PATH]).hexdigest()
    monkeypatch.setitem(fetch.PUBLISHED, site.url(PATH), digest)  # from now on, the published SHA-256 must match
    books(tmp_path)
    (source,) = manifest(tmp_path)["sources"].values()
    assert next(iter(source["archives"].values()))["trusted"] == "published"
    site.files[PATH] = zipped(CORPUS)
    with pytest.raises(DataError, match=rf"expected {digest} \(published\)"):
        books(tmp_path / "new")
    assert not files_in(tmp_path / "new")


def test_a_disk_that_fills_keeps_the_archive(
    site: Any, books: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("bgt_core.data.parallel._compressed", full)
        with pytest.raises(NotFound, match="No space left"):
            books(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("pooch.HTTPDownloader.__call__", full)
        with pytest.raises(NotFound, match=r"can't be written \(No space left on device\); the same command"):
            books(tmp_path / "other")
    gets = len(site.gets())
    assert books(tmp_path).new and len(site.gets()) == gets
    assert not (tmp_path / ".download").exists()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # pooch leaves a connection open
@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("404", r"zip: the server answers 404 .*; check that the file exists"),
        ("503", r"zip: the server answers 503 .*; try again later"),
        ("cut 9", r"zip: the connection broke; run the command again to download this file"),
    ],
)
def test_a_server_that_fails_is_named(trouble: str, message: str, site: Any, books: Any, tmp_path: Path) -> None:
    site.trouble.append(trouble)
    with pytest.raises(NotFound, match=message) as error:
        books(tmp_path)
    assert "\n" not in str(error.value) and not files_in(tmp_path)
    assert books(tmp_path).new
    del error
    gc.collect()  # closes the connection that pooch left open


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("HTTPS_PROXY", "http://me:secret@127.0.0.1:9", r"proxy 127\.0\.0\.1:9 \(HTTPS_PROXY\) \(Connection refused\)"),
        ("ALL_PROXY", "http://127.0.0.1:9", r"proxy http://127\.0\.0\.1:9 \(ALL_PROXY\) \(Connection refused\)"),
        ("NO_PROXY", "*", r"no connection \(.*\); check the network"),
    ],
)
def test_a_dead_proxy_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, told: str, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, value)
    with pytest.raises(NotFound, match=told) as error:
        at("https://localhost.invalid/x", tmp_path)
    assert "secret" not in str(error.value)


def at(address: str, out: Path) -> Downloaded:
    return download(Choice(DataSource("x", "", "", (address,))), out)


def test_an_address_that_is_invalid_or_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    for address in ("http://[::1/x", "http://" + "a" * 300 + ".invalid/x", "https:///x", "http://a b/x"):
        with pytest.raises(NotFound) as error:
            at(address, tmp_path)
        assert "\n" not in str(error.value)
    reply = requests.Response()
    reply.status_code, reply.url, reply.headers["Location"] = 302, "https://here/x", "http://other/x"
    with pytest.raises(NotFound, match=r"redirects to http://other/x, which is not encrypted"):
        fetch.check_encrypted(reply)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"Books.de-en.de": b"eins\nzwei\n", "Books.de-en.en": b"one\n"}, "differ in their number of lines"),
        ({"Books.de-en.de": b"eins\n"}, r"expected one file ending in \.en"),
        ({"Books.de-en.de": b"\n", "Books.de-en.en": b"one\n"}, "has no pairs"),
        (None, r"expected one file ending in \.de"),
    ],
)
def test_a_bad_archive_is_one_line_and_leaves_nothing(
    files: dict[str, bytes] | None, message: str, site: Any, books: Any, tmp_path: Path
) -> None:
    site.files[PATH] = zipped(files) if files else b"<html>moved</html>"
    with pytest.raises(DataError, match=message) as error:
        books(tmp_path)
    assert "\n" not in str(error.value) and not files_in(tmp_path)


def test_sts_becomes_what_the_evaluation_reads(get: Any, tmp_path: Path) -> None:
    files = {
        "test/STS.input.MSRpar.txt": "A dog.\tA hound.\nA “cat”.\tA car.\nunscored\tpair\n",
        "test/STS.gs.MSRpar.txt": "4.5\n0.2\n\n",
        "test/STS.input.surprise.OnWN.txt": "a\tb\nc\td\n",
        "test/STS.gs.surprise.OnWN.txt": "1\n2\n",
        "test/STS.gs.ALL.txt": "4.5\n",
        "__MACOSX/test/._STS.gs.OnWN.txt": "junk",
    }
    get("sts", {"STS2012.zip": zipped({name: text.encode() for name, text in files.items()})}, name="sts2012")
    sets = {data.name: data for data in read_sets(tmp_path, ["2012"])}
    assert sets.keys() == {"MSRpar", "OnWN"} and sets["MSRpar"].gold.tolist() == [4.5, 0.2]
    assert sets["MSRpar"].right == ["A hound.", "A car."] and sets["MSRpar"].left[1] == "A “cat”."
    with pytest.raises(DataError, match="MSRpar has 0 scores for 1 lines of two"):
        get("sts", {"b.zip": zipped({"STS.input.MSRpar.txt": b"a\tb\n"})}, name="sts2013")


def test_files_of_other_layouts(get: Any, tmp_path: Path) -> None:
    inputs = zipped({"a/STS.input.track1.ar-ar.txt": b"x\ty\n", "a/README.txt": b"1"})
    scores = zipped({"b/STS.gs.track1.ar-ar.txt": b"1\n", "b/README.txt": b"2"})
    tracks = ["t/STS.gs.track1.ar-ar.txt", "t/STS.input.track1.ar-ar.txt"]
    assert get("tracks", {"eval.zip": inputs, "gs.zip": scores}, name="t") == tracks
    (table,) = get("aligned", {"t.fra-eng.eng": b"yes\nno\n", "t.fra-eng.fra": b"oui\nnon\n"}, "fr", "en")
    rows = list(read_pairs(tmp_path / table, ("fr", "en"), Skipped()))
    assert (table, rows) == ("x.fr-en.tsv.zst", [("oui", "yes"), ("non", "no")])
    archive = tarred({"stsbenchmark/sts-dev.csv": b"x", "stsbenchmark/._sts-dev.csv": b"junk"})
    assert get("files", {"stsb.tar.gz": archive}, name="stsb") == ["stsb/stsbenchmark/sts-dev.csv"]
    assert get("files", {"one.txt": b"tr\tO\tgood\n"}, name="probing") == ["probing/one.txt"]
    assert get("files", {"plain.tsv.gz": gzip.compress(b"text")}, name="plain") == ["plain/plain.tsv"]
    with pytest.raises(DataError, match="expected text, found"):
        get("files", {"two.txt": b"version https://git-lfs.github.com/spec/v1\n"}, name="pointer")


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_stays_in_its_folder(pack: Any, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(pack({"a/b.txt": b"1", "../out.txt": b"2", "__MACOSX/d.txt": b"", "a/.DS_Store": b""}))
    with pytest.MonkeyPatch.context() if pack is zipped else pytest.raises(DataError, match="damaged"):
        assert (tmp_path / "deep/out/a/b.txt") in unpack(tmp_path / "x", tmp_path / "deep" / "out")
    assert not (tmp_path / "deep" / "out.txt").exists() and not (tmp_path / "out.txt").exists()


LINES = b"a line\n" * (12 * 2**20)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.zip", zipped({"one": b"a", "two": b"content"}).replace(b"two", b"\0wo"), "damaged"),
        ("x.tar.gz", tarred({"one": os.urandom(2000)})[:-900], "damaged"),
        ("x.gz", gzip.compress(os.urandom(2000))[:-900], "damaged"),
        ("bomb.zip", zipped({"a.txt": LINES}), "should contain at most 67,108,864; nothing was unpacked"),
        ("bomb.gz", gzip.compress(LINES), "nothing was unpacked"),
        *(
            ("x.tar.gz", tarred({"x": b""}, kind), "a link or a device; nothing was unpacked")
            for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE)
        ),
    ],
    ids="zip tar.gz gz bomb.zip bomb.gz symlink link device".split(),
)
def test_a_bad_archive_leaves_nothing(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        unpack(tmp_path / name, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "how", "message"),
    [
        ("no-such", {}, "No data set 'no-such'; choose from opensubtitles, "),
        ("tatoeba", {}, "pair is needed: "),
        ("tatoeba-1000", {"pair": "fr-es"}, "all pairs of tatoeba-1000 contain en"),
        ("giga-fren", {"pair": "en-de"}, "has only the pair en-fr"),
        ("sick", {"pair": "en-fr"}, "no language pairs"),
        ("opensubtitles", {"pair": "en-fr", "release": "x/../../../evil"}, "release"),
        ("sick", {"release": "v1"}, "no releases"),
        ("opus:Books", {"pair": "en-fr"}, "release is needed; https"),
    ],
)
def test_an_impossible_choice_is_refused(name: str, how: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose(name, **how)


def test_every_source_can_be_resolved() -> None:
    assert len({source.name for source in SOURCES}) == len(SOURCES)
    for source in SOURCES:
        assert source.what and source.licence and source.layout in fetch.LAYOUTS
        pair, release = "en-fr" if "any" in source.pairs else None, "v3.0" if source.release == "needed" else None
        choice = choose(source.name, pair=pair, release=release)
        assert not any("{" in address for address in choice.archives)
        assert len({address.rpartition("/")[2] for address in choice.archives}) == len(choice.archives)
        assert choice.stem.startswith(source.name)
    assert all(len(bytes.fromhex(digest)) == 32 for digest in fetch.PUBLISHED.values())
    other = choose("opus:Books", pair="fr-en", release="v1")
    assert (other.stem, other.archives[0].partition("/OPUS-")[2]) == ("books.v1.fr-en", "Books/v1/moses/en-fr.txt.zip")
