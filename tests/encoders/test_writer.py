"""A writer generates text from another encoder's vectors. It raises an error if that encoder has changed."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bgt_core
from bgt_core.encoders.writer import WriterEmbedder, attached
from bgt_core.errors import DataError, UsageError

TEXTS = ["The dog sleeps.", "Is it late?"]
Saves = Callable[..., Path]


@pytest.fixture
def saves(save_writer: Callable[..., Path], tmp_path: Path) -> Saves:
    """saves(**settings): save a writer with these settings; return its checkpoint."""
    return partial(save_writer, tmp_path / "writer")


def test_semantic_vectors_are_the_encoder_s_and_style_is_the_model_s(saves: Saves) -> None:
    folder = saves()
    writer, inner = bgt_core.open_encoder(folder), bgt_core.open_encoder("baseline:words")
    assert isinstance(writer, WriterEmbedder)
    np.testing.assert_array_equal(writer.embed(TEXTS, lang="en"), inner.embed(TEXTS, lang="en"))
    assert writer.embed(TEXTS[0], lang="fr").shape == (writer.width("fr"),) == (8192,)
    lengths = np.linalg.norm(writer.embed(TEXTS, lang="en", normalize=True), axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-5)
    plain = bgt_core.load(folder)
    styles = [each.embed(TEXTS, lang="en", latent="language") for each in (writer, plain)]
    np.testing.assert_array_equal(*styles)
    again = copy.deepcopy(writer)
    np.testing.assert_array_equal(again.embed(TEXTS, lang="en"), writer.embed(TEXTS, lang="en"))
    with pytest.raises(UsageError, match="lang de: this model supports en, fr"):
        writer.embed(TEXTS, lang="de")
    with pytest.raises(UsageError, match=r"Open the model with `bgt_core\.open_encoder`"):
        plain.embed(TEXTS, lang="en")


def test_an_encoder_of_another_width_is_refused(saves: Saves) -> None:
    writer = bgt_core.open_encoder(saves(vector_dim=12))
    with pytest.raises(DataError, match="8192 units, but this writer was trained on vectors of 12 units"):
        writer.embed(TEXTS, lang="en")


def test_a_writer_without_a_fingerprint_accepts_an_encoder_by_name(saves: Saves) -> None:
    folder, inner = saves(), bgt_core.open_encoder("baseline:words")
    assert bgt_core.open_encoder(folder).fingerprint == ""
    unknown = bgt_core.load(folder)
    assert attached(unknown, inner, "baseline:words").embed(TEXTS, lang="en").shape == (2, 8192)
    with pytest.raises(UsageError, match="not for the same by another name"):
        attached(unknown, inner, "the same by another name")


def test_an_open_encoder_is_accepted_if_the_writer_was_trained_for_it(saves: Saves, saved: Path) -> None:
    inner, other = (bgt_core.open_encoder(f"baseline:{name}") for name in ("words", "tfidf"))
    known = bgt_core.load(saves(fingerprint="words 8192"))
    for name in ("baseline:words", "the same by another name"):
        writer = attached(known, inner, name)
        assert writer.fingerprint == f"{known.fingerprint} of words 8192"
        np.testing.assert_array_equal(writer.embed(TEXTS, lang="en"), inner.embed(TEXTS, lang="en"))
    with pytest.raises(UsageError, match=r"^This writer was trained for baseline:words, not for baseline:tfidf"):
        attached(known, other, "baseline:tfidf")
    with pytest.raises(UsageError, match="expected a writer"):
        attached(bgt_core.load(saved), inner, "baseline:words")


def test_exports_and_diagnosis_of_a_writer_are_errors_of_one_line(
    saves: Saves, tmp_path: Path, bgt: Callable[..., Any]
) -> None:
    folder = saves()
    for form in ("onnx", "sentence-transformers"):
        done = bgt("export", folder, "--to", form, "--out", tmp_path / "out")
        assert done.code == 2 and "of this writer is baseline:words" in done.err and done.err.count("\n") == 1
    done = bgt("diagnose", "--model", folder)
    assert done.code == 2 and "examples/ledger.py measures it" in done.err
    assert bgt("export", folder, "--out", tmp_path / "copy").code == 0
    copied = bgt_core.open_encoder(tmp_path / "copy")
    np.testing.assert_array_equal(copied.embed(TEXTS, lang="en"), bgt_core.open_encoder(folder).embed(TEXTS, lang="en"))
