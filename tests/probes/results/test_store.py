"""Runs as files: the same after a round trip; and the cache: found by content, whole or not there, never in the way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from pyarrow import parquet

from bgt_core.encoders import open_encoder
from bgt_core.encoders.baseline import tokens
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import BgtError
from probes import ProbeConfig, measure_cell
from probes.results.store import (
    CELL,
    DAY,
    PREDICTIONS,
    RESULTS,
    VECTORS,
    Cache,
    Cell,
    correctness,
    default_folder,
    read_cells,
    with_cache,
    write_cells,
)


@pytest.fixture(scope="module")
def cells(encoder: Callable) -> list[Cell]:
    config = ProbeConfig(max_items=400, seeds=2, mdl=True, erase=True, curve=True)
    return [measure_cell(encoder(), "punct-num", lang=lang, name="fake", config=config) for lang in ("fr", "en")]


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*"))


def test_a_run_is_the_same_after_a_round_trip(cells: list[Cell], tmp_path: Path) -> None:
    file = tmp_path / "run.parquet"
    write_cells(file, cells)
    for again in (read_cells(file), read_cells("x", file.read_bytes())):
        for cell, one in zip(cells, again, strict=True):
            assert (one.model, one.result, one.trail) == (cell.model, cell.result, cell.trail)
            assert one.predictions.equals(cell.predictions)
    rows = parquet.read_table(file)
    assert rows.column_names == [*CELL, *PREDICTIONS.names] and set(rows["lang"].to_pylist()) == {"fr", "en"}
    assert [path.name for path in tmp_path.iterdir()] == ["run.parquet"]


def test_rows_of_predictions_give_the_accuracies(cells: list[Cell]) -> None:
    for row in cells[0].result.rows:
        kept = correctness(cells[0].predictions, row.latent)
        assert kept.right.sum() / kept.tested.sum() == pytest.approx(row.accuracy)
        assert kept.right.shape == (1, 2, 80) and (kept.tested.sum(0) == 1).all()
        assert not kept.right[0][~kept.tested].any()


def test_another_file_is_refused_and_a_damaged_entry_of_the_cache_counts_as_absent(
    cells: list[Cell], tmp_path: Path
) -> None:
    path = tmp_path / "cell.parquet"
    with pytest.raises(BgtError, match=r"cell.parquet: can't be read \(No such file"):
        read_cells(path)
    write_cells(path, cells[:1])
    assert Cache(tmp_path).cell(path, "another name").model == "another name"
    whole = path.read_bytes()
    assert whole.count(b"bgt-probe/6") == 1
    other = whole.replace(b"bgt-probe/6", b"bgt-probe/9")
    for content, message in (
        (b"", "not a run of bgt-probe"),
        (whole[: len(whole) // 2], "not a run of bgt-probe"),
        (b"x,y\n1,2\n", "make one with: bgt-probe --out FILE.parquet"),
        (other, "its schema is 'bgt-probe/9', this version reads bgt-probe/6; run bgt-probe again"),
        (whole.replace(b'"accuracy"', b'"akkuracy"'), "incomplete: "),
    ):
        path.write_bytes(content)
        with pytest.raises(BgtError, match=message):
            read_cells(path)
        assert Cache(tmp_path).cell(path, "m") is None
    parquet.write_table(cells[0].predictions, path)  # without the results
    with pytest.raises(BgtError, match="not a run of bgt-probe"):
        read_cells(path)


class Counting:
    """An encoder that counts how often it is asked."""

    langs, latents, fingerprint = ("en",), ("semantic",), "weights 1"
    calls = 0

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        self.calls += 1
        return np.array([[len(sentence), 1] for sentence in sentences], dtype=np.float32)


def test_vectors_are_made_once_for_the_same_content(tmp_path: Path) -> None:
    encoder = Counting()
    kept = with_cache(encoder, Cache(tmp_path))
    first = kept.embed(["a", "bb"], lang="en")
    again = with_cache(encoder, Cache(tmp_path)).embed(["a", "bb"], lang="en")
    assert encoder.calls == 1
    np.testing.assert_array_equal(first, again)
    assert again.dtype == np.float32
    kept.embed(["bb", "a"], lang="en")  # another order is other content
    encoder.fingerprint = "weights 2"
    kept.embed(["a", "bb"], lang="en")
    assert encoder.calls == 3
    assert kept.langs == ("en",)
    assert not hasattr(kept, "count_truncated")


def test_an_encoder_of_unknown_content_is_not_kept(tmp_path: Path) -> None:
    encoder = ExternalEncoder("python:mine:embed", lambda texts, lang, latent: np.ones((len(texts), 2)))
    assert with_cache(encoder, Cache(tmp_path)) is encoder
    assert with_cache(Counting(), None).calls == 0


def test_a_damaged_entry_is_made_anew(tmp_path: Path) -> None:
    cache, vectors = Cache(tmp_path), np.arange(6, dtype=np.float32).reshape(3, 2)
    cache.vectors("x", lambda: vectors)
    path = cache.path(VECTORS, "x")
    for damaged in (path.read_bytes()[:40], path.read_bytes()[:-4], b""):
        path.write_bytes(damaged)
        np.testing.assert_array_equal(cache.vectors("x", lambda: vectors), vectors)
    np.testing.assert_array_equal(cache.vectors("x", lambda: pytest.fail("it is there")), vectors)


def test_a_failure_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(BgtError, match=r"No space left on device.*choose another folder") as error:
        Cache(tmp_path).vectors("x", lambda: np.zeros((1, 1)))
    assert error.value.exit_code == 3
    assert not entries(tmp_path)


def test_pruning_goes_by_the_last_use(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for name in "ab":
        cache.vectors(name, lambda: np.zeros((1, 1)))
        long_ago = time.time() - 3 * DAY
        os.utime(cache.path(VECTORS, name), (long_ago, long_ago))
    cache.vectors("a", lambda: np.zeros((1, 1)))  # used today
    (tmp_path / RESULTS).mkdir()
    assert cache.prune(days=2)[0] == 1
    assert [path.stem for path in entries(tmp_path)] == ["a"]
    assert cache.prune()[0] == 1
    assert not entries(tmp_path)
    assert Cache(tmp_path / "absent").prune() == (0, 0)


def test_what_another_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    with cache.writing(cache.path(VECTORS, "x")) as partial:
        partial.write_bytes(b"half")
        assert cache.prune() == (0, 0)
        partial.write_bytes(b"whole")
    assert cache.path(VECTORS, "x").read_bytes() == b"whole"
    left = tmp_path / VECTORS / "y.npy.1.partial"  # by a process that was killed hours ago
    left.write_bytes(b"half")
    os.utime(left, (time.time() - 7_200,) * 2)
    assert cache.prune(days=0.05) == (1, 4)
    assert [path.name for path in entries(tmp_path)] == ["x.npy"]


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BGT_CACHE", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("BGT_CACHE")
    monkeypatch.setattr("probes.results.store.user_cache_path", lambda name, appauthor: tmp_path / "system" / name)
    assert default_folder() == Cache().folder == tmp_path / "system" / "bgt"


def test_encoders_say_what_they_are_made_of(saved: Path) -> None:
    bgt, again, other = (open_encoder(saved, device="cpu", precision="fp32") for _ in range(3))
    assert bgt.fingerprint == again.fingerprint
    assert bgt.fingerprint != open_encoder(saved, device="cpu", precision="bf16").fingerprint
    with torch.no_grad():
        next(other.model.parameters()).view(-1)[0] += 1e-3
    assert bgt.fingerprint != other.fingerprint
    assert bgt.fingerprint in tokens(bgt).fingerprint
    assert open_encoder("baseline:words").fingerprint != open_encoder("baseline:tfidf").fingerprint


def test_vectors_of_a_file_are_known_by_content(tmp_path: Path) -> None:
    fingerprints = []
    for value in (1, 1, 2):
        np.savez(tmp_path / "v.npz", vectors=np.full((1, 2), value), sentences=np.array(["a"]))
        fingerprints.append(open_encoder(f"vectors:{tmp_path / 'v.npz'}").fingerprint)
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]
