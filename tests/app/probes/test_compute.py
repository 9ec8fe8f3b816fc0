"""Probes run on the spot, and what was predicted of each sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pytest

import bgt_core
import probes
from app.core import state
from app.core.results import gather
from app.probes import compute
from probes.results.store import Cell, write_cells


def test_predictions_are_read_back_and_compared(cell: Cell, tmp_path: Path) -> None:
    write_cells(tmp_path / "items.parquet", [cell])
    (stored,) = gather.gathered([tmp_path / "items.parquet"]).items.values()
    sorted_items = compute.by_information(stored.predictions, "semantic")
    tested = stored.predictions.filter(pc.field("predictor") == "semantic")
    assert len(sorted_items) == len(tested) and sorted_items["pvi"].is_monotonic_decreasing
    information = next(row.information for row in cell.result.rows if row.latent == "semantic")
    assert sorted_items["pvi"].mean() == pytest.approx(information, rel=1e-5)


@pytest.mark.slow
def test_a_probe_on_the_spot_is_the_commands(saved: Path, start: Callable[..., None]) -> None:
    start("--model", saved)
    reports: list[str] = []
    cell = compute.run(state.model(), "length", "fr", None, "", 300, 1, reports.append)
    config = probes.ProbeConfig(max_items=300, seeds=1)
    expected = probes.run(bgt_core.load(saved), "length", lang="fr", config=config)
    assert cell.result.as_dict() == expected.as_dict() and reports[0] == "length fr: semantic"
