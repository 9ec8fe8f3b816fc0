"""Which latent holds what: planted signs come out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bgt_core.errors import BgtError
from bgt_core.tables import Table, save
from probes.result import Predictions, ProbeResult, ProbeScore
from probes.results.compare import cell_gap
from probes.results.published import SYSTEMS, TABLE, published
from probes.results.separation import as_table, counts, separation
from probes.results.store import Cell, cell_of
from probes.results.tables import long_table, wide_table
from probes.task import Items
from probes.tasks import PAPER

N = 2_000


def cell(task: str, lang: str, semantic: float, language: float, name: str = "m & <b>") -> Cell:
    """A cell whose latents are right independently, with these shares; labels alternate."""
    rng, truth = np.random.default_rng(len(task)), np.arange(N) % 2
    rows, predictions = [], {}
    for latent, share in (("semantic", semantic), ("language", language), ("majority", 0.5)):
        right = np.zeros(N, dtype=bool)
        right[rng.permutation(N)[: round(share * N)]] = True
        labels = np.where(right, truth, 1 - truth).astype(np.int32)[None, None]
        predictions[latent] = Predictions(labels, np.ones(labels.shape, np.float32), np.zeros(N, np.float32))
        rows.append(ProbeScore(task, lang, latent, 10, N, 2, share, share - 0.02, share + 0.02, 0))
    items = Items([f"s{place}" for place in range(N)], ["ab"[label] for label in truth], list(range(N)))
    result = ProbeResult(task, lang, 1, 0, 0.95, rows, None, 0, warnings=["1 < 2"], labels=["a", "b"], items=items,
                         predictions=predictions)  # fmt: skip
    trail = {"probe": "linear", "latents": ["semantic", "language"], "langs": ["en", "fr"], "fingerprint": "abc"}
    kept = cell_of(name, result, trail | {"data": "D", "items_sha256": "0", "version": "1", "measured": "2026-01-01"})
    return replace(kept, result=replace(kept.result, difference=cell_gap(kept, "semantic", kept, "language")))


CELLS = [
    cell("subj-num", "en", 0.8, 0.7),  # as the paper
    cell("length", "en", 0.8, 0.7),  # the paper has language above
    cell("punct-num", "en", 0.70, 0.705),  # can't be told
    cell("tense", "en", 0.6, 0.9),  # not in the paper
    cell("subj-num", "fr", 0.6, 0.9),  # the paper has English alone
    cell("gender", "fr", 0.52, 0.60),  # of French
]


def test_signs_stand_beside_the_papers() -> None:
    lines = separation(CELLS)
    assert [line.holds for line in lines] == ["semantic", "semantic", "neither", "language", "language", "language"]
    assert [line.against_paper for line in lines] == [
        "as the paper",
        "not as the paper",
        "undecided",
        "",
        "",
        "as the paper",
    ]
    assert "the paper has too: 2 with its sign, 1 with the other, 1 where the latents can't be told" in counts(lines)
    first = lines[0].difference
    assert first.points == pytest.approx(10)
    assert first.ci_low == pytest.approx(10 - 1.96 * 100 * np.sqrt((0.8 * 0.2 + 0.7 * 0.3) / N), abs=0.4)
    row = dict(zip(as_table(lines).columns, as_table(lines).rows[0], strict=True))
    assert (row["holds more"], row["sign"]) == ("semantic", "as the paper")
    assert (row["paper semantic"], row["paper language"]) == (84.6, 75.2)


def test_one_latent_cannot_be_compared() -> None:
    with pytest.raises(BgtError, match="probe the semantic and the language latent"):
        separation([replace(CELLS[0], result=replace(CELLS[0].result, difference=None))])


def test_the_latent_measured_first_makes_no_difference() -> None:
    turned = [
        replace(kept, result=replace(kept.result, difference=cell_gap(kept, "language", kept, "semantic")))
        for kept in CELLS
    ]
    assert [line.holds for line in separation(turned)] == [line.holds for line in separation(CELLS)]
    for line, other in zip(separation(turned), separation(CELLS), strict=True):
        assert line.difference.points == pytest.approx(other.difference.points)
        assert line.difference.ci_low < line.difference.points < line.difference.ci_high


def test_the_published_table_is_whole() -> None:
    """Its shape, single cells, and the signs that the paper's text claims."""
    for other, rows in TABLE.items():
        assert len(rows) == len(SYSTEMS)
        assert {len(row) for row in rows} == {9 if other in ("fr", "es") else 8}
    assert published("fr", "length", "en").gap == pytest.approx(-7.2)
    assert published("fr", "gender", "fr") == (52.6, 56.5)
    assert published("fr", "gender", "en") is None
    assert published("fr", "subj-num", "fr") is None
    assert published("ar", "gender", "ar") is None
    assert published("de", "length", "en") is None
    for other in ("fr", "es", "ar", "tr"):
        for task in ("subj-num", "obj-num", "depth", "top-const", "word-content"):
            assert published(other, task, "en").gap > 0
        for task in ("length", "punct-num", "punct-first"):
            assert published(other, task, "en").gap < 0
    assert set(PAPER) == {"subj-num", "obj-num", "depth", "top-const", "word-content", "length", "punct-num",
                          "punct-first", "gender"}  # fmt: skip


def test_a_row_a_task_marks_the_best_and_what_is_tied() -> None:
    table = wide_table(CELLS)
    marks = [[value.mark for value in row[2:4]] for row in table.rows]
    assert marks[:4] == [["best", ""], ["best", ""], ["tied", "tied"], ["", "best"]]
    assert table.rows[0][4:] == [50.0, "majority", 50.0]


def test_the_long_table_has_every_number_and_the_trail() -> None:
    records = long_table(CELLS).records()
    assert len(records) == 3 * len(CELLS)
    assert (
        records[0] | {"accuracy": 0.8, "model": "m & <b>", "fingerprint": "abc", "data": "D", "seeds": 1} == records[0]
    )


def test_markdown_is_a_table_of_escaped_text(tmp_path: Path) -> None:
    save(Table(["a|b", "n"], [["x|y", 1.25], ["z", None]]), {"md": tmp_path / "t.md"}, "A note.")
    assert (tmp_path / "t.md").read_text("utf-8").splitlines() == [
        r"| a\|b | n |",
        "| --- | ---: |",
        r"| x\|y | 1.2 |",
        "| z |  |",
        "",
        "A note.",
    ]
