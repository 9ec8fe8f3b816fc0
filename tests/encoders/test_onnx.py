"""An exported ONNX file computes the model's vectors without torch, for any number of sentences of any length."""

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxscript")
import onnxruntime
import sentencepiece

import bgt_core
from bgt_core import checkpoint
from bgt_core.data.text import Tokenizer
from bgt_core.encoders import onnx, open_encoder
from bgt_core.errors import BgtError
from bgt_core.nets.operations import PaddedLayout
from bgt_core.recipes import Recipe
from tests.close import FLOAT32, assert_close

TEXTS = ["The dog sleeps.", "", "Where is the old man's house, and who sees it?", "It is late. " * 12]


def embedded(folder: Path, texts: list[str]) -> np.ndarray:
    """Embed texts as onnx.json describes, but without this package: only with SentencePiece, NumPy and onnxruntime."""
    about = json.loads((folder / "onnx.json").read_text("utf-8"))
    tokens = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    ids = [[*tokens.encode(unicodedata.normalize("NFC", " ".join(text.split()))), about["eos"]] for text in texts]
    padded = np.full((len(ids), max(map(len, ids))), about["pad"], np.int64)
    for row, sentence in zip(padded, ids, strict=True):
        row[: len(sentence)] = sentence
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    mask = (padded != about["pad"]).astype(np.int64)
    (vectors,) = session.run([about["output"]], dict(zip(about["inputs"], (padded, mask), strict=True)))
    assert vectors.shape == (len(texts), about["width"])
    return vectors


@pytest.mark.slow
def test_an_exported_encoder_gives_the_model_s_vectors(saved: Path, tmp_path: Path, bgt: Callable[..., tuple]) -> None:
    done = bgt("export", saved, "--out", tmp_path / "out", "--to", "onnx")
    assert done.code == 0 and "largest relative difference" in done.err and done.out.strip() == str(tmp_path / "out")
    about = json.loads((tmp_path / "out" / "onnx.json").read_text("utf-8"))
    ours = bgt_core.load(saved, "cpu", "fp32")
    assert about["langs"] == ["en", "fr"] and about["difference"] < FLOAT32
    for texts in (TEXTS, TEXTS[:1], TEXTS[1:2], TEXTS * 5):
        expected = ours.embed(texts, lang="fr", latent=about["latent"])
        assert_close(embedded(tmp_path / "out", texts), expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


@pytest.mark.slow
def test_an_exported_folder_opens_as_an_encoder(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    onnx.export(checkpoint.load(saved), folder, latent="language", lang="fr")
    encoder = open_encoder(f"onnx:{folder}")
    ours = bgt_core.load(saved, "cpu", "fp32")
    texts = [*TEXTS, "x " * 3_000]  # the last text has more tokens than a batch can have
    expected = ours.embed(texts, lang="fr", latent="language")
    assert_close(encoder.embed(texts, lang="fr", latent="language"), expected)
    assert (encoder.langs, encoder.latents) == (("fr",), ("language",)) and encoder.fingerprint
    assert open_encoder(folder).fingerprint == encoder.fingerprint
    with pytest.raises(BgtError, match=rf"write onnx:{folder}"):
        bgt_core.load(folder)
    (folder / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(BgtError, match=r"model.onnx: not an ONNX file") as error:
        open_encoder(f"onnx:{folder}")
    assert error.value.exit_code == 4 and "\n" not in str(error.value)
    (folder / "onnx.json").write_text("[]", "utf-8")
    with pytest.raises(BgtError, match=r"bgt-onnx/1"):
        open_encoder(f"onnx:{folder}")
    (folder / "tokenizer.model").unlink()
    with pytest.raises(BgtError, match=r"tokenizer.model: missing"):
        open_encoder(f"onnx:{folder}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bilstm", "gran", "bgt-bound"])
def test_every_body_is_exported(
    name: str, tmp_path: Path, tiny: Callable[..., Recipe], stirred: Callable, tokenizer: Tokenizer
) -> None:
    """A BiLSTM, a gated average and the network of the recipe bgt-bound can be exported to ONNX."""
    encoder = stirred(tiny(name).build(tokenizer)).eval().encoders["semantic"]
    bodies = {"bilstm": "BiLSTM", "gran": "GRAN", "bgt-bound": "WithoutLanguage"}
    assert type(encoder.body).__name__ == bodies[name]
    onnx.write(onnx.Padded(encoder).eval(), tmp_path / "model.onnx")
    assert onnx.difference(encoder, tmp_path / "model.onnx", tokenizer.vocab_size) < FLOAT32


def test_a_file_that_differs_is_not_kept(
    saved: Path, tmp_path: Path, bgt: Callable[..., tuple], monkeypatch: pytest.MonkeyPatch
) -> None:
    # make the exported model wrong: let it also sum over padding
    monkeypatch.setattr(PaddedLayout, "sum", lambda layout, x: x.unflatten(0, layout.shape).sum(1))
    done = bgt("export", saved, "--out", tmp_path / "out", "--to", "onnx")
    assert done.code == 4 and "differ from the model's by" in done.err
    assert not list(tmp_path.iterdir())


def test_an_export_that_the_model_does_not_support_is_an_error(
    saved: Path, tmp_path: Path, bgt: Callable[..., tuple]
) -> None:
    for choice, message in (
        (["--lang", "de", "--latent", "language"], "--lang de: "),
        (["--latent", "style"], "--latent style: "),
    ):
        done = bgt("export", saved, "--out", tmp_path / "out", "--to", "onnx", *choice)
        assert done.code == 2 and message in done.err
    odd = bgt("export", saved, "--out", tmp_path / "out", "--lang", "fr")
    assert odd.code == 2 and "--lang chooses the encoder of an ONNX file" in odd.err
    assert not list(tmp_path.iterdir())
