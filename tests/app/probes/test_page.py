"""The pages of probes and languages: empty, with results, computed on the spot."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from app.core import corpora, startup
from app.languages.chart import PAPER
from bgt_core.data.examples import CREDIT, example_sentences
from probes.results.store import Cell, write_cells

Open = Callable[..., Any]


def renamed(cell: Cell, task: str, lang: str) -> Cell:
    """The same result, as if of another task and language."""
    rows = [replace(row, task=task, lang=lang) for row in cell.result.rows]
    gap = replace(cell.result.difference, task=task, lang=lang)
    return replace(cell, result=replace(cell.result, task=task, lang=lang, rows=rows, difference=gap))


def test_no_results_say_how_to_get_some(opened: Open) -> None:
    probing, compare = opened("probes"), opened("languages")
    for app, key in ((probing, "only_model"), (compare, "languages_of")):
        assert app.info and any("bgt-probe --lang en" in code.value for code in app.code)
        assert "model" not in app.multiselect(key=key).value and app.get("plotly_chart")  # of the models that ship
    assert len(probing.selectbox(key="ptask").options) == 18
    probing.put(probing.selectbox(key="ptask"), "tense")
    (button,) = (button for button in probing.button if button.label == "Run")
    assert button.disabled and any("CoNLL-U" in caption.value for caption in probing.caption)


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True], ids=("named at the start", "of the model's folder"))
def test_files_are_shown_with_their_intervals_and_sentences(
    opened: Open, start: Callable, cell: Cell, saved: Path, tmp_path: Path, own: bool
) -> None:
    model = Path(shutil.copytree(saved, tmp_path / "model")) if own else saved
    results = model / startup.PROBES_FOLDER if own else tmp_path / "results"
    results.mkdir()
    write_cells(results / "en.parquet", [cell])
    start("--model", model, *([] if own else ["--results", results]))
    app = opened("probes")
    table = app.dataframe[1].value.set_index("Latent or baseline")
    row, gap = cell.result.rows[0], cell.result.difference
    assert table.loc[row.latent, "Accuracy, %"] == pytest.approx(100 * row.accuracy)
    assert set(table["Model"]) == {"model"} and len(app.figures()) == 2  # one is of the learning curve
    assert app.dataframe[0].value["Difference"].tolist() == pytest.approx([gap.points])
    assert any("sentences each, with" in text.value for text in app.caption)
    app.put(app.selectbox(key="items_name"), "language")
    bits = app.dataframe[-1].value["Bits"]
    assert bits.is_monotonic_decreasing
    (shown,) = (metric for metric in app.metric if metric.label.startswith("language minus"))
    assert shown.value == f"{-gap.points:+z.1f}"  # here the other way round
    app.put(app.button_group(key="items_order"), "Least first")
    assert app.dataframe[-1].value["Bits"].iloc[0] == bits.min()


@pytest.mark.slow
def test_a_probe_runs_on_the_spot_beside_what_is_stored(opened: Open, start: Callable) -> None:
    start()
    app = opened("probes")
    assert set(app.dataframe[0].value["Language"]) == {"English"}
    app.put(app.toggle(key="all_results"), True)
    stored = app.dataframe[0].value
    assert set(stored["Model"]) == {"bgt-en-fr, as shipped"} and len(stored) == 28
    app.selectbox(key="items").set_value(500)
    app.selectbox(key="pseeds").set_value(1)
    app.press("Run")
    assert app.success and CREDIT in [caption.value for caption in app.caption]
    result, after = (app.dataframe[at].value for at in range(2))
    live = after["Mark"].str.startswith("run here")
    assert live.sum() == 1 and live[0] and after.loc[0, "Task"] == "Length"  # it comes first
    assert result.loc[0, "Mark"] == after.loc[0, "Mark"] and len(result) == 1  # and stands below the button
    numbers = ["Task", "Language", "Semantic, %", "Baseline, %", "Trained + tested on"]
    assert after[~live][numbers].to_numpy().tolist() == stored[numbers].to_numpy().tolist()
    compare = opened("languages")
    compare.session_state["probed"] = app.session_state["probed"]
    table = compare.run().dataframe[0].value
    (live,) = (name for name in table if "run here" in name and not name.endswith("paper"))
    assert compare.get("plotly_chart") and table.set_index("Task").loc["Length", live].startswith(("+", "-", "0"))


def test_uploaded_results_stay_until_they_are_removed(opened: Open, cell: Cell, tmp_path: Path) -> None:
    write_cells(tmp_path / "mine.parquet", [cell])
    app = opened("probes")
    content = (tmp_path / "mine.parquet").read_bytes()
    app.file_uploader(key="result_files").set_value(("mine.parquet", content, "application/octet-stream"))
    (mine,) = app.run().session_state["uploaded"]
    app.file_uploader(key="result_files").set_value([])
    app.session_state["earlier"] = [mine]  # as if the page had been left: its uploader forgets
    assert app.run().session_state["uploaded"] == [mine]
    app.press("Remove 1 uploaded before")
    assert app.session_state["uploaded"] == []


def test_filters_leave_what_is_asked_for(opened: Open, cell: Cell) -> None:
    app = opened("probes")
    app.session_state["probed"] = [cell, renamed(cell, "punct-num", "en")]
    app.run()
    assert set(app.dataframe[1].value["Task"]) == {"Length", "Punctuation: how much"}
    app.put(app.multiselect(key="only_task"), ["punct-num"])
    assert set(app.dataframe[1].value["Task"]) == {"Punctuation: how much"}
    models = app.multiselect(key="only_model")
    assert models.value == ["model"] and models.options[0] == "model"
    app.put(models, ["bgt-en-fr, as shipped"])
    assert set(app.dataframe[0].value["Model"]) == {"bgt-en-fr, as shipped"}


def test_both_latents_by_language_and_what_was_not_run(opened: Open, cell: Cell) -> None:
    app = opened("languages")
    app.session_state["uploaded"] = [[cell, renamed(cell, "punct-num", "fr")]]
    app.run()
    app.put(app.multiselect(key="languages_of"), ["model"])
    table = app.dataframe[0].value
    assert (table == "not run").to_numpy().sum() == 2 and list(table["Task"]) == ["Length", "Punctuation: how much"]
    assert list(table["English, paper"]) == ["-7.2", ""]


@pytest.mark.slow
def test_one_models_languages_are_shown_until_more_are_asked_for(opened: Open, start: Callable) -> None:
    start()
    app = opened("languages")
    box = app.multiselect(key="languages_of")
    assert box.value == ["bgt-en-fr, as shipped"] and {"English", "French"} <= set(app.dataframe[0].value)
    notes = [note["text"] for note in app.figures()[0]["layout"]["annotations"]]
    assert "English" in notes and not any(re.search(r" \d$", note) for note in notes)  # no numbers of models
    app.put(box, ["bgt-en-fr, as shipped", "bgt-multilingual, as shipped"])
    assert {"English · bgt-en-fr, as shipped", "English · bgt-multilingual, as shipped"} <= set(app.dataframe[0].value)
    app.put(app.multiselect(key="languages_of"), ["bgt-multilingual, as shipped"])
    table = app.dataframe[0].value.set_index("Task")
    assert {"English", "French", "Spanish", "German", "Turkish", "Japanese", "Arabic"} <= set(table)
    assert table.loc["Gender of articles", "Japanese"] == "no such task"
    assert table.loc["Depth of the tree", "Arabic"] == "not run"
    separation, distance = app.figures()
    assert len({trace["name"] for trace in separation["data"]} - {PAPER}) == 7
    assert "Distance to English" in [part.label for part in app.expander]
    assert {trace["name"] for trace in distance["data"]} >= {"French", "Spanish", "German", "Turkish", "Japanese"}


@pytest.mark.slow
def test_a_probe_runs_on_a_file_of_ones_own(opened: Open) -> None:
    app = opened("probes")
    table = pd.DataFrame({"0": [en for en, _ in example_sentences(("en", "fr"))[:600]]})
    text = startup.ParallelText(("en",), None, columns=("en",), table=table, digest="mine")
    app.session_state["own"] = corpora.OwnTexts(uploaded={"Yours: mine.txt (en)": text})
    app.run()
    app.selectbox(key="pdata").set_value("Yours: mine.txt (en)")
    app.selectbox(key="items").set_value(500)
    app.press("Run")
    assert app.dataframe[0].value.loc[0, "Data"] == "Yours: mine.txt (en)"
    app.button_group(key="plang").set_value("fr")  # in which the file has no sentences
    app.run()
    assert "Yours: mine.txt (en)" not in app.selectbox(key="pdata").options
