"""Sources end to end, from a server of small archives to files that our readers read."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any

import pytest
import requests

from bgt_core.data import fetch
from bgt_core.data.fetch import layouts, opus, sources
from bgt_core.data.manifest import facts
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.errors import BgtError
from bgt_core.evaluation.sts_files import read_sets


def zipped(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def tarred(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


ENGLISH = [f"sentence {number}" for number in range(100)]
GERMAN = [f"Satz {number}" for number in range(100)]
CORPUS = {
    "Books.de-en.de": "\n".join([*GERMAN, "", "ein\tTab"]).encode() + b"\r\n",
    "Books.de-en.en": "\n".join([*ENGLISH, "no German", "a\ttab"]).encode() + b"\n",
    "Books.de-en.xml": b"<links/>",
    "LICENSE": b"for this test",
    "README": b"read me",
}


@pytest.fixture
def books(site: Any, monkeypatch: pytest.MonkeyPatch) -> fetch.DataSource:
    """A corpus of OPUS, release v1, in German and English."""
    monkeypatch.setattr(sources, "OPUS", site.url("OPUS-{corpus}/{release}/moses/{opus_pair}.txt.zip"))
    site.files["OPUS-Books/v1/moses/de-en.txt.zip"] = zipped(CORPUS)
    return sources._opus("Books", "v1", "novels", "public domain")


def get(source: fetch.DataSource, out: Path, **options: Any) -> fetch.Downloaded:
    return fetch.download(fetch.Request.parse(source, **options), out)


def manifest(out: Path) -> dict:
    return json.loads((out / "bgt-data.json").read_text("utf-8"))


def test_opus_becomes_a_table_in_the_order_asked_for(site: Any, books: fetch.DataSource, tmp_path: Path) -> None:
    done = get(books, tmp_path, pair="en-de")
    names = ["books.v1.en-de.tsv.zst", "books.v1.en-de.LICENSE", "books.v1.en-de.README"]
    assert [path.name for path in done.files] == names
    assert {path.name for path in tmp_path.iterdir()} == {*names, "bgt-data.json"}
    pairs = list(read_pairs(done.files[0], ("en", "de"), Skipped(), strict=True))
    assert pairs == [*zip(ENGLISH, GERMAN, strict=True), ("a tab", "ein Tab")]
    assert done.left_out == {"empty side": 1}
    (source,) = manifest(tmp_path)["sources"].values()
    archive = site.files["OPUS-Books/v1/moses/de-en.txt.zip"]
    assert source["licence"] == "public domain"
    assert list(source["archives"].values()) == [
        {"bytes": len(archive), "sha256": hashlib.sha256(archive).hexdigest(), "trusted": "first download"}
    ]
    assert manifest(tmp_path)["files"][names[0]]["rows"] == 101
    assert all(record.items() >= facts(tmp_path / name).items() for name, record in manifest(tmp_path)["files"].items())


def test_what_is_there_is_not_downloaded_again(site: Any, books: fetch.DataSource, tmp_path: Path) -> None:
    first = get(books, tmp_path, pair="de-en")
    asked = len(site.asked)
    again = get(books, tmp_path, pair="de-en")
    assert (first.new, again.new, len(site.asked)) == (True, False, asked)
    assert again.files == first.files and again.left_out == first.left_out


def test_two_downloads_at_once_are_both_in_the_manifest(
    books: fetch.DataSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = fetch.manifest.read_manifest

    def slowly(folder: Path) -> dict[str, Any]:
        records = read(folder)
        sleep(0.3)  # until the other download has read it too, if nothing holds it up
        return records

    monkeypatch.setattr(fetch.manifest, "read_manifest", slowly)
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda pair: get(books, tmp_path, pair=pair), ("en-de", "de-en")))
    names = {path.name for one in done for path in one.files}
    assert len(manifest(tmp_path)["sources"]) == 2 and manifest(tmp_path)["files"].keys() == names
    assert not (tmp_path / ".download").exists()


def test_a_sample_keeps_the_order_and_is_the_same_again(books: fetch.DataSource, tmp_path: Path) -> None:
    done = [get(books, tmp_path / name, pair="de-en", max_pairs=40) for name in "ab"]
    rows = [list(read_pairs(one.files[0], ("de", "en"), Skipped())) for one in done]
    assert len(rows[0]) == 40 and rows[0] == rows[1]
    places = [GERMAN.index(german) for german, _ in rows[0] if german != "ein Tab"]
    assert places == sorted(places) and max(places) > 50
    assert done[0].left_out == {"empty side": 1, "not in the sample": 61}
    assert done[0].files[0].read_bytes() == done[1].files[0].read_bytes()


def test_every_choice_of_a_sample_is_as_likely() -> None:
    """Against the closed form: 2 of 4 rows are one of 6 pairs, each with chance 1/6."""
    counts: dict[tuple, int] = {}
    for seed in range(3000):
        chosen = tuple(layouts._sample(iter("abcd"), 4, 2, seed))
        counts[chosen] = counts.get(chosen, 0) + 1
    assert len(counts) == 6
    assert sum((count - 500) ** 2 / 500 for count in counts.values()) < 20.5  # chi2(5), p = 0.001


def test_a_changed_archive_is_refused_once_trusted(site: Any, books: fetch.DataSource, tmp_path: Path) -> None:
    get(books, tmp_path, pair="de-en").files[0].unlink()
    kept = manifest(tmp_path)
    site.files["OPUS-Books/v1/moses/de-en.txt.zip"] = zipped(CORPUS | {"README": b"another"})
    with pytest.raises(BgtError, match=r"SHA-256 is \w{64}, expected \w{64} \(first download\)") as error:
        get(books, tmp_path, pair="de-en")
    assert error.value.exit_code == 4
    assert manifest(tmp_path) == kept and not list(tmp_path.rglob("*.zip"))


@pytest.mark.parametrize("good", [True, False])
def test_a_published_checksum_decides(
    good: bool, site: Any, books: fetch.DataSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "OPUS-Books/v1/moses/de-en.txt.zip"
    digest = hashlib.sha256(site.files[path] + b"" * good + b"!" * (not good)).hexdigest()
    monkeypatch.setitem(sources.PUBLISHED, site.url(path), (len(site.files[path]), digest))
    if good:
        get(books, tmp_path, pair="de-en")
        (source,) = manifest(tmp_path)["sources"].values()
        assert next(iter(source["archives"].values()))["trusted"] == "published"
    else:
        with pytest.raises(BgtError, match=rf"expected {digest} \(published\)"):
            get(books, tmp_path, pair="de-en")
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_published_checksums_look_like_ones() -> None:
    for address, (size, digest) in sources.PUBLISHED.items():
        assert address.startswith("https://") and size > 0 and len(bytes.fromhex(digest)) == 32


def test_a_full_disk_is_said_before(books: fetch.DataSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "free")(100)
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda place: usage)
    with pytest.raises(BgtError, match="bytes are needed, but only 100 are free") as error:
        get(books, tmp_path / "new", pair="de-en")
    assert error.value.exit_code == 3
    assert not (tmp_path / "new").exists()


def test_a_disk_that_fills_while_unpacking_keeps_the_archive(
    site: Any, books: fetch.DataSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("bgt_core.data.pairfile._compressed", full)
        with pytest.raises(BgtError, match="No space left"):
            get(books, tmp_path, pair="de-en")
    gets = len(site.gets())
    assert get(books, tmp_path, pair="de-en").new
    assert len(site.gets()) == gets
    assert not (tmp_path / ".download").exists()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"Books.de-en.de": b"eins\nzwei\n", "Books.de-en.en": b"one\n"}, "differ in their number of lines"),
        ({"Books.de-en.de": b"eins\n"}, r"expected one file ending in \.en"),
        ({"Books.de-en.de": b"\n", "Books.de-en.en": b"one\n"}, "holds no pairs"),
        (None, "damaged"),
    ],
)
def test_a_bad_archive_is_one_line_and_leaves_nothing(
    files: dict[str, bytes] | None, message: str, site: Any, books: fetch.DataSource, tmp_path: Path
) -> None:
    site.files["OPUS-Books/v1/moses/de-en.txt.zip"] = zipped(files) if files else b"<html>moved</html>"
    with pytest.raises(BgtError, match=message) as error:
        get(books, tmp_path, pair="de-en")
    assert "\n" not in str(error.value)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_raw_keeps_the_files_of_the_source(books: fetch.DataSource, tmp_path: Path) -> None:
    done = get(books, tmp_path, pair="de-en", raw=True)
    assert {path.name: path.read_bytes() for path in done.files} == CORPUS
    assert all(record.items() >= facts(tmp_path / name).items() for name, record in manifest(tmp_path)["files"].items())


def test_sts_becomes_what_bgt_sts_reads(site: Any, tmp_path: Path) -> None:
    files = {
        "test/STS.input.MSRpar.txt": "A dog.\tA hound.\nA “cat”.\tA car.\nunscored\tpair\n",
        "test/STS.gs.MSRpar.txt": "4.5\n0.2\n\n",
        "test/STS.input.surprise.OnWN.txt": "a\tb\nc\td\n",
        "test/STS.gs.surprise.OnWN.txt": "1\n2\n",
        "test/STS.gs.ALL.txt": "4.5\n",
        "__MACOSX/test/._STS.gs.OnWN.txt": "junk",
    }
    site.files["STS2012-en-test.zip"] = zipped({name: text.encode() for name, text in files.items()})
    source = fetch.DataSource("sts2012", "", "", (site.url("STS2012-en-test.zip"),), layouts.sts)
    assert get(source, tmp_path).left_out == {"no score": 1}
    sets = {data.name: data for data in read_sets(tmp_path, ["2012"])}
    assert sets.keys() == {"MSRpar", "OnWN"}
    assert sets["MSRpar"].gold.tolist() == [4.5, 0.2]
    assert sets["MSRpar"].right == ["A hound.", "A car."] and sets["MSRpar"].left[1] == "A “cat”."


def test_semeval_2017_lies_in_one_folder(site: Any, tmp_path: Path) -> None:
    site.files["eval.zip"] = zipped({"a/STS.input.track1.ar-ar.txt": b"x\ty\n", "a/README.txt": b"1"})
    site.files["gs.zip"] = zipped({"b/STS.gs.track1.ar-ar.txt": b"1\n", "b/README.txt": b"2"})
    source = fetch.DataSource("sts2017", "", "", (site.url("eval.zip"), site.url("gs.zip")), layouts.tracks)
    names = {path.relative_to(tmp_path).as_posix() for path in get(source, tmp_path).files}
    assert names == {"sts2017/STS.input.track1.ar-ar.txt", "sts2017/STS.gs.track1.ar-ar.txt"}


def test_other_archives_and_texts_stay_as_they_are(site: Any, tmp_path: Path) -> None:
    site.files["stsb.tar.gz"] = tarred({"stsbenchmark/sts-dev.csv": b"x", "stsbenchmark/._sts-dev.csv": b"junk"})
    (done,) = get(fetch.DataSource("stsb", "", "", (site.url("stsb.tar.gz"),), layouts.as_is), tmp_path).files
    assert done == tmp_path / "stsb/stsbenchmark/sts-dev.csv"
    site.files |= {"one.txt": b"tr\tO\tgood\n", "two.txt": b"version https://git-lfs.github.com/spec/v1\n"}
    probes = fetch.DataSource("probing", "", "", (site.url("one.txt"),), layouts.as_is)
    assert get(probes, tmp_path).files == [tmp_path / "probing/one.txt"]
    pointer = fetch.DataSource("pointer", "", "", (site.url("two.txt"),), layouts.as_is)
    with pytest.raises(BgtError, match="expected text, found"):
        get(pointer, tmp_path)
    site.files["plain.tsv.gz"] = gzip.compress(b"text")
    plain = fetch.DataSource("plain", "", "", (site.url("plain.tsv.gz"),), layouts.as_is)
    assert get(plain, tmp_path).files[0].read_bytes() == b"text"


def test_laser_files_become_a_table(site: Any, tmp_path: Path) -> None:
    site.files |= {"t.fra-eng.eng": b"yes\nno\n", "t.fra-eng.fra": b"oui\nnon\n"}
    addresses = (site.url("t.{iso}-eng.eng"), site.url("t.{iso}-eng.{iso}"))
    source = fetch.DataSource("tatoeba-1000", "", "", addresses, layouts.tatoeba, "any pair with en")
    (path,) = get(source, tmp_path, pair="fr-en").files
    assert path.read_text("utf-8") == "oui\tyes\nnon\tno\n"
    with pytest.raises(BgtError, match="aligned with en"):
        get(source, tmp_path, pair="fr-es")


def test_opus_is_asked_for_the_latest_release(
    site: Any, books: fetch.DataSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opus, "API", site.url("opusapi/"))
    address = site.url("OPUS-Books/v1/moses/de-en.txt.zip")
    item = {"corpus": "Books", "version": "v1", "alignment_pairs": 102, "size": 3, "url": address}
    site.files["opusapi/"] = json.dumps(
        {"corpora": [{**item, "corpus": "Small", "alignment_pairs": ""}, item]}
    ).encode()
    with fetch.transfer.session() as http:
        entries = opus.corpora(http, ("en", "de"))
    assert entries[0] == ("Books", "v1", 102, 3072, address)
    assert [entry.pairs for entry in entries] == [102, 0]
    assert "source=de&target=en" in site.asked[0][1]
    assert get(fetch.source("opus:Books"), tmp_path, pair="en-de").files[0].name == "books.v1.en-de.tsv.zst"
    for answer, message in ((b'{"corpora": []}', "OPUS has no"), (b"<html>", "unexpected"), (b"[]", "unexpected")):
        site.files["opusapi/"] = answer
        with pytest.raises(BgtError, match=message):
            get(fetch.source("opus:Other"), tmp_path, pair="en-de")


@pytest.mark.parametrize(
    ("name", "how", "message"),
    [
        ("no-such", {}, "No data 'no-such'; choose from opensubtitles, "),
        ("tatoeba", {}, "pair is needed: "),
        ("tatoeba", {"pair": "en"}, "pair en: expected two"),
        ("tatoeba", {"pair": "en-en"}, "expected two"),
        ("tatoeba", {"pair": "en-fr", "max_pairs": 0}, "max_pairs 0"),
        ("tatoeba", {"pair": "en-fr", "max_pairs": 9, "raw": True}, "leave one out"),
        ("giga-fren", {"pair": "en-de"}, "has en-fr only"),
        ("sick", {"pair": "en-fr"}, "no language pairs"),
        ("opensubtitles", {"pair": "en-fr", "release": "x/../../../evil"}, "release"),
        ("sick", {"release": "v1"}, "no releases"),
        ("sick", {"max_pairs": 9}, "max_pairs 9"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_network(
    name: str, how: dict, message: str, site: Any, tmp_path: Path
) -> None:
    with pytest.raises(BgtError, match=message) as error:
        get(fetch.source(name), tmp_path, **how)
    assert error.value.exit_code == 2
    assert not site.asked and not list(tmp_path.iterdir())


def test_every_source_can_be_resolved() -> None:
    names = [source.name for source in fetch.SOURCES]
    assert len(set(names)) == len(names)
    for source in fetch.SOURCES:
        assert source.what and source.licence
        if source.release != "latest":
            pair = {"": None, "en-fr": None}.get(source.pairs, "en-fr")
            request, addresses = fetch.Request.parse(source, pair=pair).resolve(requests.Session())
            assert not any("{" in address for address in addresses)
            assert len({fetch._name(address) for address in addresses}) == len(addresses)
            assert request.stem.startswith(source.name)
