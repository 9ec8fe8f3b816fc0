"""Cells as files: the same after a round trip, and comparisons that need no model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from scipy.stats import norm

from bgt_core.errors import BgtError
from probes import ProbeConfig, measure_cell
from probes.result import Predictions, ProbeResult, ProbeScore
from probes.results.compare import cell_gap, corrected, gap
from probes.results.store import Cell, all_predictions, cell_of, correctness, read_cell, write_cell
from probes.task import Items

N = 10_000


def planted(right: dict[str, np.ndarray], name: str = "m") -> Cell:
    """A cell of one probe seed, whose predictors are right where they are said to be; labels alternate."""
    size = len(next(iter(right.values())))
    truth = np.arange(size) % 2
    rows, predictions = [], {}
    for latent, verdict in right.items():
        labels = np.where(verdict, truth, 1 - truth).astype(np.int32)[None, None]
        predictions[latent] = Predictions(labels, np.ones(labels.shape, np.float32), np.zeros(size, np.float32))
        rows.append(ProbeScore("gender", "fr", latent, 10, size, 2, float(np.mean(verdict)), 0, 1, 0))
    items = Items([f"s{place}" for place in range(size)], ["ab"[label] for label in truth], list(range(size)))
    result = ProbeResult(
        "gender", "fr", 1, 0, 0.95, rows, None, 0, labels=["a", "b"], items=items, predictions=predictions
    )
    latents = [latent for latent in right if latent != "majority"]
    cell = cell_of(name, result, {"probe": "linear", "latents": latents, "langs": ["en", "fr"]})
    against = [cell_gap(cell, latent, cell, "majority") for latent in latents if "majority" in right]
    return replace(cell, result=replace(cell.result, over_majority=against))


def first(count: int) -> np.ndarray:
    return np.arange(N) < count


def measure(made: Any, **options: object) -> Cell:
    config = ProbeConfig(**{"max_items": 400, "seeds": 2, **options})
    return measure_cell(made, "punct-num", lang="fr", name="fake", config=config)


def test_a_cell_is_the_same_after_a_round_trip(encoder: Callable, tmp_path: Path) -> None:
    cell = measure(encoder(), control="first", mdl=True, erase="leace", curve=True)
    write_cell(tmp_path / "cell.parquet", cell)
    again = read_cell(tmp_path / "cell.parquet", "another name")
    assert again.result == cell.result
    assert again.result.difference.points == cell.result.difference.points
    assert again.predictions.equals(cell.predictions)
    assert again.trail == cell.trail
    assert again.model == "another name"
    assert [path.name for path in tmp_path.iterdir()] == ["cell.parquet"]


def test_what_is_damaged_or_another_file_counts_as_absent(tmp_path: Path) -> None:
    path = tmp_path / "cell.parquet"
    assert read_cell(path, "m") is None
    write_cell(path, planted({"semantic": first(9)}))
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"x" * 100):
        path.write_bytes(damaged)
        assert read_cell(path, "m") is None
    cell = planted({"semantic": first(9)})
    parquet.write_table(cell.predictions, path)  # without the result
    assert read_cell(path, "m") is None


def test_rows_of_predictions_give_the_accuracies(encoder: Callable) -> None:
    cell = measure(encoder())
    for row in cell.result.rows:
        kept = correctness(cell.predictions, row.latent)
        assert kept.right.sum() / kept.tested.sum() == pytest.approx(row.accuracy)
    table = all_predictions([cell]).to_pylist()
    assert {row["task"] for row in table} == {"punct-num"}
    mine = [row for row in table if row["predictor"] == "language"]
    assert len(mine) == 80
    assert np.mean([row["predicted"] == row["label"] for row in mine]) == pytest.approx(cell.row("language").accuracy)


def test_a_kept_difference_is_the_measured_one(encoder: Callable) -> None:
    cell = measure(encoder(), seeds=5, max_items=2_000, control=None, baselines=False)
    kept, fresh = cell_gap(cell, "semantic", cell, "language"), cell.result.difference
    for name in ("points", "ci_low", "ci_high", "p"):  # the resamples are the same
        assert getattr(kept, name) == pytest.approx(getattr(fresh, name))
    table = cell.predictions
    assert gap(table, "semantic", table, "language", task="punct-num", lang="fr") == kept  # no cell is needed


def test_a_difference_of_two_encoders_is_paired_on_items() -> None:
    left, right = planted({"semantic": first(6_000)}), planted({"semantic": first(5_900)}, "other")
    difference = cell_gap(left, "semantic", right, "semantic", ("m", "other"))
    assert difference.points == pytest.approx(1)
    half = 1.96 * 100 * np.sqrt(0.01 * 0.99 / N)  # not 1.4 points
    assert difference.ci_low == pytest.approx(1 - half, abs=0.02)
    assert difference.p == pytest.approx(2 * norm.sf(np.sqrt(100 / 0.99)), rel=1)  # of 1e-23: rounding of resamples
    assert (difference.first, difference.second) == ("m", "other")


def test_other_items_are_not_compared() -> None:
    left, right = planted({"semantic": first(60)}), planted({"semantic": first(60)[:5_000]}, "other")
    with pytest.raises(BgtError, match="gender fr: 'm' and 'other' were tested on different items"):
        cell_gap(left, "semantic", right, "semantic", ("m", "other"))


def test_notes_say_what_majority_does_as_well_after_holm() -> None:
    """Majority is right on half; the verdicts of a latent are independent of its: 50.7 is noise, 52.6 is not."""
    rng = np.random.default_rng(0)
    majority = np.arange(N) % 2 == 0

    def at(share: float) -> np.ndarray:
        verdict = np.zeros(N, dtype=bool)
        verdict[rng.permutation(N)[: round(share * N)]] = True
        return verdict

    cell = planted({"semantic": at(0.507), "language": at(0.526), "majority": majority})
    stale = [replace(row, note="not separable from majority; did not converge") for row in cell.result.rows]
    (after,) = corrected([replace(cell, result=replace(cell.result, rows=stale))])
    notes = {row.latent: row.note for row in after.result.rows}
    assert notes["semantic"].startswith("did not converge; not separable from majority 50.0 after Holm (p=0.")
    assert notes["language"] == "did not converge"


def test_a_latent_below_majority_is_called_so() -> None:
    cell = planted({"semantic": first(4_000), "majority": first(5_000)})
    (after,) = corrected([cell])
    assert after.row("semantic").note.startswith("below majority 50.0 after Holm")
    assert after.row("majority").note == ""


def test_holm_is_over_the_whole_table(encoder: Callable) -> None:
    cells = [measure(encoder(), seed=seed) for seed in (0, 1)]
    after = corrected(cells)
    ps = [one.p for cell in cells for one in (cell.result.difference, *cell.result.over_baseline)]
    adjusted = [one.adjusted_p for cell in after for one in (cell.result.difference, *cell.result.over_baseline)]
    assert len(ps) == 6
    assert adjusted[int(np.argmin(ps))] == pytest.approx(min(1, 6 * min(ps)))


def test_correctness_keeps_encoders_and_seeds_apart(encoder: Callable) -> None:
    verdicts = correctness(measure(encoder()).predictions, "language")
    assert verdicts.right.shape == (1, 2, 80)
    assert (verdicts.tested.sum(0) == 1).all()
    assert not verdicts.right[0][~verdicts.tested].any()
