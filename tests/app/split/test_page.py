"""The page "Your encoder" splits an encoder's vectors into two latents; all pages can then use the split encoder."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bgt_core
from app.core import inventory, state, uploads
from app.core.display import verbatim
from app.split import page
from bgt_core.data.examples import example_sentences
from bgt_core.errors import DataError
from bgt_core.splitting import parts

Open = Callable[..., Any]
Start = Callable[..., None]


@pytest.mark.slow
def test_a_model_is_split_and_one_of_the_models_afterwards(
    start: Start, opened: Open, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start("--model", "baseline:random")
    app = opened("split")
    app.put(app.box("Pairs"), "Example sentences (en-fr)")
    assert any("*neural* and *bgt* need" in caption.value for caption in app.caption)
    app.press("Split")
    made = app.session_state["own"].split
    scores = made.stored.split.about["scores"]
    found, told = [[round(100 * scores[of][key]) for of in ("vectors", "shared")] for key in ("pool", "language_told")]
    assert app.subheader[0].value == (
        f"Before: {found[0]} % find their translation, language told {told[0]} %. After: {found[1]} %, {told[1]} %."
    )
    (figure,) = app.figures()
    assert [trace["name"] for trace in figure["data"]] == ["English", "French"] * 2
    sentences = next(iter(made.maps.values()))["text"].tolist()
    vectors = bgt_core.open_encoder("baseline:random").embed(sentences, lang="en")
    for sentence, *nearest in made.neighbours:
        similarity = vectors @ vectors[sentences.index(sentence)] / np.linalg.norm(vectors, axis=1)
        best = max(each for each in zip(similarity, sentences, strict=True) if each[1] != sentence)
        assert nearest[0].removeprefix("✓ ") == best[1]
    assert any("(95% intervals); by chance for 0." in caption.value for caption in app.caption)
    app.press("Show this split")
    (title,) = app.session_state["own"].models
    assert title == made.loaded.title and app.session_state["next_model"] == title
    assert app.toast[0].value == f"Done: every page now shows {verbatim(title)}."
    files = zipfile.ZipFile(io.BytesIO(page.archive(made)))
    files.extractall(tmp_path)
    assert parts.load(tmp_path / "split").encoder == "baseline:random"
    sentence = ["The train is late."]
    kept = bgt_core.open_encoder(f"split:{tmp_path / 'split'}").embed(sentence, lang="en")
    np.testing.assert_array_equal(made.loaded.reader.embed(sentence, lang="en"), kept)
    assert made.loaded.reader.fingerprint == bgt_core.open_encoder(f"split:{tmp_path / 'split'}").fingerprint
    start("--model", f"split:{tmp_path / 'split'}")
    card = opened("card")
    assert any(app.subheader[0].value in text.value for text in card.markdown) and not card.info
    assert [text.value.count("\n") for text in card.markdown if "**A split**" in text.value] == [0]  # no other terms
    found = card.dataframe[0].value.set_index("Of")["of all languages, %"]
    assert found["the semantic latent"] == pytest.approx(100 * scores["shared"]["pool"])
    monkeypatch.setattr(state, "model", lambda: made.loaded)
    asked, embed = list[str](), made.source.reader.embed
    monkeypatch.setattr(made.source.reader, "embed", lambda texts, **of: asked.extend(texts) or embed(texts, **of))
    shown = opened("sentence").html()
    assert all(text in shown for text in sentences[:: len(sentences) // 2]) and len(asked) < 20
    maps = opened("maps", data="Example sentences (en-fr)")
    (held_out,) = made.loaded.held_out.values()
    assert {int(row[2:]) for panel in maps.maps()[0] for row in panel["ids"]} == {*held_out}
    assert any("held-out pairs, from which the split was not made" in caption.value for caption in maps.caption)
    maps.put(maps.toggle(key="unseen"), False)
    for app in (maps, opened("pairs")):
        assert any(f"except for {len(held_out)} held-out pairs" in caption.value for caption in app.caption)


def test_an_encoder_that_cannot_be_opened_is_explained_in_the_words_of_the_page(opened: Open) -> None:
    app = opened("split")
    app.press("Open")
    assert app.error[0].value == "Type or choose an encoder, or upload a file of vectors: one of the two."
    for typed in ("no-such-model", "/no/such/folder", __file__, "onnx:/nowhere", "split:"):
        choose(app, typed)
        said = app.error[0].value.replace("\\", "")
        assert said.endswith("Type another name or folder, choose one from the list, or upload its vectors.")
        assert "bgt " not in said and "--" not in said
    choose(app, "python:os:system")  # opening it would run code
    assert "or a name that begins with" in app.error[0].value and "own" not in app.session_state
    choose(app, "baseline:words")
    assert list(app.session_state["own"].models) == ["baseline:words"]


def choose(app: Any, typed: str) -> None:
    """Open an encoder on the page by a typed name."""
    box = app.selectbox(key="split_open")
    box.options = [*box.options, typed]
    box.set_value(typed)
    app.press("Open")


def npz(vectors: np.ndarray, *sentences: str) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, vectors=vectors, sentences=sentences)
    return buffer.getvalue()


def test_vectors_and_their_sentences_are_uploaded(start: Start, opened: Open) -> None:
    start("--model", "baseline:random")
    app = opened("split")
    app.file_uploader(key="split_vectors").set_value(("mine.npz", b"not an archive", "application/zip"))
    app.press("Open")
    assert app.error[0].value.startswith("mine.npz: not an .npz file") and "own" not in app.session_state
    vectors = np.random.default_rng(0).normal(size=(2, 3)).astype("f4")
    content = npz(vectors, "A cat.", "Un chat.")
    app.file_uploader(key="split_vectors").set_value(("mine.npz", content, "application/zip"))
    app.press("Open")
    ((title, loaded),) = app.session_state["own"].models.items()
    assert title == "mine.npz" == app.session_state["next_model"] and not app.error
    np.testing.assert_array_equal(loaded.reader.embed(["Un chat.", "A cat."], lang="fr"), vectors[::-1])
    with pytest.raises(DataError, match=r"^mine.npz: no vector for 'A dog.' \(1 of 1 missing\)"):
        loaded.reader.embed(["A dog."], lang="en")


def test_pages_show_the_sentences_whose_vectors_were_uploaded(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = example_sentences(("en", "fr"))[:60]
    sentences = [*dict.fromkeys(text for pair in pairs for text in pair)]
    loaded = page.uploaded("mine.npz", npz(np.random.default_rng(0).normal(size=(len(sentences), 8)), *sentences))
    _, text, _ = uploads.text_of("mine", pd.DataFrame(pairs, columns=["a", "b"], dtype=object), ["en", "fr"], True)
    made = page.make(loaded, text, "centring", lambda *_: None)
    monkeypatch.setattr(inventory, "of_session", lambda: inventory.OwnTexts(uploaded={"mine": text}))
    monkeypatch.setattr(state, "model", lambda: made.loaded)
    for name in ("maps", "pairs", "sentence"):
        app = opened(name)
        assert not app.error and any("file of vectors. New sentences" in caption.value for caption in app.caption)
    assert {*app.selectbox(key="sentence").options} == {pair[0] for pair in pairs}


def test_a_small_file_that_unpacks_to_gigabytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_UNPACKED", 2**10)
    with pytest.raises(DataError, match=r"^mine.npz: 0 MiB of numbers; expected at most 0"):
        page.uploaded("mine.npz", npz(np.ones((1_000, 30)), "A cat."))


def test_a_writer_gives_its_encoder_text(start: Start, opened: Open, model_of: Callable) -> None:
    start("--model", "baseline:words")
    app = opened("split")
    app.text_input(key="split_writer").set_value(str(model_of("writer")))
    app.press("Use this writer")
    ((title, loaded),) = app.session_state["own"].models.items()
    assert title == "baseline:words, with writer" == app.session_state["next_model"] and not app.error
    assert not loaded.cannot_write and "from vectors of baseline:words" in loaded.device
    inner = bgt_core.open_encoder("baseline:words")
    np.testing.assert_array_equal(loaded.reader.embed(["a cat"], lang="en"), inner.embed(["a cat"], lang="en"))


@pytest.mark.parametrize(("folder", "expected"), [("", "trained for baseline"), ("/nowhere", "/nowhere: not a folder")])
def test_a_folder_without_a_writer_for_the_encoder_is_refused(
    start: Start, opened: Open, model_of: Callable, folder: str, expected: str
) -> None:
    start("--model", "baseline:tfidf")
    app = opened("split")
    app.text_input(key="split_writer").set_value(folder or str(model_of("writer")))
    app.press("Use this writer")
    assert expected in app.error[0].value and "own" not in app.session_state


@pytest.mark.parametrize(
    ("rows", "langs", "expected"),
    [
        (5_000, ["en", "fr"], ["bgt", "neural", "centring"]),
        (100, ["en", "fr"], ["centring", "leace", "shift"]),
        (5_000, ["en", "en"], ["bgt", "neural"]),
        (100, ["en", "en"], []),
    ],
)
def test_only_methods_that_the_pairs_allow_are_offered(rows: int, langs: list[str], expected: list[str]) -> None:
    different, repeated = [list(map(str, range(rows)))] * 2, [["the same"] * rows] * 2
    assert page.methods(different, 384, langs)[: len(expected)] == expected
    assert not {"neural", "bgt"} & {*page.methods(repeated, 384, langs)}
