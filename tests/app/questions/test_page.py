"""The page of similar questions searches a store of questions. It refuses a store that another model has made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bgt_core
from bgt_core.evaluation.tasks.pairs import LabelledPairs
from bgt_core.grammar import Pair
from bgt_core.neighbours.questions import QuestionStore, build

pytest.importorskip("faiss")
Open = Callable[..., Any]
QUESTION = "The cat sleeps."


@pytest.fixture(scope="module")
def store(saved_siamese: Path, grammar: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    text = folder / "questions.txt"
    text.write_text("".join(f"{pair.texts['en']}\n" for pair in grammar[:150]), encoding="utf-8")
    build(text, folder / "store", bgt_core.load(saved_siamese, "cpu"))
    return folder / "store"


def test_without_a_store_the_page_is_not_listed(opened: Open, start: Callable, tmp_path: Path) -> None:
    def listed() -> bool:
        return "questions" in opened("main").session_state["pages"]

    assert not listed()
    start("--questions", tmp_path)
    assert listed()


def test_a_store_of_another_model_is_refused(opened: Open, start: Callable, saved: Path, store: Path) -> None:
    start("--model", saved, "--questions", store)
    app = opened("questions")
    assert "can't open the store of questions" in app.error[0].value
    assert "is not the encoder that made" in app.code[0].value


def test_the_nearest_questions_are_the_stores(opened: Open, start: Callable, saved_siamese: Path, store: Path) -> None:
    start("--model", saved_siamese, "--questions", store)
    app = opened("questions")
    app.put(app.text_input(key="question"), QUESTION)
    table = app.dataframe[0].value
    (hits,) = QuestionStore.open(store, bgt_core.load(saved_siamese)).query([QUESTION], k=20)
    assert table["Question"].tolist() == [hit.question for hit in hits]
    assert table["W2"].tolist() == pytest.approx([hit.w2 for hit in hits], rel=1e-4)
    assert table["Probability"].tolist() == pytest.approx([hit.probability for hit in hits], rel=1e-4)
    middle = sum(hit.probability for hit in hits) / len(hits)
    for threshold in (0.0, round(middle, 2), 1.0):
        app.put(app.slider(key="threshold"), threshold)
        duplicates = sum(hit.probability >= threshold for hit in hits)
        assert app.dataframe[0].value["Duplicate"].sum() == duplicates
        assert app.subheader[0].value == f"Duplicates: {duplicates} of the nearest 20"


def test_cosines_have_no_threshold(
    opened: Open, start: Callable, saved: Path, grammar: list[Pair], tmp_path: Path
) -> None:
    text = tmp_path / "questions.txt"
    sentences = [pair.texts["en"] for pair in grammar[:60]]
    text.write_text("\n".join(sentences), encoding="utf-8")
    encoder = bgt_core.load(saved)
    build(text, tmp_path / "store", encoder)
    start("--model", saved, "--questions", tmp_path / "store")
    app = opened("questions")
    assert list(app.dataframe[0].value) == ["Question", "Cosine"] and not app.slider and not app.select_slider
    labels = np.arange(30) % 2 == 0
    right = [sentences[at] if labels[at] else sentences[-at] for at in range(30)]
    build(text, tmp_path / "other", encoder, dev=LabelledPairs("dev", labels, sentences[:30], right))
    start("--model", saved, "--questions", tmp_path / "other")
    app = opened("questions")
    assert "Probability" in app.dataframe[0].value and any("calibrated on dev" in it.value for it in app.caption)
