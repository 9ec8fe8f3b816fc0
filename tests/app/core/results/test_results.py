"""Results of probes: read as `bgt-probe` writes them, gathered without mixing models, drawn as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from app.core import startup, theme
from app.core.results import chart as probe_charts
from app.core.results import gather, listing, task_names
from app.languages import chart as gap_charts
from app.languages.compute import with_paper
from bgt_core.errors import BgtError
from bgt_core.tables import save
from probes.cli.output import document
from probes.results.store import Cell
from probes.results.tables import long_table
from probes.tasks import TASKS

LATENTS = {"semantic": 0.4, "language": 0.7, "majority": 0.2}


def read(document: object) -> gather.ResultTables:
    return gather.read("r.json", json.dumps(document).encode())


def test_a_document_becomes_a_row_a_latent_and_a_gap_a_task(tables_of: Callable) -> None:
    tables = tables_of()
    assert len(tables.scores) == 6 and list(tables.scores) == [*gather.SCORES, *gather.OPTIONAL]
    assert tables.scores.set_index(["task", "latent"])["accuracy"]["length", "language"] == 0.7
    assert tables.gaps["points"].tolist() == [-30, -30]


def test_the_files_of_bgt_probe_say_the_same(cell: Cell, tmp_path: Path) -> None:
    by_json = read(json.loads(json.dumps(document([cell], [], []))))
    save(long_table([cell]), {"csv": tmp_path / "mine.csv"})
    by_csv = gather.read("mine.csv", (tmp_path / "mine.csv").read_bytes())
    expected = [row.accuracy for row in cell.result.rows]
    assert by_json.scores["accuracy"].tolist() == by_csv.scores["accuracy"].tolist() == expected
    for tables in (by_json, by_csv):
        assert set(tables.scores["model"]) == {cell.model}
        assert set(tables.scores["fingerprint"]) == {cell.trail["fingerprint"].split()[0]}
    assert gather.gathered([], [by_json, by_csv]).scores["accuracy"].tolist() == expected  # equal rows are one
    assert by_csv.gaps.empty and by_json.gaps["points"].tolist() == [cell.result.difference.points]
    assert by_json.curve["accuracy"].tolist() == [point.accuracy for point in cell.result.curve]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b"{", "not a JSON document"),
        ("a.json", b"[1]", "not a JSON document"),
        ("a.json", b"\xff", "not a JSON document"),
        ("a.json", b'{"schema": "bgt-probe/9"}', "bgt-probe/9.*reads bgt-probe/5"),
        ("a.json", b'{"schema": "bgt-probe/5", "results": [{"model": "m", "rows": [{}]}]}', "incomplete"),
        ("a.json", b'{"schema": "bgt-probe/5", "results": [3]}', "incomplete"),
        ("a.parquet", b"PAR1", "not predictions"),
        ("a.csv", b"", "not a table"),
        ("a.csv", b"x,y\n1,2\n", "not a table"),
    ],
)
def test_other_files_are_refused_by_name(name: str, content: bytes, message: str) -> None:
    with pytest.raises(BgtError, match=message):
        gather.read(name, content)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BgtError, match=r"absent.json: can't be read"):
        gather.gathered([tmp_path / "absent.json"], [])


def test_models_are_called_by_name_and_never_mixed(
    document_of: Callable, tables_of: Callable, tmp_path: Path, saved: Path, start: Callable[..., None]
) -> None:
    start("--model", saved)
    for number, model in enumerate((saved, "runs/fr", "other/es", "runs/fr")):
        document = json.dumps(document_of(str(model), points=-number))
        (tmp_path / f"{number}.json").write_text(document, "utf-8")
    (tmp_path / "notes.txt").write_text("not ours", "utf-8")
    tables = gather.gathered([tmp_path], [])
    assert set(tables.scores["model"]) == {"model", "fr", "es"}
    points = tables.gaps.groupby("model")["points"].unique().map(list).to_dict()
    assert points == {"model": [0], "fr": [-1, -3], "es": [-2]}  # neither of the two is replaced
    same_end = gather.gathered([], [tables_of("a/run"), tables_of("b/run")])
    assert set(same_end.scores["model"]) == {"a/run", "b/run"}


def test_trainings_of_one_name_and_kinds_of_probe_stay_apart(tables_of: Callable) -> None:
    given = [("0 fp32 cpu", "linear", 1.0), ("0 bf16 cuda", "linear", 2.0), ("1 fp32 cpu", "linear", 3.0),
             ("1 fp32 cpu", "mlp50", 4.0)]  # fmt: skip
    tables = gather.gathered([], [tables_of("m", "en", points, of, probe) for of, probe, points in given])
    points = tables.gaps.groupby("model")["points"].unique().map(list).to_dict()
    assert points == {"m 0": [1, 2], "m 1": [3], "m 1, mlp50": [4]}  # the same weights elsewhere are the same model
    assert set(tables.scores["model"]) == set(points)


def test_the_same_weights_under_two_names_are_one_model(
    tables_of: Callable, saved: Path, start: Callable[..., None]
) -> None:
    start("--model", saved)
    tables = gather.gathered(
        [],
        [
            tables_of("elsewhere", fingerprint="7 fp32 cpu"),
            tables_of(str(saved), fingerprint="7 bf16 cuda"),
        ],
    )
    assert set(tables.scores["model"]) == {"model"} and len(tables.scores) == 6


def test_results_in_the_folder_of_a_model_are_its_own(
    document_of: Callable, saved: Path, start: Callable[..., None]
) -> None:
    start("--model", saved)
    tables = gather.gathered(startup.read().results, [])
    assert set(tables.scores["model"]) == {name for name in startup.shipped() if name.startswith("bgt-")}


def test_dots_stand_at_their_numbers_with_their_intervals(tables_of: Callable) -> None:
    table = tables_of().scores
    traces = {trace.name: trace for trace in probe_charts.probe_dots(table).data}
    assert set(traces) == {"semantic", "language", probe_charts.BASELINE}
    for name in ("semantic", "language"):
        assert traces[name].x == pytest.approx([100 * LATENTS[name]] * 2)
        assert traces[name].error_x.array == pytest.approx([10, 10])
        assert traces[name].marker.color == theme.latent_colour(name, "light")
    assert traces[probe_charts.BASELINE].x == pytest.approx([100 * LATENTS["majority"]] * 2)
    assert traces[probe_charts.BASELINE].marker.symbol not in {trace.marker.symbol for trace in traces.values()} - {
        "line-ns"
    }


def test_lines_are_grouped_and_sorted_by_the_lead_of_the_semantic_latent(tables_of: Callable) -> None:
    table = tables_of().scores
    others = table.assign(task=table["task"].map({"length": "tense", "punct-num": "subj-num"}))
    leads = others["accuracy"].where((others["task"] != "subj-num") | (others["latent"] != "semantic"), 0.9)
    own = table[table["task"] == "length"].assign(task="mine")
    lines = probe_charts.in_order(pd.concat([table, own, others.assign(accuracy=leads)]), "accuracy")
    assert list(zip(lines["group"], lines["task"], strict=True)) == [
        ("Meaning", "subj-num"), ("Meaning", "tense"), ("Surface", "length"), ("Surface", "punct-num"),
        (task_names.OTHERS, "mine"),
    ]  # fmt: skip


def test_a_row_per_result_has_both_latents_their_difference_and_the_best_baseline(tables_of: Callable) -> None:
    tables = gather.gathered([], [tables_of()])
    row = listing.by_result(tables.scores, tables.gaps).iloc[0].to_dict()
    assert list(row)[:5] == ["task", "lang", "semantic", "language", "points"]  # a phone shows the first ones
    expected = {"semantic": 40, "language": 70, "points": -30, "best": 20, "which": "majority", "p": "0.010"}
    assert {name: row[name] for name in expected} == pytest.approx(expected)
    assert row["task"] == "Length" and row["run"] == "800 + 100 sentences, 1 seed"
    assert [listing.p_value(p) for p in (2e-9, 0.0009, 0.0312, float("nan"))] == [
        "< 0.001",
        "< 0.001",
        "0.031",
        "",
    ]


def test_every_task_has_a_name_a_line_of_help_and_a_group() -> None:
    assert set(task_names.TITLES) == set(TASKS)
    assert task_names.question("gender").startswith("Has one article")
    assert all(task_names.group(task) in task_names.GROUPS for task in TASKS)
    assert not task_names.defined("gender", "ja") and task_names.defined("gender", "fr")
    assert not task_names.defined("length", "en-fr") and task_names.defined("lang-id", "en-fr")
    assert task_names.why_not("length", "ja") == ""
    assert task_names.why_not("gender", "en") == "It does not exist in English, only in French, Spanish."
    assert "CoNLL-U" in task_names.why_not("tense", "fr")


def test_a_run_with_fewer_sentences_stands_beside_the_stored_one(document_of: Callable, cell: Cell) -> None:
    rows = [replace(row, n_train=80, n_test=20, accuracy=row.accuracy / 2) for row in cell.result.rows]
    gap = replace(cell.result.difference, points=-1.5, ci_low=-9.0, ci_high=6.0)
    trail = {**cell.trail, "data": "Built-in grammar", "items_sha256": "0" * 64}
    short = replace(cell, result=replace(cell.result, seeds=1, rows=rows, difference=gap), trail=trail)
    stored, live = gather.from_cells([cell]), gather.from_cells([short], live=True)
    tables = gather.gathered([], [stored, live, stored, live])  # the same twice is not doubled
    by_origin = {bool(live): part for live, part in tables.scores.groupby("live")}
    assert by_origin[False]["accuracy"].tolist() == [row.accuracy for row in cell.result.rows]
    assert by_origin[True]["accuracy"].tolist() == [row.accuracy for row in rows]
    assert by_origin[False]["n_test"].iloc[0] > 20 == by_origin[True]["n_test"].iloc[0]
    assert set(by_origin[True]["mark"]) == {"run here: 80 + 20 sentences, 1 seed, Built-in grammar"}
    assert set(by_origin[False]["mark"]).isdisjoint({"", *by_origin[True]["mark"]})
    points = tables.gaps.set_index("live")["points"].to_dict()
    assert points == {False: cell.result.difference.points, True: -1.5}
    assert {key.live for key in tables.items} == {False, True}
    drawn = {trace.name: list(trace.x) for trace in gap_charts.gap_dots(with_paper(tables.gaps)).data}
    drawn.pop(gap_charts.PAPER)
    assert sorted(drawn.values()) == sorted([[points[False]], [-1.5]])  # each is a mark of its own
    dots = probe_charts.probe_dots(tables.scores)
    assert len(set(dots.data[0].y)) == 2 and [shape.type for shape in dots.layout.shapes] == ["rect"]
