"""Models train, resume and embed with two columns of one language, with one column, and with a mix of corpora."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bgt_core
from bgt_core import checkpoint, training
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from bgt_core.errors import UsageError
from tests.runs import metrics

pytestmark = pytest.mark.slow

TRAIN: dict[str, Any] = {
    "data.vocab_size": 200, "data.min_tokens": 2, "data.valid_pairs": 20, "train.epochs": 1.5,
    "train.batch_tokens": 250, "train.micro_tokens": 150, "train.learning_rate": 1e-2, "train.valid_every": 10,
    "train.save_every": 3,
}  # fmt: skip
TRANSFORMER = {"d_model": 16, "encoder_layers": 1, "ffn_dim": 24, "heads": 2}
SIZES: dict[str, dict[str, Any]] = {
    "bgt-small": {"d_model": 16, "semantic_dim": 24, "language_dim": 6, "ffn_dim": 24, "heads": 2}, "bgt": TRANSFORMER,
    "bilingual-trans": TRANSFORMER, "english-ae": TRANSFORMER, "english-trans": TRANSFORMER,
    "sp": {"d_model": 16, "mega_batch": 3, "mega_batch_warmup": 2},
    "gran": {"d_model": 16, "mega_batch": 3, "mega_batch_warmup": 2, "composition_l2": 1e-3, "table_l2": 1e-3},
}  # fmt: skip
SIZES["vgvae"] = {"d_model": 16, "semantic_dim": 16, "syntactic_dim": 6, "hidden_dim": 24}
SIZES["vgvae"] |= {"mega_batch": 3, "mega_batch_warmup": 2, "mega_batch_start": 0.5, "train.valid_every": 4}

Files = Mapping[str, Path]


@pytest.fixture(scope="module")
def files(
    texts: dict[str, list[str]], write_rows: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Files:
    """Files of single sentences, translations, and paraphrases (the words in reverse order, then "!")."""
    folder, english = tmp_path_factory.mktemp("columns"), texts["en"]
    other = [" ".join(reversed(text.strip(".!?").split())) + "!" for text in english]
    return {
        "paraphrases": write_rows(folder / "paraphrases.tsv", zip(english[:150], other[:150], strict=True)),
        "mono": write_rows(folder / "mono.tsv", [(text,) for text in english[:150]]),
        "french": write_rows(folder / "en-fr.tsv", zip(english[150:300], texts["fr"][150:300], strict=True)),
        "german": write_rows(folder / "en-de.tsv", zip(english[250:400], texts["de"][250:400], strict=True)),
    }


def train_twice(recipe: str, data: list[str], out: Path, **options: Any) -> Path:
    """Train a run, and resume a copy of it from an earlier checkpoint. Both must end with the same weights."""
    overrides = {**TRAIN, **SIZES[recipe], **options.pop("overrides", {})}
    kept: list[Path] = []

    def keep(row: Mapping[str, object]) -> None:
        """Copy the run's folder when the first validation after a checkpoint is reported."""
        if row["kind"] == "valid" and not kept and checkpoint.steps_of(out):
            kept.append(Path(shutil.copytree(out, out.with_name("half"))))

    last = training.train(recipe, data, out, overrides=overrides, device="cpu", report=keep, **options)
    (half,) = kept
    assert 0 < checkpoint.load(half).config["step"] < checkpoint.load(last).config["step"]
    resumed = training.resume(half, device="cpu")
    assert resumed.name == last.name
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (resumed / name).read_bytes() == (last / name).read_bytes()
    return last


def check_vectors(folder: Path, langs: tuple[str, ...], latents: tuple[str, ...]) -> None:
    model = bgt_core.load(folder, "cpu", "fp32")
    assert (tuple(model.langs), tuple(model.latents)) == (langs, latents)
    for lang in langs:
        for latent in latents:
            vectors = model.embed(["the mother works.", "it is late!", ""], lang=lang, latent=latent)
            assert np.isfinite(vectors).all() and (vectors[0] != vectors[1]).any()


def test_bgt_learns_from_two_columns_of_one_language(files: Files, tmp_path: Path) -> None:
    folder = train_twice("bgt-small", [str(files["paraphrases"])], tmp_path / "run", columns=["a:en", "b:en"])
    check_vectors(folder, ("en",), ("semantic", LANGUAGE))
    names = {f"{role}/{column}" for role in ("reconstruct", "translate", "kl") for column in "ab"}
    row = metrics(folder)[-1]
    assert names | {"retrieval/a-b", "retrieval/b-a", "kl/semantic", "elbo"} <= row.keys()
    assert not any(name.endswith("/en") for name in row)
    model = bgt_core.load(folder, "cpu")
    assert bgt_core.generate(model, ["the mother works."], ["it is late!"], lang="en")[0]


def test_an_autoencoder_needs_one_column(files: Files, tmp_path: Path) -> None:
    folder = train_twice("english-ae", [str(files["mono"])], tmp_path / "run", columns=["en"])
    check_vectors(folder, ("en",), ("semantic",))
    row = metrics(folder)[-1]
    assert "reconstruct/en" in row and not any(name.startswith(("translate", "retrieval")) for name in row)


def test_a_margin_learns_from_two_columns_of_one_language(files: Files, tmp_path: Path) -> None:
    """A resumed run must restore the initial token vectors, because regularisation keeps token vectors near them."""
    folder = train_twice("gran", [str(files["paraphrases"])], tmp_path / "run", columns=["a:en", "b:en"])
    check_vectors(folder, ("en",), ("semantic",))
    first, last = metrics(folder)[0], metrics(folder)[-1]
    assert metrics(folder, "train")[-1]["penalty/tables"] > 0
    assert last["retrieval/a-b"] > first["retrieval/a-b"] or last["retrieval/a-b"] > 0.9


@pytest.mark.parametrize("decoder", ["bag-of-words", "lstm"])
def test_meaning_and_syntax_are_learnt_from_two_columns_of_one_language(
    decoder: str, files: Files, tmp_path: Path
) -> None:
    """Train and resume a model with semantic and syntactic latents; embed; generate text if the decoder is an LSTM."""
    overrides = {"model.decoder": decoder, "model.syntactic_body": "lstm" if decoder == "lstm" else "average"}
    data = [str(files["paraphrases"])]
    folder = train_twice("vgvae", data, tmp_path / "run", columns=["a:en", "b:en"], overrides=overrides)
    check_vectors(folder, ("en",), ("semantic", "syntactic"))
    first, last = metrics(folder)[0], metrics(folder)[-1]
    terms = {f"{role}/{column}" for role in ("reconstruct", "paraphrase", "position") for column in "ab"}
    terms |= {
        f"{what}/{latent}/{column}" for what in ("kl", "active") for latent in (SEMANTIC, SYNTACTIC) for column in "ab"
    }
    assert {*terms, "elbo", "retrieval/a-b"} <= last.keys()
    assert last["paraphrase/a"] < first["paraphrase/a"] and last["position/b"] < first["position/b"]
    model = bgt_core.load(folder, "cpu", "fp32")
    assert (model.model.writes == ("en",)) == (decoder == "lstm")
    if decoder == "lstm":
        assert bgt_core.generate(model, ["the mother works."], ["it is late!"], lang="en")[0]
        return
    with pytest.raises(UsageError, match=r"a bag of words.* can't generate sentences; .* model\.decoder=lstm"):
        bgt_core.generate(model, ["the mother works."], ["it is late!"], lang="en")


def test_a_corpus_of_one_column_may_be_mixed_in(files: Files, tmp_path: Path) -> None:
    """Sentences without a translation are only reconstructed."""
    data = [f"en-fr={files['french']}", f"en={files['mono']}"]
    folder = train_twice("bgt-small", data, tmp_path / "run")
    check_vectors(folder, ("en", "fr"), ("semantic", LANGUAGE))
    assert {"reconstruct/en", "translate/fr", "retrieval/en-fr"} <= metrics(folder)[-1].keys()


@pytest.mark.parametrize(
    ("recipe", "data", "message"),
    [
        ("sp", ["en-fr={french}", "en={mono}"], "columns en: sp can't learn"),
        ("english-trans", ["en-fr={french}", "en={mono}"], "columns en: english-trans can't learn"),
        ("english-ae", ["en-fr={french}", "fr={mono}"], "each corpus needs one of the source columns en"),
    ],
)
def test_columns_without_a_loss_are_refused_before_training(
    recipe: str, data: list[str], message: str, files: Files, tmp_path: Path
) -> None:
    sources = [source.format(**files) for source in data]
    with pytest.raises(UsageError, match=message):
        training.train(recipe, sources, tmp_path / "run", overrides=TRAIN | SIZES[recipe], device="cpu")
    assert not (tmp_path / "run").exists()
