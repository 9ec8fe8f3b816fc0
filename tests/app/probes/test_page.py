"""Test the page of probes: without results, with stored results, with a probe trained in the app, and its figures."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import bgt_core
import probes
from app.core import display, inventory, results, state
from app.probes import chart, page
from bgt_core.data.examples import CREDIT, example_sentences
from probes.results.store import Cell, write_cells
from tests.app.conftest import cells_of

Open = Callable[..., Any]


def test_no_results_say_how_to_get_some(opened: Open) -> None:
    app = opened("probes")
    assert app.info and any("bgt-probe --lang en" in info.value for info in app.info)
    assert "model" not in app.multiselect(key="only_model").value and app.figures()  # stored results are shown
    assert len(app.selectbox(key="ptask").options) == 18
    app.put(app.selectbox(key="ptask"), "tense")
    (button,) = (button for button in app.button if button.label == "Run")
    assert button.disabled and any("CoNLL-U" in caption.value for caption in app.caption)


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True], ids=("named at the start", "of the model's folder"))
def test_files_are_shown_with_their_intervals_and_sentences(
    opened: Open, start: Callable, cell: Cell, saved: Path, tmp_path: Path, own: bool
) -> None:
    model = Path(shutil.copytree(saved, tmp_path / "model")) if own else saved
    folder = model / inventory.PROBES_FOLDER if own else tmp_path / "results"
    folder.mkdir()
    write_cells(folder / "en.parquet", [cell])
    start("--model", model, *([] if own else ["--results", folder]))
    app = opened("probes")
    table = app.dataframe[1].value.set_index("Latent or baseline")
    row, gap = cell.result.rows[0], cell.result.difference
    assert table.loc[row.latent, "Accuracy, %"] == pytest.approx(100 * row.accuracy)
    assert set(table["Model"]) == {"model"} and len(app.figures()) == 1
    assert app.dataframe[0].value["Difference"].tolist() == pytest.approx([gap.points])
    assert app.dataframe[0].value["The paper's"].tolist() == pytest.approx([73.0 - 80.2])  # both from the paper's table
    assert any("sentences each, with" in text.value for text in app.caption)
    app.put(app.selectbox(key="items_name"), "language")
    assert app.dataframe[-1].value["Gain, bits"].is_monotonic_decreasing
    (shown,) = (metric for metric in app.metric if metric.label.startswith("language minus"))
    assert shown.value == f"{-gap.points:+z.1f}"  # this table shows language minus semantic


@pytest.mark.slow
def test_a_probe_runs_on_the_spot_beside_what_is_stored(opened: Open, start: Callable) -> None:
    start()
    app = opened("probes")
    stored = app.dataframe[0].value
    assert set(stored["Model"]) == {"bgt-en-fr, as shipped"} and len(stored) == 28
    app.selectbox(key="items").set_value(500)
    app.selectbox(key="pseeds").set_value(1)
    app.press("Run")
    assert app.success and CREDIT in [caption.value for caption in app.caption]
    result, after = (app.dataframe[at].value for at in range(2))
    live = after["Mark"].str.startswith("run here")
    assert live.sum() == 1 and live[0] and after.loc[0, "Task"] == "Closing mark"  # the new result comes first
    assert result.loc[0, "Mark"] == after.loc[0, "Mark"] and len(result) == 1  # the first table has only this result
    numbers = ["Task", "Language", "Semantic, %", "Baseline, %", "Trained + tested on"]
    assert after[~live][numbers].to_numpy().tolist() == stored[numbers].to_numpy().tolist()
    app.put(app.button_group(key="show"), page.DIFFERENCE)
    (figure,) = app.figures()
    assert [trace["name"] for trace in figure["data"]] == ["English", "French", chart.PAPER]
    assert sum(len(trace["y"]) for trace in figure["data"][:2]) == 28  # language identity has no difference to show
    assert any(text.value.startswith("**The paper's claim covers") for text in app.markdown)
    assert "rect" in [shape["type"] for shape in figure["layout"]["shapes"]]  # marks the new result
    app.put(app.multiselect(key="only_model"), ["bgt-en-fr, as shipped", "bgt-multilingual, as shipped"])
    (figure,) = app.figures()
    names = {trace["name"] for trace in figure["data"]}
    assert {f"{lang} · bgt-multilingual, as shipped" for lang in ("Spanish", "Turkish", "Japanese", "Arabic")} <= names
    labels = [note["text"] for note in figure["layout"]["annotations"]]
    assert not any(chart.OTHERS in label for label in labels)  # both models were probed on the same sentences


def test_uploaded_results_stay_until_they_are_removed(opened: Open, cell: Cell, tmp_path: Path) -> None:
    write_cells(tmp_path / "mine.parquet", [cell])
    app = opened("probes")
    content = (tmp_path / "mine.parquet").read_bytes()
    app.file_uploader(key="result_files").set_value(("mine.parquet", content, "application/octet-stream"))
    (mine,) = app.run().session_state["uploaded"]
    app.file_uploader(key="result_files").set_value([])
    app.session_state["earlier"] = [mine]  # as if the user had left the page, which empties the upload field
    assert app.run().session_state["uploaded"] == [mine]
    app.press("Remove earlier uploads (1)")
    assert app.session_state["uploaded"] == []


def test_filters_leave_what_is_asked_for(opened: Open, cell: Cell) -> None:
    app, of = opened("probes"), {"task": "punct-num"}
    rows, gap = [replace(row, **of) for row in cell.result.rows], replace(cell.result.difference, **of)
    other = replace(cell, result=replace(cell.result, **of, rows=rows, difference=gap))
    app.session_state["probed"] = [cell, other]
    app.run()
    assert set(app.dataframe[1].value["Task"]) == {"Length", "Punctuation: how much"}
    app.put(app.multiselect(key="only_task"), ["punct-num"])
    assert set(app.dataframe[1].value["Task"]) == {"Punctuation: how much"}
    models = app.multiselect(key="only_model")
    assert models.value == ["model"] and models.options[0] == "model"
    app.put(models, ["bgt-en-fr, as shipped"])
    assert set(app.dataframe[0].value["Model"]) == {"bgt-en-fr, as shipped"}


@pytest.mark.slow
def test_a_probe_runs_on_a_file_of_ones_own(opened: Open) -> None:
    app = opened("probes")
    table = pd.DataFrame({"0": [en for en, _ in example_sentences(("en", "fr"))[:600]]})
    text = inventory.ParallelText(("en",), None, columns=("en",), table=table, digest="mine")
    app.session_state["own"] = inventory.OwnTexts(uploaded={"Yours: mine.txt (en)": text})
    app.run()
    app.selectbox(key="pdata").set_value("Yours: mine.txt (en)")
    app.selectbox(key="ptask").set_value("length")
    app.selectbox(key="items").set_value(500)
    app.press("Run")
    assert app.dataframe[0].value.loc[0, "Data"] == "Yours: mine.txt (en)"
    app.button_group(key="plang").set_value("fr")  # the file has no French sentences
    app.run()
    assert "Yours: mine.txt (en)" not in app.selectbox(key="pdata").options


def test_dots_stand_at_their_numbers_with_their_intervals() -> None:
    scores = results.gathered([], cells_of()).scores
    traces = {trace.name: trace for trace in chart.probe_dots(scores).data}
    assert set(traces) == {"semantic", "language", chart.BASELINE}
    for name, accuracy in (("semantic", 40), ("language", 70)):
        assert traces[name].x == pytest.approx([accuracy] * 2) and traces[name].error_x.array == pytest.approx([10, 10])
        assert traces[name].marker.color == display.latent_colour(name, "light")
    assert traces[chart.BASELINE].x == pytest.approx([20, 20]) and traces[chart.BASELINE].marker.symbol == "line-ns"


def test_lines_are_grouped_and_sorted_by_the_lead_of_the_semantic_latent() -> None:
    leads = {"length": -0.3, "punct-num": -0.3, "mine": 0.9, "tense": -0.3, "subj-num": 0.2}
    rows = [{"task": task, "lang": "en", "lead": lead, "live": False} for task, lead in leads.items()]
    lines = chart.in_order(pd.DataFrame([*rows, {"task": "length", "lang": "en", "lead": 0.1, "live": True}]))
    assert list(zip(lines["group"], lines["task"], strict=True)) == [
        (chart.RUN_HERE, "length"), ("Meaning", "subj-num"), ("Meaning", "tense"), ("Surface", "length"),
        ("Surface", "punct-num"), (results.OTHER_TASKS, "mine"),
    ]  # fmt: skip
    two = [("fr", "a", 0.3), ("en", "a", 0.1), ("en", "b", 0.5), ("fr", "b", -0.9)]  # rows of a language stay together
    lines = chart.in_order(pd.DataFrame(two, columns=["lang", "model", "lead"]).assign(task="tense", live=False))
    assert list(zip(lines["lang"], lines["model"], strict=True)) == [(lang, of) for lang in ("en", "fr") for of in "ab"]


def test_differences_have_the_colour_of_their_language_and_the_papers_beside() -> None:
    given = [*cells_of("m", "en", -1.0), *cells_of("m", "ja", 2.0, langs=("en", "ja"))]
    gaps = page.with_paper(results.gathered([], given).gaps)
    assert page.with_paper(gaps.assign(second="syntactic"))["paper_gap"].isna().all()
    dots = {trace.name: trace for trace in chart.gap_dots(gaps).data}
    assert {name: list(trace.x) for name, trace in dots.items()} == {
        "English": [-1.0, -1.0], "Japanese": [2.0, 2.0], chart.PAPER: pytest.approx([73.0 - 80.2, 60.7 - 65.3])
    }  # fmt: skip
    for name, lang in (("English", "en"), ("Japanese", "ja")):  # each language has one colour in all figures
        assert dots[name].marker.color == display.lang_colour(lang, "light")
        assert dots[name].marker.symbol == display.SYMBOLS[display.lang_place(lang)]
    assert set(dots[chart.PAPER].marker.symbol) == {f"{dots['English'].marker.symbol}-open"}


def test_the_verdict_counts_what_agrees_with_the_paper_and_names_what_does_not() -> None:
    rows = [("tense", 2.0, 5.0), ("subj-num", -1.0, 3.0), ("length", -9.0, -4.0), ("length", 1.0, 4.0)]
    rows += [("gender", 0.5, 2.0), ("depth", 3.0, 6.0), ("length", 0.0, 0.0)]  # the paper's claim leaves out depth
    rows += [("address", -40.0, -20.0)]
    gaps = pd.DataFrame(rows, columns=["task", "ci_low", "ci_high"])
    assert page.verdict(gaps) == (
        "The paper's claim covers 7 of these results: 3 agree, 2 contradict it (gender of articles, length), and the "
        "interval of 2 includes zero.",
        ["gender", "length"],
    )


@pytest.mark.parametrize(
    ("semantic", "own", "given"), [(1_000.0, 10.0, True), (50.0, 10.0, False), (None, None, False)]
)
def test_the_reason_is_given_where_the_semantic_latent_holds_the_whole_sentence(
    semantic: float | None, own: float | None, given: bool
) -> None:
    log = [] if semantic is None else [{"kind": "valid", "kl/semantic/en": semantic, "kl/en": own}]
    loaded = SimpleNamespace(log=log, langs=("en",), second_latent="language", title="mine")
    reason = page.reason(loaded, ["gender", "length"])
    assert bool(reason) == given == reason.startswith("Why: ")
    assert not given or "the semantic latent of mine has up to 1,000 nats" in reason
    assert page.reason(loaded, ["gender"]) == ""


@pytest.mark.slow
def test_a_probe_on_the_spot_is_the_commands(saved: Path, start: Callable) -> None:
    start("--model", saved)
    reports: list[str] = []
    cell = page.run(state.model(), "length", "fr", None, "", 300, 1, reports.append)
    config = probes.ProbeConfig(max_items=300, seeds=1)
    expected = probes.run(bgt_core.load(saved), "length", lang="fr", config=config)
    assert cell.result.as_dict() == expected.as_dict() and reports[0] == "length fr: semantic"
