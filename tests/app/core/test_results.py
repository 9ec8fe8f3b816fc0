"""Results of probes are read from files of `bgt-probe`, and results of different models are never mixed up."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from app.core import inventory, results
from bgt_core.errors import BgtError
from probes.results.store import Cell, read_cells, write_cells
from probes.tasks import TASKS
from tests.app.conftest import cells_of


def test_a_file_becomes_a_row_a_latent_and_a_gap_a_task(cell: Cell, tmp_path: Path) -> None:
    write_cells(tmp_path / "mine.parquet", [cell])
    tables = results.gathered([tmp_path], read_cells(tmp_path / "mine.parquet"))  # the same results twice count once
    assert list(tables.scores) == [*results.SCORES, *results.OPTIONAL]
    assert tables.scores["accuracy"].tolist() == [row.accuracy for row in cell.result.rows]
    assert set(tables.scores["fingerprint"]) == {cell.trail["fingerprint"].split()[0]}
    assert tables.gaps["points"].tolist() == [cell.result.difference.points]
    ((key, items),) = tables.items.items()
    assert key[1:] == ("length", "en", "", False) and items.predictions.equals(cell.predictions)


def test_models_are_called_by_name_and_never_mixed(tmp_path: Path, saved: Path, start: Callable) -> None:
    start("--model", saved)
    for number, model in enumerate((saved, "runs/fr", "other/es", "runs/fr")):
        write_cells(tmp_path / f"{number}.parquet", cells_of(str(model), points=-number, fingerprint=f"{model} cpu"))
    (tmp_path / "notes.txt").write_text("not ours", "utf-8")
    tables = results.gathered([tmp_path])
    assert set(tables.scores["model"]) == {"model", "fr", "es"}
    same_end = results.gathered([], [*cells_of("a/run"), *cells_of("b/run")])
    assert set(same_end.scores["model"]) == {"a/run", "b/run"}


def test_trainings_of_one_name_and_kinds_of_probe_stay_apart() -> None:
    given = [("0 fp32 cpu", "linear", 1.0), ("1 fp32 cpu", "linear", 3.0), ("1 fp32 cpu", "mlp50", 4.0)]
    cells = [cell for of, probe, points in given for cell in cells_of("m", "en", points, of, probe)]
    points = results.gathered([], cells).gaps.groupby("model")["points"].unique().map(list).to_dict()
    assert points == {"m 0": [1], "m 1": [3], "m 1, mlp50": [4]}


def test_the_same_weights_under_two_names_are_one_model(saved: Path, start: Callable) -> None:
    start("--model", saved)
    cells = [*cells_of("elsewhere", fingerprint="7 fp32 cpu"), *cells_of(str(saved), fingerprint="7 bf16 cuda")]
    tables = results.gathered([], cells)
    assert set(tables.scores["model"]) == {"model"} and len(tables.scores) == 6


def test_results_in_the_folder_of_a_model_are_its_own(saved: Path, start: Callable) -> None:
    start("--model", saved)
    tables = results.gathered(inventory.read().results)
    assert set(tables.scores["model"]) == {name for name in inventory.shipped() if name.startswith("bgt-")}
    with pytest.raises(BgtError, match=r"absent.parquet: can't be read"):
        results.gathered([saved / "absent.parquet"])


def test_a_row_per_result_has_both_latents_their_difference_and_the_best_baseline() -> None:
    tables = results.gathered([], cells_of())
    row = results.by_result(tables.scores, tables.gaps).iloc[0].to_dict()
    assert list(row)[:5] == ["task", "lang", "semantic", "language", "points"]  # phones show only the first columns
    expected = {"semantic": 40, "language": 70, "points": -30, "best": 20, "which": "majority", "p": "0.010"}
    assert {name: row[name] for name in expected} == pytest.approx(expected)
    assert row["task"] == "Length" and row["run"] == "800 + 100 sentences, 1 seed"
    shown = [results.p_value(p) for p in (2e-9, 0.0009, 0.0312, float("nan"))]
    assert shown == ["< 0.001", "< 0.001", "0.031", ""]


def test_every_task_has_a_name_a_line_of_help_and_a_group() -> None:
    assert set(results.TASK_TITLES) == set(TASKS)
    assert all(results.task_group(task) in results.TASK_GROUPS for task in TASKS)
    assert results.why_not_run("length", "ja") == ""
    assert results.why_not_run("gender", "en") == "It does not exist in English, only in French, Spanish."
    assert "CoNLL-U" in results.why_not_run("tense", "fr")


def test_a_run_with_fewer_sentences_stands_beside_the_stored_one(cell: Cell) -> None:
    rows = [replace(row, n_train=80, n_test=20, accuracy=row.accuracy / 2) for row in cell.result.rows]
    gap = replace(cell.result.difference, points=-1.5, ci_low=-9.0, ci_high=6.0)
    trail = {**cell.trail, "data": "Built-in grammar", "items_sha256": "0" * 64}
    short = replace(cell, result=replace(cell.result, seeds=1, rows=rows, difference=gap), trail=trail)
    tables = results.gathered([], [cell, cell], [short, short])  # a result given twice counts once
    by_origin = {bool(live): part for live, part in tables.scores.groupby("live")}
    assert by_origin[False]["accuracy"].tolist() == [row.accuracy for row in cell.result.rows]
    assert by_origin[True]["accuracy"].tolist() == [row.accuracy for row in rows]
    assert set(by_origin[True]["mark"]) == {"run here: 80 + 20 sentences, 1 seed, Built-in grammar"}
    assert set(by_origin[False]["mark"]).isdisjoint({"", *by_origin[True]["mark"]})
    assert tables.gaps.set_index("live")["points"].to_dict() == {False: cell.result.difference.points, True: -1.5}
    assert {key.live for key in tables.items} == {False, True}


def test_a_figure_says_of_which_models_data_and_seeds_it_is() -> None:
    scores = results.gathered([], cells_of()).scores
    assert results.provenance(scores) == (
        "m (weights m). Trained on 800 and tested on 100 sentences each, with 1 seed, of: mine."
    )
    more = pd.concat([scores, scores.assign(run="4,000 + 987 sentences, 5 seeds", data="b")])
    assert "800 to 4,000 and tested on 100 to 987" in results.provenance(more) and ", b." in results.provenance(more)


def test_the_rule_is_that_of_the_table() -> None:
    """The page says that a latent holds a property if its confidence interval lies above the accuracy of the most
    frequent label (here 0.2). The latents' intervals begin at 0.3 and 0.6. Other baselines do not matter."""
    tables = results.gathered([], cells_of())
    scores = tables.scores
    assert results.by_result(scores, tables.gaps)["shown"].tolist() == ["semantic, language"] * 2
    raised = scores.assign(accuracy=scores["accuracy"].where(scores["latent"] != "majority", 0.4))
    assert set(results.shown(raised)) == {"language"}
    beside = scores[scores["latent"] == "majority"].assign(latent="length", accuracy=1.0)
    assert set(results.shown(pd.concat([scores, beside]))) == {"semantic, language"}


@pytest.mark.parametrize(
    ("points", "low", "expected"),
    [(-30.0, 0.6, ["length", "punct-num"]), (30.0, 0.6, []), (-30.0, 0.1, [])],
    ids=("it leads", "it does not", "it leads without showing anything"),
)
def test_a_latent_tells_more_of_what_it_shows_and_leads_on(
    tmp_path: Path, points: float, low: float, expected: list[str]
) -> None:
    assert results.leads(tmp_path, "language") == {}
    (tmp_path / "probes").mkdir()
    write_cells(tmp_path / "probes" / "en.parquet", cells_of("model", points=points, low={"language": low}))
    assert results.leads(tmp_path, "language")["language"] == expected


def test_the_information_of_the_latents_is_that_of_the_last_report() -> None:
    reports = [
        {"kind": "valid", "kl/en": 90.0, "kl/semantic/en": 90.0},
        {"kind": "valid", "kl/en": 4.0, "kl/fr": 6.0, "kl/semantic/en": 100.0, "kl/semantic/fr": 110.0},
        {"kind": "train", "kl/en": 7.0},
    ]
    assert results.nats(reports, ("en", "fr")) == (5.0, 110.0)
    many = [{"kind": "valid", "kl/en": 4.0, "kl/fr": 6.0, "kl/semantic": 100.0}]  # one semantic KL for all languages
    assert results.nats(many, ("en", "fr")) == (5.0, 105.0)
    assert all(map(math.isnan, results.nats([], ("en",))))


def test_rows_on_which_models_saw_other_sentences_are_found() -> None:
    table = pd.DataFrame({"model": [*"ab"] * 2, "task": ["length"] * 2 + ["depth"] * 2, "items": [*"xxxy"]})
    table = table.assign(live=False, lang="en", run="")
    assert results.other_sentences(table).tolist() == [False, False, True, True]
