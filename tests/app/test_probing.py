"""The pages of probes and languages: empty, with results, computed on the spot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import results

Open = Callable[[str], AppTest]
Run = Callable[[AppTest], AppTest]


@pytest.fixture(scope="module")
def document(saved: Path) -> dict:
    """English length of the untrained model, both latents, as `bgt-probe --json` gives it."""
    import bgt_core
    from probes.run import run_probe

    found = run_probe(bgt_core.load(saved), "length", "en", max_items=300, seeds=1)
    return {"schema": "bgt-probe/1", "model": str(saved), "data": "x", "results": [found.as_dict()]}


def test_no_results_say_how_to_get_some(opened: Open) -> None:
    probing, compare = opened("probing"), opened("compare")
    for app in (probing, compare):
        assert app.info and any("bgt-probe --lang en" in code.value for code in app.code)
        assert not app.get("plotly_chart")


def test_files_named_at_the_start_are_shown_with_their_intervals(
    opened: Open, start: Callable, figures: Callable, document: dict, saved: Path, tmp_path: Path
) -> None:
    (tmp_path / "en.json").write_text(json.dumps(document), "utf-8")
    start("--model", saved, "--results", tmp_path)
    app = opened("probing")
    table = app.dataframe[0].value.set_index("Latent or baseline")
    row = document["results"][0]["rows"][0]
    assert table.loc[row["latent"], "Accuracy, %"] == pytest.approx(100 * row["accuracy"])
    assert set(table["Model"]) == {"model"} and len(figures(app)) == 1
    gap = document["results"][0]["difference"]
    assert app.dataframe[1].value["Points"].tolist() == pytest.approx([gap["points"]])


def test_a_probe_runs_on_the_spot_and_reaches_both_pages(opened: Open, press: Callable, run: Run, saved: Path) -> None:
    app = opened("probing")
    app.selectbox(key="items").set_value(500)
    app.selectbox(key="pseeds").set_value(1)
    press(app, "Run")
    assert app.success
    shown = app.dataframe[0].value
    assert set(shown["Task"]) == {"length"} and set(shown["Latent or baseline"]) >= {"semantic", "language", "majority"}
    compare = opened("compare")
    compare.session_state["probed"] = app.session_state["probed"]
    run(compare)
    assert compare.get("plotly_chart") and list(compare.table[0].value.index) == ["length"]
    assert any("three languages" in caption.value for caption in compare.caption)


def test_what_was_not_run_says_so(opened: Open, run: Run, document: dict) -> None:
    other = json.loads(json.dumps(document).replace('"length"', '"punctuation"').replace('"en"', '"fr"'))
    app = opened("compare")
    app.session_state["probed"] = [results.of_document(part) for part in (document, other)]
    run(app)
    table = app.table[0].value
    assert (table == "not run").to_numpy().sum() == 2 and table.shape == (2, 2)


def test_filters_leave_what_is_asked_for(opened: Open, run: Run, document: dict) -> None:
    other = json.loads(json.dumps(document).replace('"length"', '"punctuation"'))
    app = opened("probing")
    app.session_state["probed"] = [results.of_document(part) for part in (document, other)]
    run(app)
    assert set(app.dataframe[0].value["Task"]) == {"length", "punctuation"}
    app.multiselect(key="only_task").set_value(["punctuation"])
    run(app)
    assert set(app.dataframe[0].value["Task"]) == {"punctuation"}
