"""Models of sentence-transformers can be opened by this toolkit, and its models by sentence-transformers. The vectors
are equal except for rounding, which differs because the two libraries form different batches of sentences."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("sentence_transformers")
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from transformers import BertModel, BertTokenizerFast

import bgt_core
from bgt_core.encoders import open_encoder, publish
from bgt_core.encoders.sentence_transformers import BGTModule, load_sentence_transformer
from bgt_core.errors import BgtError
from bgt_core.splitting import parts
from tests.close import assert_close

TEXTS = ["The dog sleeps.", "", "Il fait beau.", "Where is the station? " * 9]
CHOICES = [("semantic", "en"), ("language", "fr")]


def test_a_model_of_theirs_as_our_encoder(bert: Path, tmp_path: Path) -> None:
    encoder = open_encoder(f"sentence-transformers:{bert / 'st'}", device="cpu")
    texts = ["the dog sleeps.", "cats", "the cat sleeps, the dog sleeps"]
    model, tokenizer = BertModel.from_pretrained(bert / "plain"), BertTokenizerFast.from_pretrained(bert / "plain")
    with torch.no_grad():  # the expected vectors: mean pooling, one sentence at a time
        expected = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0) for text in texts]
    assert_close(encoder.embed(texts, lang="en"), torch.stack(expected))
    assert encoder.embed([], lang="fr").shape == (0, 8)
    lengths = ["the " * 30, "the " * 31, "the cat"]  # the model reads 32 tokens, of which two are special
    assert encoder.count_truncated(lengths, lang="en") == 1
    again = open_encoder(f"sentence-transformers:{bert / 'st'}", device="cpu")
    assert encoder.fingerprint == again.fingerprint  # embedding text must not change the fingerprint
    assert encoder.fingerprint != open_encoder(f"sentence-transformers:{bert / 'st'}", precision="bf16").fingerprint
    static = StaticEmbedding(BertTokenizerFast.from_pretrained(bert / "plain"), embedding_dim=8)
    SentenceTransformer(modules=[static], device="cpu").save(str(tmp_path))
    encoder = open_encoder(f"sentence-transformers:{tmp_path}", device="cpu")
    assert len(encoder.fingerprint) == 64 and not encoder.count_truncated(lengths, lang="en")
    with pytest.raises(BgtError, match="can't load it") as error:
        open_encoder(f"sentence-transformers:{bert}", device="cpu")
    assert error.value.exit_code == 3


@pytest.mark.parametrize(("latent", "lang"), CHOICES)
def test_ours_gives_the_embedder_s_vectors(saved: Path, latent: str, lang: str) -> None:
    expected = bgt_core.load(saved, "cpu", "fp32").embed(TEXTS, lang=lang, latent=latent)
    model = load_sentence_transformer(saved, device="cpu")
    for batch_size in (32, 1):
        assert_close(model.encode(TEXTS, latent=latent, lang=lang, batch_size=batch_size), expected)


def test_defaults_are_the_semantic_latent_and_the_cosine(saved: Path) -> None:
    ours, model = bgt_core.load(saved, "cpu", "fp32"), load_sentence_transformer(saved, device="cpu")
    vectors = model.encode(TEXTS)
    assert_close(vectors, ours.embed(TEXTS, lang="en"))
    assert model.get_embedding_dimension() == vectors.shape[1]
    pairs = model.similarity_pairwise(vectors[:1], vectors[2:3])
    assert_close(pairs, ours.similarity_pairwise(vectors[:1], vectors[2:3]))
    with pytest.raises(BgtError, match=r"latent style: "):
        model.encode(TEXTS, latent="style")
    with pytest.raises(BgtError, match=r"lang de: "):
        model.encode(TEXTS, lang="de")
    with pytest.raises(ValueError, match="does not use"):
        model.encode(TEXTS, style="plain")


def test_a_saved_model_opens_in_three_ways_and_as_a_checkpoint(saved: Path, tmp_path: Path) -> None:
    model = load_sentence_transformer(saved, device="cpu")
    expected = model.encode(TEXTS, latent="language", lang="fr")
    folder = tmp_path / "st"
    model.save(str(folder))
    assert (folder / "config.json").read_bytes() == (saved / "config.json").read_bytes()
    for opened in (
        load_sentence_transformer(folder, device="cpu"),
        SentenceTransformer(modules=[BGTModule.load(str(folder))], device="cpu"),
        SentenceTransformer(str(folder), trust_remote_code=True, device="cpu"),
    ):
        np.testing.assert_array_equal(opened.encode(TEXTS, latent="language", lang="fr"), expected)
    ours = bgt_core.load(folder, "cpu", "fp32")
    assert_close(ours.embed(TEXTS, lang="fr", latent="language"), expected)


@pytest.mark.parametrize("kind", ["planted.Module", "bgt_core_planted.Module"])
def test_code_in_a_folder_is_never_run(saved: Path, tmp_path: Path, kind: str | None) -> None:
    folder = tmp_path / "st"
    publish.export(saved, folder, to="sentence-transformers")
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([*modules, {"idx": 1, "name": "1", "path": "", "type": kind}]))
    for name in ("planted", "bgt_core_planted"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(BgtError, match="can't load it"):
        open_encoder(f"sentence-transformers:{folder}", device="cpu")
    assert not (tmp_path / "ran").exists()


def test_a_model_trained_in_that_library_is_saved_without_old_figures(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "m")
    config = json.loads((saved / "config.json").read_text("utf-8"))
    (tmp_path / "m" / "config.json").write_text(json.dumps({**config, "card": {"scores": {}}}), "utf-8")
    model = load_sentence_transformer(tmp_path / "m", device="cpu").train()
    before = model.encode(TEXTS)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    features = model.preprocess(TEXTS)
    model(features)["sentence_embedding"].square().sum().backward()
    optimiser.step()
    model.save(str(tmp_path / "st"), create_model_card=False)
    after = load_sentence_transformer(tmp_path / "st", device="cpu").encode(TEXTS)
    np.testing.assert_array_equal(after, model.encode(TEXTS))
    assert not np.allclose(after, before)
    assert "card" not in json.loads((tmp_path / "st" / "config.json").read_text("utf-8"))


def test_the_command_exports_weights_in_16_bits_and_figures_unchanged(
    saved: Path, tmp_path: Path, bgt: Callable[..., tuple]
) -> None:
    out = tmp_path / "st"
    assert bgt("export", bgt_core.PRETRAINED, "--out", out, "--to", "sentence-transformers").code == 0
    shipped = bgt_core.load(bgt_core.PRETRAINED, "cpu", "fp32")
    vectors = load_sentence_transformer(out, device="cpu").encode(TEXTS, latent="language", lang="fr")
    assert_close(vectors, shipped.embed(TEXTS, lang="fr", latent="language"))
    for name in ("config.json", "model.safetensors"):
        assert (out / name).read_bytes() == (bgt_core.PRETRAINED / name).read_bytes()
    readme = (out / "README.md").read_text("utf-8")
    card = json.loads((bgt_core.PRETRAINED / "config.json").read_text("utf-8"))["card"]
    score = card["scores"]["STS 2012-2015, Pearson x 100"]["semantic"]
    assert "load_sentence_transformer" in readme and f"{score:.2f}" in readme and str(tmp_path) not in readme
    again = bgt("export", saved, "--out", out, "--to", "sentence-transformers")
    assert again.code == 2 and "exists already" in again.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["st"]
    odd = bgt("export", saved, "--out", tmp_path / "x", "--to", "sentence-transformers", "--half")
    assert odd.code == 2 and not (tmp_path / "x").exists()


def split_of(bert: Path, out: Path, method: str) -> Path:
    """Fit a split of the vectors of `bert` on 60 made-up pairs of sentences, save the split, and return its folder."""
    words = ["the", "dog", "cat", "sleeps"]
    english = [" ".join(words[number // 4**place % 4] for place in range(3)) for number in range(60)]
    encoder = open_encoder(f"sentence-transformers:{bert / 'st'}", device="cpu")
    split = bgt_core.split(encoder, [(["en", "fr"], [english, [f"{text}." for text in english]])], method=method)
    parts.save(out, parts.StoredSplit(split, f"sentence-transformers:{bert / 'st'}", encoder.fingerprint))
    return out


@pytest.mark.parametrize("method", ["bgt", "shift"])
def test_a_split_is_exported_as_a_dense_module(bert: Path, tmp_path: Path, bgt: Callable, method: str) -> None:
    folder = split_of(bert, tmp_path / "split", method)
    done = bgt("export", f"split:{folder}", *"--to sentence-transformers --lang fr --out".split(), tmp_path / "st")
    assert done.code == 0, done.err
    theirs = SentenceTransformer(str(tmp_path / "st"), device="cpu").encode(["the dog.", "cats"])
    assert_close(theirs, open_encoder(f"split:{folder}", device="cpu").embed(["the dog.", "cats"], lang="fr"))
    assert "# A split of" in (tmp_path / "st" / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("method", "options", "code", "message"),
    [
        ("bgt", "--to sentence-transformers", 2, "--lang is needed"),
        ("bgt", "--to sentence-transformers --lang de", 2, "--lang de: the split supports en, fr"),
        ("bgt", "--to sentence-transformers --lang fr --latent language", 2, "--latent language: only the semantic"),
        ("bgt", "--to onnx --lang fr", 2, "--to onnx: a split can only be exported to sentence-transformers"),
        ("neural", "--to sentence-transformers --lang fr", 2, "neural has a hidden layer, which a Dense module"),
    ],
)
def test_a_split_that_a_dense_module_can_not_compute_is_an_error(
    bert: Path, tmp_path: Path, bgt: Callable, method: str, options: str, code: int, message: str
) -> None:
    folder = split_of(bert, tmp_path / "split", method)
    done = bgt("export", f"split:{folder}", *options.split(), "--out", tmp_path / "st")
    assert done.code == code and message in done.err and done.err.count("\n") == 1, done.err
    assert not (tmp_path / "st").exists()
