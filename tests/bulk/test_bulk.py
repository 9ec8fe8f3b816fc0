"""A file of vectors has the rows that `Embedder.embed` returns, for any number of shards and any compression."""

import gzip
import io
import lzma
import os
import resource
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from safetensors.numpy import load_file

import bgt_core
from bgt_core import bulk
from bgt_core.embedder import Embedder
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import BgtError, NotFound, UsageError
from bgt_core.grammar import Pair
from tests.close import assert_close

Names = Callable[[], list[str]]
ROOT = Path(__file__).resolve().parents[2]
CHUNK = 4
WIDTH = 12  # size of the test model's semantic latent


@pytest.fixture(scope="module")
def model(saved: Path) -> Embedder:
    return bgt_core.load(saved, "cpu", "fp32")


@pytest.fixture(scope="module")
def sentences(grammar: list[Pair]) -> list[str]:
    """22 sentences, of which two are empty. Four sentences are a chunk, so there are five and a half chunks."""
    return [pair.texts["en"] for pair in grammar[:10]] + ["", ""] + [pair.texts["en"] for pair in grammar[10:20]]


@pytest.fixture
def text(sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the working folder with one of the sentences per line."""
    monkeypatch.setattr(bulk, "CHUNK", CHUNK)
    monkeypatch.chdir(tmp_path)
    path = Path("text.txt")
    path.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def expected(model: Embedder, sentences: list[str]) -> np.ndarray:
    """The expected vectors: the same sentences embedded in memory."""
    parts = [model.embed(sentences[at : at + CHUNK], lang="en") for at in range(0, len(sentences), CHUNK)]
    return np.concatenate(parts)


def saved_by_numpy(vectors: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, vectors)
    return file.getvalue()


def test_a_row_a_line(model: Embedder, text: Path, expected: np.ndarray, sentences: list[str], names: Names) -> None:
    done: list[tuple[int, int]] = []
    written = bulk.embed_file(model, text, Path("x.npy"), lang="en", report=lambda *row: done.append(row))
    assert written == (Path("x.npy"), 22, WIDTH)
    assert Path("x.npy").read_bytes() == saved_by_numpy(expected)
    assert_close(np.load("x.npy"), model.embed(sentences, lang="en"))
    assert done == [(rows, 22) for rows in (0, 4, 8, 12, 16, 20, 22)]
    bulk.embed_file(model, text, Path("x.safetensors"), lang="en")
    (name, vectors), *more = load_file("x.safetensors").items()
    assert (name, vectors.dtype, more) == ("vectors", np.float32, [])
    np.testing.assert_array_equal(vectors, expected)
    assert names() == ["text.txt", "x.npy", "x.npy.json", "x.safetensors", "x.safetensors.json"]


@pytest.mark.parametrize("kind", ["gz", "xz", "zst", "crlf", "unended", "stdin", "pipe"])
def test_every_source_gives_the_same_bytes(
    kind: str, model: Embedder, text: Path, expected: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = text.read_bytes()
    source = text.rename(f"source.{kind}")
    compress = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.compress}
    if kind in compress:
        source.write_bytes(compress[kind](raw))
    elif kind == "crlf":
        source.write_bytes(raw.replace(b"\n", b"\r\n"))
    elif kind == "unended":
        source.write_bytes(raw.removesuffix(b"\n"))
    elif kind == "stdin":
        source.unlink()
        source = Path("-")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    else:
        source.unlink()
        os.mkfifo(source)
        threading.Thread(target=source.write_bytes, args=(raw,)).start()
    bulk.embed_file(model, source, Path("x.npy"), lang="en")
    assert Path("x.npy").read_bytes() == saved_by_numpy(expected)
    assert not list(Path().glob("*.partial*"))


def test_rows_of_another_encoder_are_not_taken_for_its_own(text: Path) -> None:
    for value, fingerprint, rows in ((1, "one", 1), (2, "two", 2), (3, "two", 2), (4, "", 4), (5, "", 5)):
        encoder = ExternalEncoder(
            "own", lambda texts, *_, value=value: np.full((len(texts), 3), value), fingerprint=fingerprint
        )
        bulk.embed_file(encoder, text, Path("x.npy"), lang="en")
        assert (np.load("x.npy") == rows).all()  # an existing file is reused only if fingerprints agree and are known


def test_no_file_lies_beside_the_record_of_another(model: Embedder, text: Path, expected: np.ndarray) -> None:
    out, raw = Path("x.npy"), text.read_bytes()
    bulk.embed_file(model, text, out, lang="en")
    text.write_bytes(raw.replace(b"e", b"o"))

    def replace(old: Path, new: Path, real: Callable[[Path, Path], None] = os.replace) -> None:
        if Path(new).name == "x.npy.json":
            raise KeyboardInterrupt  # stop after writing the vectors, before writing their description x.npy.json
        real(old, new)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "replace", replace)
        with pytest.raises(KeyboardInterrupt):
            bulk.embed_file(model, text, out, lang="en")
    assert not np.array_equal(np.load(out), expected) and not Path("x.npy.json").exists()
    bulk.embed_file(model, text, out, lang="en")
    assert np.load(out).shape == (22, WIDTH) and Path("x.npy.json").exists()


@pytest.mark.parametrize("shards", [1, 2, 5, 9])
@pytest.mark.parametrize("suffix", [".npy", ".safetensors"])
def test_shards_in_order_are_the_whole(
    shards: int, suffix: str, model: Embedder, text: Path, expected: np.ndarray
) -> None:
    out = Path(f"x{suffix}")
    parts = [bulk.embed_file(model, text, out, lang="en", shard=(n + 1, shards)) for n in reversed(range(shards))][::-1]
    assert [part.path.name for part in parts] == [f"x-{n + 1:05}-of-{shards:05}{suffix}" for n in range(shards)]
    load = np.load if suffix == ".npy" else lambda path: load_file(path)["vectors"]
    np.testing.assert_array_equal(np.concatenate([load(part.path) for part in parts]), expected)
    assert max(part.rows for part in parts) - min(part.rows for part in parts) <= 2 * CHUNK
    assert bulk.join(out, shards) == (out, 22, WIDTH)
    joined = out.read_bytes(), Path(f"{out}.json").read_bytes()
    out.unlink()
    bulk.embed_file(model, text, out, lang="en")
    assert (out.read_bytes(), Path(f"{out}.json").read_bytes()) == joined


def test_join_takes_whole_parts_of_one_making(model: Embedder, text: Path, expected: np.ndarray, names: Names) -> None:
    out, raw = Path("x.npy"), text.read_bytes()
    bulk.embed_file(model, text, out, lang="en", shard=(1, 2))
    with pytest.raises(NotFound, match=r"x-00002-of-00002\.npy\.json: can't be read \(No such file"):
        bulk.join(out, 2)
    for content, latent, message in (
        (raw, "language", "made with latent language, width 6, unlike x-00001"),
        (raw + b"one more\n", "semantic", r"made with text \w+, unlike x-00001"),
    ):
        text.write_bytes(content)
        bulk.embed_file(model, text, out, lang="en", latent=latent, shard=(2, 2))
        with pytest.raises(BgtError, match=rf"00002\.npy: {message}"):
            bulk.join(out, 2)
    text.write_bytes(raw)
    second = bulk.embed_file(model, text, out, lang="en", shard=(2, 2)).path
    record = Path(f"{second}.json")
    for path, damages in (
        (second, (lambda good: good[:-1], lambda good: good[:50], lambda good: b"\0" + good[1:])),
        (record, (lambda good: good[:-2], lambda _: b"[]", lambda good: good.replace(b'"rows": 10', b'"rows": -1'))),
    ):
        good = path.read_bytes()
        for damage in damages:
            path.write_bytes(damage(good))
            with pytest.raises(BgtError, match=r"2\.npy: damaged, or x-00002-of-00002\.npy\.json describes another"):
                bulk.join(out, 2)
        path.write_bytes(good)
    before = names()
    for wrong in ((0, 2), (3, 2), (1, 0)):
        with pytest.raises(UsageError, match=f"shard {wrong[0]}/{wrong[1]}: expected I/N"):
            bulk.embed_file(model, text, out, lang="en", shard=wrong)
    assert names() == before
    assert bulk.join(out, 2).rows == 22
    assert out.read_bytes() == saved_by_numpy(expected)


def test_what_is_complete_is_not_made_again(model: Embedder, text: Path, expected: np.ndarray, names: Names) -> None:
    out = Path("x.npy")
    bulk.embed_file(model, text, out, lang="en")
    written = out.stat().st_mtime_ns
    done: list[int] = []
    assert bulk.embed_file(model, text, out, lang="en", report=lambda rows, _: done.append(rows)).rows == 22
    assert (done, out.stat().st_mtime_ns) == ([22], written)
    out.write_bytes(b"something else")  # the file no longer has the recorded hash
    bulk.embed_file(model, text, out, lang="en")
    assert out.read_bytes() == saved_by_numpy(expected)
    bulk.embed_file(model, text, out, lang="en", latent="language")
    assert np.load(out).shape == (22, 6)
    assert names() == ["text.txt", "x.npy", "x.npy.json"]


def test_two_at_once_do_not_mix(model: Embedder, text: Path, expected: np.ndarray) -> None:
    refused = []

    def report(rows: int, total: int) -> None:
        with pytest.raises(BgtError, match=r"x\.npy: another process is writing it"):
            bulk.embed_file(model, text, Path("x.npy"), lang="en")
        refused.append(rows)

    bulk.embed_file(model, text, Path("x.npy"), lang="en", report=report)
    assert refused == [0, 4, 8, 12, 16, 20, 22]
    assert Path("x.npy").read_bytes() == saved_by_numpy(expected)


def test_a_full_disk_leaves_nothing(model: Embedder, text: Path, expected: np.ndarray, names: Names) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (128 + 4 * WIDTH * 10, limit[1]))
    try:
        with pytest.raises(BgtError, match=r"x\.npy: can't be written \(File too large\)") as error:
            bulk.embed_file(model, text, Path("x.npy"), lang="en")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert error.value.exit_code == 3
    assert names() == ["text.txt"]
    bulk.embed_file(model, text, Path("x.npy"), lang="en")
    assert Path("x.npy").read_bytes() == saved_by_numpy(expected)


@pytest.mark.parametrize("change", [lambda raw: raw + b"more\n", lambda raw: raw[:50], None])
def test_text_that_changes_meanwhile_is_noticed(
    change: Callable[[bytes], bytes] | None, model: Embedder, text: Path, names: Names
) -> None:
    def report(rows: int, total: int) -> None:
        if rows == 4:
            raw = text.read_bytes()
            text.unlink()
            if change:
                text.write_bytes(change(raw))

    with pytest.raises(BgtError, match=r"text\.txt: changed while it was read"):
        bulk.embed_file(model, text, Path("x.npy"), lang="en", report=report)
    assert "x.npy" not in names()


def test_an_error_in_the_text_comes_before_the_work(model: Embedder, text: Path, names: Names) -> None:
    text.write_bytes(text.read_bytes() + b"fine\ncaf\xe9\n")
    with pytest.raises(BgtError, match=r"^text\.txt:24: not UTF-8"):
        bulk.embed_file(model, text, Path("x.npy"), lang="en", report=lambda *_: pytest.fail("begun"))
    assert names() == ["text.txt"]


def test_long_lines_make_short_chunks(
    model: Embedder, text: Path, sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CHUNK_BYTES", 100)
    chunks: list[list[str]] = []

    class Seen(Embedder):
        def embed(self, sentences: list[str], **how: str) -> np.ndarray:
            chunks.append(sentences)
            return super().embed(sentences, **how)

    seen = Seen(model.model, model.tokenizer, model.langs)
    bulk.embed_file(seen, text, Path("x.npy"), lang="en")
    whole = [chunk for chunk in chunks if chunk]
    chunks.clear()
    assert [line for chunk in whole for line in chunk] == sentences
    assert all(len(chunk) <= CHUNK and sum(map(len, chunk[:-1])) < 100 for chunk in whole)
    assert any(len(chunk) < CHUNK for chunk in whole[:-1])
    for number in (1, 2, 3):
        bulk.embed_file(seen, text, Path("z.npy"), lang="en", shard=(number, 3))
    assert [chunk for chunk in chunks if chunk] == whole
