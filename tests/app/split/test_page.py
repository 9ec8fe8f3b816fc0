"""An encoder is split on the page, and every other page has it afterwards."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bgt_core
from app.split import compute
from bgt_core.splitting import store

Open = Callable[..., Any]
Start = Callable[..., None]


@pytest.mark.slow
def test_a_model_is_split_measured_and_one_of_the_models_afterwards(
    start: Start, opened: Open, saved: Path, tmp_path: Path
) -> None:
    start("--model", "baseline:random")
    app = opened("split")
    app.put(app.box("Pairs"), "Example sentences (en-fr)")
    app.press("Split")
    titles = [part.value for part in app.subheader]
    assert titles[0] == "What a linear probe tells" and titles[-1] == "Nearest neighbours"
    assert {f"Forms that a linear probe tells, {lang}" for lang in ("en", "fr")} <= {*titles}
    made = app.session_state["split"]
    assert {"leace: shared", "leace: private"} <= {*app.dataframe[0].value["vectors"]}
    app.press("Use it")
    (title,) = app.session_state["own_models"]
    assert title == made.loaded.title and app.session_state["next_model"] == title
    files = zipfile.ZipFile(io.BytesIO(compute.archive(made)))
    files.extractall(tmp_path)
    assert store.load(tmp_path / "split").encoder == "baseline:random"
    sentence = ["The train is late."]
    kept = bgt_core.open_encoder(f"split:{tmp_path / 'split'}").embed(sentence, lang="en")
    np.testing.assert_array_equal(made.loaded.reader.embed(sentence, lang="en"), kept)
    assert made.loaded.reader.fingerprint == bgt_core.open_encoder(f"split:{tmp_path / 'split'}").fingerprint


def test_an_encoder_that_runs_code_is_not_opened_from_a_page(opened: Open, start: Start) -> None:
    start("--model", "baseline:random")
    app = opened("split")
    app.text_input(key="split_open").set_value("python:os:system")
    app.press("Open")
    assert "expected a name that begins with" in app.error[0].value and "own_models" not in app.session_state
    app.text_input(key="split_open").set_value("baseline:words")
    app.press("Open")
    assert list(app.session_state["own_models"]) == ["baseline:words"]


def test_a_writer_gives_its_encoder_text(start: Start, opened: Open, model_of: Callable[[str], Path]) -> None:
    start("--model", "baseline:words")
    app = opened("split")
    app.text_input(key="split_writer").set_value(str(model_of("writer")))
    app.press("Use this writer")
    ((title, loaded),) = app.session_state["own_models"].items()
    assert title == "baseline:words, with writer" == app.session_state["next_model"] and not app.error
    assert not loaded.cannot_write and "from vectors of baseline:words" in loaded.device
    inner = bgt_core.open_encoder("baseline:words")
    np.testing.assert_array_equal(loaded.reader.embed(["a cat"], lang="en"), inner.embed(["a cat"], lang="en"))


@pytest.mark.parametrize(("folder", "expected"), [("", "trained for baseline"), ("/nowhere", "/nowhere: not a folder")])
def test_a_folder_without_a_writer_for_the_encoder_is_refused(
    start: Start, opened: Open, model_of: Callable[[str], Path], folder: str, expected: str
) -> None:
    start("--model", "baseline:tfidf")
    app = opened("split")
    app.text_input(key="split_writer").set_value(folder or str(model_of("writer")))
    app.press("Use this writer")
    assert expected in app.error[0].value and "own_models" not in app.session_state


@pytest.mark.parametrize(
    ("rows", "langs", "expected"),
    [
        (5_000, ["en", "fr"], ["neural", "bgt", "centring"]),
        (100, ["en", "fr"], ["centring", "leace", "shift"]),
        (5_000, ["en", "en"], ["neural", "bgt"]),
        (100, ["en", "en"], []),
    ],
)
def test_only_methods_that_the_pairs_allow_are_offered(rows: int, langs: list[str], expected: list[str]) -> None:
    different, repeated = [list(map(str, range(rows)))] * 2, [["the same"] * rows] * 2
    assert compute.methods(different, 384, langs)[: len(expected)] == expected
    assert not {"neural", "bgt"} & {*compute.methods(repeated, 384, langs)}
