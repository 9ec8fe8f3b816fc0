"""The app without a browser: each page empty, filled and broken."""

from __future__ import annotations

import base64
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import bgt_core
from app import geometry, rows, state
from app.views import overview

MAIN = Path(__file__).resolve().parents[2] / "app" / "main.py"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def on(saved: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """on(folder): start the app on that checkpoint; already done for an untrained one."""

    def choose(folder: Path) -> None:
        monkeypatch.setattr(sys, "argv", ["main.py", "--model", str(folder)])

    choose(saved)
    return choose


def latents() -> AppTest:
    def script() -> None:
        from app.views import latents

        latents.page()

    return AppTest.from_function(script, default_timeout=60)


def generate() -> AppTest:
    def script() -> None:
        from app.views import generate

        generate.page()

    return AppTest.from_function(script, default_timeout=60)


def run(app: AppTest) -> AppTest:
    app.run()
    assert not app.exception, app.exception
    return app


def figures(app: AppTest) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]


def drawn(figure: dict) -> list[str]:
    return [row for trace in figure["data"] if trace["mode"] == "markers" for (row,) in trace["customdata"]]


def lit(figure: dict) -> set[str]:
    return {
        t["customdata"][at][0] for t in figure["data"] if t["mode"] == "markers" for at in t.get("selectedpoints", [])
    }


def select(app: AppTest, label: str) -> object:
    (box,) = (box for box in app.selectbox if box.label == label)
    return box


# Overview


def test_the_overview_tells_the_checkpoint(on: Callable, saved: Path) -> None:
    config = json.loads((saved / "config.json").read_text("utf-8"))
    app = run(AppTest.from_file(MAIN, default_timeout=60))
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Languages"] == "English, French"
    assert shown["Training steps"] == str(config["step"])
    assert config["files"]["model.safetensors"].startswith(shown["Checkpoint"])
    assert not app.get("plotly_chart")  # this checkpoint has no log


def test_the_overview_draws_the_log_and_the_card(on: Callable, saved: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    scores = {"STS": {"semantic": 71.25, "language": 12.5}, "Retrieval": {"semantic": 93.75}}
    config["card"] = {
        "scores": scores,
        "training data": [{"name": "Tatoeba", "licence": "CC BY 2.0 FR"}],
        "limits": "short sentences",
    }
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    kl = {"kl/semantic": 12.0, "kl/en": 0.05, "kl/fr": 1.0}
    log = [{"kind": "valid", "step": step, "steps": 9, "elbo": -90.0 + step, **kl} for step in (2, 4, 9)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in log) + '{"kind": "val', "utf-8")
    on(folder)
    app = run(AppTest.from_file(MAIN, default_timeout=60))
    shown = {metric.label: metric for metric in app.metric}
    assert config["step"] == 7  # the run went on after this checkpoint
    assert shown["ELBO, nats a pair"].value == "-86.0"
    assert [label for label, metric in shown.items() if metric.delta] == ["KL English, nats"]  # under 0.1 nats
    assert len(figures(app)) == 2
    assert app.table[0].value.loc["STS"].tolist() == ["71.2", "12.5"]
    assert app.table[0].value.loc["Retrieval"].tolist() == ["93.8", ""]
    assert "CC BY 2.0 FR" in app.dataframe[-1].value.to_string()
    assert "short sentences" in [text.value for text in app.text]


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.model", "config.json"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-9])])
def test_a_bad_checkpoint_is_named_and_the_app_lives_on(
    on: Callable, saved: Path, tmp_path: Path, name: str, damage: Callable[[Path], object]
) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    damage(folder / name)
    on(folder)
    app = run(AppTest.from_file(MAIN, default_timeout=60))
    assert app.error
    (message,) = app.code
    assert str(folder) in message.value and (name in message.value or not (folder / name).exists())
    shutil.copytree(saved, folder, dirs_exist_ok=True)
    run(app)
    assert not app.error and app.metric


def test_a_missing_model_says_the_way_out(on: Callable, tmp_path: Path) -> None:
    on(tmp_path / "nowhere")
    app = run(AppTest.from_file(MAIN, default_timeout=60))
    assert "nowhere" in app.code[0].value and "--model" in app.caption[0].value


def test_a_busy_model_is_no_crash(on: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        with state.inference(), state.inference():
            pytest.fail("one request at a time")

    monkeypatch.setattr(state, "PATIENCE", 0.01)
    monkeypatch.setattr(overview, "page", busy)
    app = run(AppTest.from_file(MAIN, default_timeout=60))
    assert "busy" in app.error[0].value


# Two latents


def test_both_maps_hold_every_sentence_and_keep_languages_apart(on: Callable) -> None:
    semantic, language = figures(run(latents()))
    assert sorted(drawn(semantic)) == sorted(rows.built_in(300)["id"]) == sorted(drawn(language))
    panels = {}
    for trace in language["data"]:
        panels.setdefault(trace["xaxis"], set()).update(row[:2] for (row,) in trace["customdata"])
    assert list(panels.values()) == [{"en"}, {"fr"}]
    assert all(chart.proto.alt for chart in run(latents()).get("plotly_chart"))


def test_maps_are_of_the_models_own_vectors(on: Callable, saved: Path) -> None:
    bgt, table = bgt_core.load(saved), rows.built_in(300)
    vectors = [bgt.embed(part["text"].tolist(), lang=lang) for lang, part in table.groupby("lang")]
    expected = geometry.fit(np.concatenate(vectors), geometry.Method()).xy
    found = {}
    for trace in figures(run(latents()))[0]["data"]:
        if trace["mode"] == "markers":
            xy = np.column_stack([unpack(trace["x"]), unpack(trace["y"])])
            found |= dict(zip(drawn({"data": [trace]}), xy, strict=True))
    assert np.allclose([found[row] for row in table["id"]], expected, atol=1e-4)


def unpack(values: dict) -> np.ndarray:
    """Plotly sends arrays as base64."""
    return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])


def test_a_selection_lights_the_same_rows_on_both_maps_and_survives_a_new_colour(on: Callable) -> None:
    app = run(latents())
    app.session_state["chosen"] = ["en3", "fr7"]
    for colour in rows.COLOURS:
        select(app, "Colour").set_value(colour)
        run(app)
        assert [lit(figure) for figure in figures(app)] == [{"en3", "fr7"}] * 2
    table = rows.built_in(300).set_index("id")
    assert app.dataframe[0].value["Sentence"].tolist() == table.loc[["en3", "fr7"], "text"].tolist()
    (clear,) = (button for button in app.button if button.label == "Clear the selection")
    clear.click()
    run(app)
    assert [lit(figure) for figure in figures(app)] == [set(), set()] and len(app.dataframe[0].value) == 600


def test_own_sentences_are_stars_in_their_language_and_go_away(on: Callable) -> None:
    app = run(latents())
    app.text_area[0].set_value("<script>alert(1)</script>\n" + "\n".join(f"Line {n}." for n in range(250)))
    (draw,) = (button for button in app.button if button.label == "Draw as stars")
    draw.click()
    run(app)
    assert "51 lines" in app.warning[0].value
    semantic, language = figures(app)
    stars = [trace for trace in semantic["data"] if "star" in str(trace.get("marker", {}).get("symbol"))]
    assert sum(len(trace["customdata"]) for trace in stars) == rows.MAX_OWN
    assert "<script>" not in json.dumps([semantic, language])
    assert len(drawn(language)) == 600 + rows.MAX_OWN
    (remove,) = (button for button in app.button if button.label.startswith("Remove all"))
    remove.click()
    run(app)
    assert len(drawn(figures(app)[0])) == 600


def test_umap_waits_for_its_button_and_is_computed_once(on: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = []
    real = geometry.fit

    def fit(vectors: object, method: geometry.Method) -> geometry.Projection:
        fitted.append(method.name)
        return real(vectors, geometry.Method())

    monkeypatch.setattr(geometry, "fit", fit)
    app = run(latents())
    app.button_group(key="map").set_value("UMAP")
    run(app)
    assert fitted == ["PCA"] * 3 and any("PCA (no seed" in caption.value for caption in app.caption)
    (compute,) = (button for button in app.button if button.label == "Compute UMAP")
    compute.click()
    run(app)
    assert fitted[3:] == ["UMAP"] * 3 and any("UMAP, 15 neighbours, seed 0" in caption.value for caption in app.caption)
    run(app)
    assert len(fitted) == 6 and any("UMAP, 15 neighbours" in caption.value for caption in app.caption)


def test_fewer_pairs_keep_the_page_whole(on: Callable) -> None:
    app = run(latents())
    app.session_state["chosen"] = ["en5", "en250"]
    select(app, "Translation pairs").set_value(100)
    run(app)
    semantic, _ = figures(app)
    assert len(drawn(semantic)) == 200 and lit(semantic) == {"en5"}


def test_a_model_without_our_languages_says_so(on: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "GRAMMAR_LANGS", ("en", "eo"))
    app = run(latents())
    assert app.info and not app.get("plotly_chart")


# Change the style


def ask(app: AppTest, source: str, style: str) -> AppTest:
    app.text_area(key="source").set_value(source)
    app.text_area(key="style").set_value(style)
    (button,) = (button for button in app.button if button.label == "Generate")
    button.click()
    return run(app)


@pytest.mark.parametrize(("source", "style"), [("", ""), ("  ", "Yes."), ("Yes.", "\n")])
def test_an_empty_sentence_is_asked_for(on: Callable, source: str, style: str) -> None:
    app = ask(run(generate()), source, style)
    assert app.warning and not app.code


def test_the_output_is_the_librarys(on: Callable, saved: Path) -> None:
    app = ask(run(generate()), "The cat sleeps.", "Is it late?")
    bgt = bgt_core.load(saved)
    (expected,) = bgt_core.transfer(bgt, ["The cat sleeps."], ["Is it late?"], lang="en", search=bgt_core.Beam(5))
    assert app.code[0].value == expected
    output, source, style = bgt.embed([expected, "The cat sleeps.", "Is it late?"], lang="en")
    shown = app.dataframe[0].value.set_index("")["Meaning: cosine to output"]
    assert shown["Source"] == pytest.approx(bgt.similarity(output, source), abs=1e-5)
    assert shown["Style"] == pytest.approx(bgt.similarity(output, style), abs=1e-5)


def test_sampling_repeats_for_a_seed(on: Callable) -> None:
    app = run(generate())
    app.button_group(key="search").set_value("Sample")
    run(app)
    said = []
    for seed in (3, 3, 4):
        app.number_input(key="seed").set_value(seed)
        said.append(ask(app, "The cat sleeps.", "Is it late?").code[0].value)
    assert said[0] == said[1] != said[2]


def test_a_long_text_is_cut_with_a_word(on: Callable) -> None:
    app = ask(run(generate()), "word " * 1000, "Yes.")
    assert "first 500 characters" in app.warning[0].value and app.code


def test_a_busy_model_says_so(on: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    app = run(generate())
    monkeypatch.setattr(state, "PATIENCE", 0.01)
    with state.inference():
        ask(app, "Yes.", "No.")
        assert "busy" in app.error[0].value
    assert ask(app, "Yes.", "No.").code and not app.error


def test_the_session_remembers_twenty(on: Callable) -> None:
    app = run(generate())
    for number in range(21):
        ask(app, f"Number {number}.", "Yes.")
    remembered = app.dataframe[1].value["Source"].tolist()
    assert remembered == [f"Number {number}." for number in range(20, 0, -1)]
