"""Results of probes are stored and read back unchanged; damaged files raise errors; fingerprints identify encoders."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from pyarrow import parquet

from bgt_core.encoders import open_encoder
from bgt_core.encoders.baseline import tokens
from bgt_core.errors import BgtError
from probes import ProbeConfig, measure_cell
from probes.results.store import CELL, PREDICTIONS, Cell, read_cells, write_cells


@pytest.fixture(scope="module")
def cells(encoder: Callable) -> list[Cell]:
    config = ProbeConfig(max_items=400, seeds=2)
    return [measure_cell(encoder(), "punct-num", lang=lang, name="fake", config=config) for lang in ("fr", "en")]


def test_a_run_is_unchanged_by_a_round_trip(cells: list[Cell], tmp_path: Path) -> None:
    file = tmp_path / "run.parquet"
    write_cells(file, cells)
    for again in (read_cells(file), read_cells("x", file.read_bytes())):
        for cell, one in zip(cells, again, strict=True):
            assert (one.model, one.result, one.trail) == (cell.model, cell.result, cell.trail)
            assert one.predictions.equals(cell.predictions)
    rows = parquet.read_table(file)
    assert rows.column_names == [*CELL, *PREDICTIONS.names] and set(rows["lang"].to_pylist()) == {"fr", "en"}
    assert [path.name for path in tmp_path.iterdir()] == ["run.parquet"]


def test_a_damaged_or_foreign_file_is_an_error(cells: list[Cell], tmp_path: Path) -> None:
    path = tmp_path / "cell.parquet"
    with pytest.raises(BgtError, match=r"cell.parquet: can't be read \(No such file"):
        read_cells(path)
    write_cells(path, cells[:1])
    whole = path.read_bytes()
    assert whole.count(b"bgt-probe/6") == 1
    other = whole.replace(b"bgt-probe/6", b"bgt-probe/9")
    for content, message in (
        (b"", "not a run of bgt-probe"),
        (whole[: len(whole) // 2], "not a run of bgt-probe"),
        (b"x,y\n1,2\n", "make one with: bgt-probe --out FILE.parquet"),
        (other, "its schema is 'bgt-probe/9', but this version reads bgt-probe/6; run bgt-probe again"),
        (whole.replace(b'"accuracy"', b'"akkuracy"'), "incomplete: "),
    ):
        path.write_bytes(content)
        with pytest.raises(BgtError, match=message):
            read_cells(path)
    parquet.write_table(cells[0].predictions, path)  # without the metadata, which contain the results
    with pytest.raises(BgtError, match="not a run of bgt-probe"):
        read_cells(path)


def test_a_fingerprint_depends_on_weights_and_precision(saved: Path) -> None:
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
