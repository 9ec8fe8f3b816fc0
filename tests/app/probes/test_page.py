"""The pages of probes and languages: empty, with results, computed on the spot."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyarrow import parquet

from app.core import corpora, startup
from app.core.results import gather, listing
from app.languages.chart import PAPER
from bgt_core.data.examples import CREDIT, example_sentences
from probes.cli.output import document
from probes.results.store import Cell, all_predictions

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def plain(cell: Cell) -> dict:
    """English length of the untrained model, both latents, as `bgt-probe --json` gives it."""
    return json.loads(json.dumps(document([cell], [], [])))


def read(document: dict) -> gather.ResultTables:
    return gather.read("r.json", json.dumps(document).encode())


def test_no_results_say_how_to_get_some(opened: Open) -> None:
    probing, compare = opened("probes"), opened("languages")
    for app, key in ((probing, "only_model"), (compare, "languages_of")):
        assert app.info and any("bgt-probe --lang en" in code.value for code in app.code)
        assert "model" not in app.multiselect(key=key).value and app.get("plotly_chart")  # of the models that ship


def test_files_named_at_the_start_are_shown_with_their_intervals(
    opened: Open, start: Callable, plain: dict, saved: Path, tmp_path: Path
) -> None:
    (tmp_path / "en.json").write_text(json.dumps(plain), "utf-8")
    start("--model", saved, "--results", tmp_path)
    app = opened("probes")
    table = app.dataframe[1].value.set_index("Latent or baseline")
    row = plain["results"][0]["rows"][0]
    assert table.loc[row["latent"], "Accuracy, %"] == pytest.approx(100 * row["accuracy"])
    assert set(table["Model"]) == {"model"} and len(app.figures()) == 2  # one is of the learning curve
    gap = plain["results"][0]["difference"]
    assert app.dataframe[0].value["Difference"].tolist() == pytest.approx([gap["points"]])


def test_a_model_brings_its_own_results(
    opened: Open, start: Callable, plain: dict, saved: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    (folder / startup.PROBES_FOLDER).mkdir()
    (folder / startup.PROBES_FOLDER / "en.json").write_text(json.dumps(plain), "utf-8")
    start("--model", folder)
    assert set(opened("probes").dataframe[0].value["Model"]) == {"model"}
    assert opened("languages").get("plotly_chart")


def test_a_probe_runs_on_the_spot_and_reaches_both_pages(opened: Open, saved: Path) -> None:
    app = opened("probes")
    app.selectbox(key="items").set_value(500)
    app.selectbox(key="pseeds").set_value(1)
    app.press("Run")
    assert app.success and CREDIT in [caption.value for caption in app.caption]
    shown = app.dataframe[2].value
    assert set(shown["Task"]) == {"Length"} and set(shown["Latent or baseline"]) >= {"semantic", "language", "majority"}
    compare = opened("languages")
    compare.session_state["probed"] = app.session_state["probed"]
    compare.run()
    table = compare.dataframe[0].value
    (live,) = (name for name in table if "run here" in name and not name.endswith("paper"))
    assert compare.get("plotly_chart") and table.set_index("Task").loc["Length", live].startswith(("+", "-", "0"))


@pytest.mark.slow
def test_a_run_leaves_what_is_stored_as_it_is(opened: Open, start: Callable) -> None:
    start()
    app = opened("probes")
    assert set(app.dataframe[0].value["Language"]) == {"English"}
    app.put(app.toggle(key="all_results"), True)
    stored = app.dataframe[0].value
    assert set(stored["Model"]) == {"bgt-en-fr, as shipped"} and len(stored) == 28
    app.selectbox(key="items").set_value(500)
    app.press("Run")
    result, after = (app.dataframe[at].value for at in range(2))
    live = after["Mark"].str.startswith("run here")
    assert live.sum() == 1 and live[0] and after.loc[0, "Task"] == "Length"  # it comes first
    assert result.loc[0, "Mark"] == after.loc[0, "Mark"] and len(result) == 1  # and stands below the button
    numbers = ["Task", "Language", "Semantic, %", "Baseline, %", "Trained + tested on"]
    assert after[~live][numbers].to_numpy().tolist() == stored[numbers].to_numpy().tolist()


def test_uploaded_results_stay_until_they_are_removed(opened: Open, plain: dict) -> None:
    app = opened("probes")
    app.file_uploader(key="result_files").set_value(("mine.json", json.dumps(plain).encode(), "application/json"))
    (mine,) = app.run().session_state["uploaded"]
    app.file_uploader(key="result_files").set_value([])
    app.session_state["earlier"] = [mine]  # as if the page had been left: its uploader forgets
    assert app.run().session_state["uploaded"] == [mine]
    app.press("Remove 1 uploaded before")
    assert app.session_state["uploaded"] == []


def test_the_shipped_results_are_there_beside_a_named_model(opened: Open, plain: dict) -> None:
    app = opened("probes")
    app.session_state["probed"] = [read(plain)]
    app.run()
    models = app.multiselect(key="only_model")
    assert models.value == ["model"] and models.options[0] == "model"
    assert {"bgt-en-fr, as shipped", "bgt-multilingual, as shipped"} < set(models.options)
    models.set_value(["bgt-en-fr, as shipped"])
    app.run()
    assert set(app.dataframe[0].value["Model"]) == {"bgt-en-fr, as shipped"}


def test_what_was_not_run_says_so(opened: Open, plain: dict) -> None:
    other = json.loads(json.dumps(plain).replace('"length"', '"punct-num"').replace('"en"', '"fr"'))
    app = opened("languages")
    app.session_state["probed"] = [read(part) for part in (plain, other)]
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
    box.set_value(["bgt-en-fr, as shipped", "bgt-multilingual, as shipped"])
    app.run()
    assert {"English · bgt-en-fr, as shipped", "English · bgt-multilingual, as shipped"} <= set(app.dataframe[0].value)
    box = app.multiselect(key="languages_of")
    box.set_value(["bgt-multilingual, as shipped"])
    app.run()
    table = app.dataframe[0].value.set_index("Task")
    assert {"English", "French", "Spanish", "German", "Turkish", "Japanese", "Arabic"} <= set(table)
    assert table.loc["Gender of articles", "Japanese"] == "no such task"
    assert table.loc["Depth of the tree", "Arabic"] == "not run"
    separation, distance = app.figures()
    assert len({trace["name"] for trace in separation["data"]} - {PAPER}) == 7
    assert "Distance to English" in [part.label for part in app.expander]
    assert {trace["name"] for trace in distance["data"]} >= {"French", "Spanish", "German", "Turkish", "Japanese"}


@pytest.mark.slow
def test_results_name_the_sentences_they_are_of(opened: Open, plain: dict) -> None:
    app = opened("probes")
    app.session_state["probed"] = [read(plain)]
    assert any("sentences each, with" in text.value for text in app.run().caption)


@pytest.mark.slow
def test_filters_leave_what_is_asked_for(opened: Open, plain: dict) -> None:
    other = json.loads(json.dumps(plain).replace('"length"', '"punct-num"'))
    app = opened("probes")
    app.session_state["probed"] = [read(part) for part in (plain, other)]
    app.run()
    assert set(app.dataframe[1].value["Task"]) == {"Length", "Punctuation: how much"}
    app.put(app.multiselect(key="only_task"), ["punct-num"])
    assert set(app.dataframe[1].value["Task"]) == {"Punctuation: how much"}


def test_a_task_that_sentences_are_not_enough_for_says_what_it_needs(opened: Open) -> None:
    app = opened("probes")
    assert len(app.selectbox(key="ptask").options) == 18
    app.put(app.selectbox(key="ptask"), "tense")
    (button,) = (button for button in app.button if button.label == "Run")
    assert button.disabled and any("CoNLL-U" in caption.value for caption in app.caption)


@pytest.mark.slow
def test_accuracies_and_compression_of_both_latents(opened: Open, plain: dict) -> None:
    app = opened("languages")
    app.session_state["probed"] = [read(plain)]
    app.run()
    app.put(app.multiselect(key="languages_of"), ["model"])
    for shown, of, scale, digits in (("Accuracy", "accuracy", 100, 1), ("Compression", "compression", 1, 2)):
        app.put(app.button_group(key="gaps"), shown)
        row = next(row for row in plain["results"][0]["rows"] if row["latent"] == "language")
        table = app.dataframe[0].value.set_index("Latent")
        value = scale * row[of]
        assert table.loc["language", "English"].startswith(f"{value:.{digits}f}")
        assert len(app.figures()) == 1


@pytest.mark.slow
def test_without_codelengths_compression_is_not_offered(opened: Open, plain: dict) -> None:
    app = opened("languages")
    bare = json.loads(json.dumps(plain))
    for row in bare["results"][0]["rows"]:
        row["compression"] = None
    app.session_state["probed"] = [read(bare)]
    app.run()
    app.put(app.multiselect(key="languages_of"), ["model"])
    offered = app.button_group(key="gaps").options
    assert offered == ["Difference", "Accuracy"] and any("--mdl" in part.value for part in app.markdown)


@pytest.mark.slow
def test_sentences_are_sorted_by_what_a_latent_knows_of_them(
    opened: Open, start: Callable, cell: Cell, saved: Path, tmp_path: Path
) -> None:
    (tmp_path / "en.json").write_text(json.dumps(document([cell], [], [])), "utf-8")
    parquet.write_table(all_predictions([cell]), tmp_path / "en.parquet")
    start("--model", saved, "--results", tmp_path)
    app = opened("probes")
    app.put(app.selectbox(key="items_name"), "language")
    bits = app.dataframe[-1].value["Bits"]
    assert bits.is_monotonic_decreasing
    gap = cell.result.difference  # semantic minus language; here the other way round
    (shown,) = (metric for metric in app.metric if metric.label.startswith("language minus"))
    assert shown.value == f"{-gap.points:+z.1f}"
    app.put(app.button_group(key="items_order"), "Least first")
    assert app.dataframe[-1].value["Bits"].iloc[0] == bits.min()


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


def test_a_figure_says_of_which_models_data_and_seeds_it_is(plain: dict) -> None:
    cell = plain["results"][0]
    first = cell["rows"][0]
    caption = listing.provenance(read(plain).scores)
    assert f"Trained on {first['n_train']:,} and tested on {first['n_test']:,} sentences" in caption
    assert caption.startswith("model") or "model (fingerprint" in caption
    more = pd.concat([read(plain).scores, read(plain).scores.assign(run="4,000 + 987 sentences, 5 seeds", data="b")])
    assert "to 4,000 and tested" in listing.provenance(more) and ", b." in listing.provenance(more)
