"""Encoders that are not ours, in the app: each kind opens on every page, and says what it lacks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import bgt_core
from app.core import startup, state
from app.core.rows import latent_title
from app.similarity.compute import alike
from bgt_core.adapters import onnx
from bgt_core.checkpoint import load
from bgt_core.data.examples import LANGS
from bgt_core.vectors.compare import cosines

Open = Callable[[str], AppTest]
Start = Callable[..., None]
PAGES = ("sentence", "maps", "rewrite", "similarity", "probes", "languages", "card")
IN_PLACE = """
import streamlit as st
from app import main
from app.core import state
def page():
    st.title("Typed")
    state.embed(state.model(), ["Can you help me?", "Shall we go?"], "en", "semantic")
main.shown(page)
"""
PAIR = ("Can you help me?", "He is my friend.")

MODULE = """
import numpy as np

calls = []

def letters(sentences):
    calls.append(len(sentences))
    return np.array([[text.lower().count(letter) for letter in "aeinorst"] + [1] for text in sentences], float)
"""


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A function of the user's, by the name it is given at the start."""
    (tmp_path / "letters_of.py").write_text(MODULE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "letters_of", raising=False)
    return "python:letters_of:letters"


@pytest.fixture
def exported(saved: Path, tmp_path: Path) -> Path:
    pytest.importorskip("onnxscript")
    onnx.export(load(saved), tmp_path / "exported")
    return tmp_path / "exported"


@pytest.fixture
def sentence_transformer(tmp_path: Path) -> Path:
    """A folder of that library's own: a bag of five words."""
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.modules import BoW

    folder = tmp_path / "bag"
    library.SentenceTransformer(modules=[BoW(["you", "me", "he", "is", "a"])], device="cpu").save(str(folder))
    return folder


def every_page(opened: Open) -> dict[str, AppTest]:
    apps = {page: opened(page) for page in PAGES}
    assert not {page: app.error[0].value for page, app in apps.items() if app.error}
    return apps


@pytest.mark.parametrize("spec", ["baseline:tfidf", "baseline:random"])
def test_a_baseline_opens_on_every_page(start: Start, opened: Open, spec: str) -> None:
    start("--model", spec)
    every_page(opened)


def test_a_function_opens_on_every_page_and_offers_every_language(
    python: str, start: Start, opened: Open, figures: Callable
) -> None:
    start("--model", python)
    apps = every_page(opened)
    assert len(figures(apps["maps"])) == 1
    loaded = state.model()
    assert set(loaded.langs) == set(LANGS) and loaded.bgt is None and not loaded.second_latent and not loaded.info
    assert "this machine" in loaded.device
    assert loaded.cannot_write in apps["rewrite"].info[0].value


def test_its_similarities_are_its_own(python: str, start: Start) -> None:
    start("--model", python)
    import letters_of

    expected = cosines(*letters_of.letters(PAIR)[:, None])
    table = alike(state.model(), *PAIR, "en", "en").set_index("measure")["value"]
    assert table[latent_title("semantic")] == pytest.approx(float(expected[0]), abs=1e-6)


def test_many_sentences_are_embedded_once_though_nobody_knows_what_decides_the_vectors(
    python: str, start: Start
) -> None:
    start("--model", python)
    import letters_of

    texts = [f"sentence {number}" for number in range(state.FEW + 1)]
    first = state.embed(state.model(), texts, "en", "semantic")
    count = len(letters_of.calls)
    assert np.array_equal(state.embed(state.model(), texts, "en", "semantic"), first)
    assert len(letters_of.calls) == count
    state.clear()  # another object may be behind the name now
    state.embed(state.model(), texts, "en", "semantic")
    assert len(letters_of.calls) == count + 1


def test_an_exported_onnx_folder_gives_the_model_s_similarities(
    exported: Path, saved: Path, start: Start, opened: Open
) -> None:
    start("--model", f"onnx:{exported}")
    every_page(opened)
    loaded = state.model()
    vectors = state.embed(loaded, PAIR, "fr", "semantic")
    np.testing.assert_allclose(vectors, bgt_core.load(saved, "cpu", "fp32").embed(PAIR, lang="fr"), atol=1e-5)
    assert loaded.langs == ("en", "fr") and loaded.title == "onnx:exported"


def test_a_folder_of_sentence_transformers_opens_by_its_kind(
    sentence_transformer: Path, start: Start, opened: Open
) -> None:
    start("--model", f"sentence-transformers:{sentence_transformer}")
    every_page(opened)
    assert state.titles()[0] == "sentence-transformers:bag"
    np.testing.assert_allclose(state.embed(state.model(), PAIR, "en", "semantic"), [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]])


def test_a_folder_named_without_its_kind_is_told_the_spelling(
    sentence_transformer: Path, exported: Path, start: Start, opened: Open
) -> None:
    for kind, folder in (("sentence-transformers", sentence_transformer), ("onnx", exported)):
        start("--model", folder)
        assert f"{kind}:{folder}" in opened("main").code[0].value


@pytest.mark.parametrize("spec", ["sentense-transformers:x", "python:nowhere:x", "vectors:nowhere.npy", "onnx:nowhere"])
def test_a_wrong_name_lists_the_forms_and_the_shipped_model_still_opens(
    start: Start, opened: Open, run: Callable[[AppTest], AppTest], spec: str
) -> None:
    start("--model", spec)
    app = opened("main")
    assert app.error and "nowhere" in app.code[0].value + "nowhere" * ("sentense" in spec)
    (forms,) = (text.value for text in app.markdown if "onnx:FOLDER" in text.value)
    assert all(form in forms for form in ("onnx:FOLDER", "python:MODULE:OBJECT", "vectors:FILE"))
    app.selectbox(key="ckpt").set_value(next(iter(startup.shipped())))
    assert not run(app).error


def test_a_sentence_without_a_vector_is_named_where_it_was_typed(
    tmp_path: Path, start: Start, opened: Open, run: Callable[[AppTest], AppTest]
) -> None:
    np.savez(tmp_path / "few.npz", vectors=np.eye(2), sentences=np.array(PAIR))
    (tmp_path / "few.tsv").write_text("\n".join(PAIR) + "\n", "utf-8")
    start("--model", f"vectors:{tmp_path / 'few.npz'}", "--data", f"en={tmp_path / 'few.tsv'}")
    app = opened("main")
    assert "vectors:few.npz" in app.selectbox(key="ckpt").options
    alone = AppTest.from_string(IN_PLACE, default_timeout=60)
    run(alone)
    assert "has no vector for 'Shall we go?'" in alone.error[0].value and alone.title
