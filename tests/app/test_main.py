"""The start page with damaged, missing and busy models, and with invalid links."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st

import app as package
from app.core import startup, state
from app.core.markdown import verbatim
from app.sentence import page

Open = Callable[..., Any]
Start = Callable[..., None]
SHIPPED = next(iter(startup.shipped()))


@pytest.mark.slow
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-9])])
def test_a_bad_checkpoint_is_named_and_the_app_lives_on(
    start: Start, opened: Open, saved: Path, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    name = "model.safetensors"
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    damage(folder / name)
    start("--model", folder)
    app = opened("main")
    assert app.error
    (message,) = app.code
    assert str(folder) in message.value and (name in message.value or not (folder / name).exists())
    assert "Traceback" not in str(app)
    app.selectbox(key="ckpt").set_value(SHIPPED)  # another model still opens
    assert app.run().text_input and not app.error
    app.selectbox(key="ckpt").set_value("model")
    shutil.copytree(saved, folder, dirs_exist_ok=True)
    assert app.run().text_input and not app.error


def test_an_empty_folder_of_models_says_the_way_out(start: Start, opened: Open, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        start("--model", path)
        app = opened("main")
        assert path.name in app.code[0].value and "--model" in app.caption[0].value
        assert SHIPPED in app.selectbox(key="ckpt").options


@pytest.mark.parametrize("asked", ["../../etc/passwd", "<b>x</b>", "MiniLM, split (neural)"])
def test_a_link_to_a_model_that_is_not_here_shows_nothing(opened: Open, asked: str) -> None:
    app = opened("main", ckpt=asked, sentence="A cat.")
    assert verbatim(asked) in app.error[0].value and not (
        app.text_input or app.markdown[1:] or app.html().count("<div")
    )
    app.press("Open the page without it")
    assert app.selectbox(key="ckpt").value == "model" and app.text_input[0].value == "A cat." and not app.error


@pytest.mark.parametrize(
    ("parameters", "needs"),
    [
        ({"models": "gone"}, "the model “gone”"),
        ({"data": "Yours: mine.tsv (en-fr)"}, "the sentences “Yours: mine.tsv"),
        ({"cmp_aligned": "gone.tsv (en-fr)"}, "the sentences “gone.tsv"),
        ({"own": "AAAAAAAAAAAAAAAAAAAAAA"}, "sentences, files or encoders that are not kept any more"),
        ({"ckpt": "gone", "own": "x"}, "the model “gone”, sentences, files or encoders"),
    ],
)
def test_a_link_to_texts_that_are_not_kept_shows_nothing(opened: Open, parameters: dict[str, str], needs: str) -> None:
    app = opened("main", **parameters)
    assert needs in app.error[0].value.replace("\\", "") and not app.text_input
    assert app.press("Open the page without it").text_input and not app.error


def test_a_busy_model_is_no_crash(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        with state.inference(), state.inference():
            pytest.fail("one request at a time")

    monkeypatch.setattr(state, "PATIENCE", 0.01)
    monkeypatch.setattr(page, "page", busy)
    app = opened("main")
    assert "busy" in app.warning[0].value and [button.label for button in app.button] == ["Try again"]


def test_sessions_side_by_side_lose_nothing_of_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rerun sets the path, while Streamlit adds and removes the app's folder for other sessions."""
    main = Path(package.__file__).parent / "main.py"
    code = compile(
        main.read_text("utf-8").partition("\nfrom app.core")[0].replace("from __future__", "#"), main, "exec"
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    before, folder = set(sys.path), str(main.parent)

    def others() -> None:
        for _ in range(2_000):
            sys.path.insert(0, folder)
            time.sleep(0)
            with suppress(ValueError):
                sys.path.remove(folder)

    def rerun() -> None:
        for _ in range(200):
            exec(code, {"__file__": str(main)})

    threads = [threading.Thread(target=work) for work in (others, rerun, rerun)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert before <= {*sys.path, folder}


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["sentense-transformers:x", "vectors:nowhere.npy"])
def test_a_wrong_name_lists_the_forms_and_the_shipped_model_still_opens(start: Start, opened: Open, spec: str) -> None:
    start("--model", spec)
    app = opened("main")
    assert app.error and "nowhere" in app.code[0].value + "nowhere" * ("sentense" in spec)
    (forms,) = (text.value for text in app.markdown if "onnx:FOLDER" in text.value)
    assert all(form in forms for form in ("onnx:FOLDER", "python:MODULE:OBJECT", "vectors:FILE"))
    app.selectbox(key="ckpt").set_value(SHIPPED)
    assert not app.run().error


def test_a_sentence_without_a_vector_is_named_below_the_page_s_title(
    start: Start, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "few.npz", vectors=np.eye(1), sentences=np.array(["Can you help me?"]))
    start("--model", f"vectors:{tmp_path / 'few.npz'}", "--data", "en=few.tsv")

    def typed(*_: object) -> None:
        st.title("Typed")
        state.embed(state.model(), ["Can you help me?", "Shall we go?"], "en", "semantic")

    monkeypatch.setattr(page, "page", typed)
    app = opened("main")
    assert "no vector for 'Shall we go?'" in app.error[0].value and app.title
