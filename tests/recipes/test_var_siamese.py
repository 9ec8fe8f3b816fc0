"""Test the variational siamese network: the first training stage learns from the right rows; the second stage works."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import bgt_core
from bgt_core import recipes, training
from bgt_core.contracts import SEMANTIC, Batch
from bgt_core.data.text import Tokenizer
from bgt_core.encoders.distances import DuplicateEncoder
from bgt_core.errors import UsageError
from bgt_core.posterior import READOUTS, Gaussian
from bgt_core.recipes import Recipe
from bgt_core.recipes.var_siamese import VarSiamese
from tests.close import FLOAT32, assert_close
from tests.runs import metrics

Tiny = Callable[..., Recipe]
SIZES: dict[str, Any] = {"model.d_model": 16, "model.hidden_dim": 12, "model.semantic_dim": 8, "data.vocab_size": 300}
SETTINGS: dict[str, Any] = {
    "data.valid_pairs": 60, "train.batch_tokens": 600, "train.micro_tokens": 2_000, "train.learning_rate": 0.01,
    "train.valid_every": 20,
}  # fmt: skip


@pytest.fixture
def labelled_batch(batch: Batch) -> Batch:
    """A batch of six pairs, of which 1, 3 and 4 are labelled as paraphrases."""
    return replace(batch, labels=torch.tensor([0.0, 1.0, 0.0, 1.0, 1.0, 0.0]))


def test_a_duplicate_is_written_from_the_other_question_and_from_nothing_else(
    tiny: Tiny, tokenizer: Tokenizer, batch: Batch, labelled_batch: Batch
) -> None:
    model = tiny("var-siamese-reformulate").build(tokenizer).eval()
    every, some = model(batch, READOUTS["mean"]), model(labelled_batch, READOUTS["mean"])
    means = {column: posterior.mean for column, posterior in some.semantic.items()}
    for own, other in (("en", "fr"), ("fr", "en")):
        by_name = {prediction.name: prediction for prediction in some.predictions}
        assert torch.equal(by_name[f"reconstruct/{own}"].latent, means[own])
        assert torch.equal(by_name[f"paraphrase/{own}"].latent, means[other][[1, 3, 4]])
        of_all = {prediction.name: prediction for prediction in every.predictions}[f"paraphrase/{own}"]
        assert_close(by_name[f"paraphrase/{own}"].nll()[1], of_all.nll()[1][[1, 3, 4]])
        assert isinstance(some.posteriors[SEMANTIC][f"semantic/{own}"], Gaussian)


@pytest.fixture(scope="module")
def questions(grammar: list, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of labelled pairs: a sentence with its copy plus a word (label 1), or with the next sentence (label 0)."""
    english = [pair.texts["en"] for pair in grammar]
    rows = [
        f"{row % 2}\t{text}\t{'so ' + text if row % 2 else english[(row + 1) % len(english)]}\n"
        for row, text in enumerate(english)
    ]
    path = tmp_path_factory.mktemp("questions") / "questions.tsv"
    path.write_text("".join(rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def first_stage(questions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = SIZES | SETTINGS | {"train.epochs": 2.0, "train.valid_every": 5}
    out = tmp_path_factory.mktemp("first") / "run"
    return training.train("var-siamese-reformulate", [questions], out, overrides=settings, device="cpu")


@pytest.fixture(scope="module")
def siamese(first_stage: Path, questions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out, settings = tmp_path_factory.mktemp("second") / "run", {"model.hidden_dim": 24, "train.epochs": 14.0}
    overrides = SETTINGS | settings
    return training.train("var-siamese", [questions], out, init_from=first_stage, overrides=overrides, device="cpu")


def test_the_first_stage_learns_to_repeat_and_to_reformulate(first_stage: Path) -> None:
    first, *_, last = metrics(first_stage)
    for term in ("reconstruct/a", "reconstruct/b", "paraphrase/a", "paraphrase/b"):
        assert last[term] < 0.95 * first[term]
    # only half of the rows have a paraphrase; the paraphrase loss, their mean, is still near the reconstruction loss
    assert 0.8 < first["paraphrase/a"] / first["reconstruct/a"] < 1.25


def test_the_second_stage_has_no_decoders(siamese: Path) -> None:
    names = {name.split(".")[0] for name in load_file(siamese / "model.safetensors")}
    assert names == {"encoders", "perceptron", "classifier"}


def test_the_second_stage_learns_to_classify(siamese: Path, questions: Path) -> None:
    first, *_, last = metrics(siamese)
    assert last["accuracy/label"] > 0.9
    assert last["label"] < first["label"]
    rows = [line.split("\t") for line in questions.read_text("utf-8").splitlines()]
    classifier = DuplicateEncoder(bgt_core.load(siamese, "cpu", "fp32"))
    left, right = (classifier.embed([row[side] for row in rows], lang="en") for side in (1, 2))
    probability = classifier.similarity_pairwise(left, right)
    labels = np.array([row[0] == "1" for row in rows])
    assert ((probability > classifier.threshold) == labels).mean() > 0.9
    assert_close(classifier.similarity_pairwise(right, left), probability)
    table = classifier.similarity(left[:7], right[:5])
    assert table.shape == (7, 5)
    assert_close(np.diag(table), probability[:5])
    assert_close(table[6, 2], classifier.similarity_pairwise(left[6:7], right[2:3])[0], FLOAT32)
    assert classifier.similarity(left[:0], right).shape == (0, len(rows))


def test_the_loss_is_that_of_a_perceptron_on_w2_and_the_product(tokenizer: Tokenizer, labelled_batch: Batch) -> None:
    recipe = recipes.configure(
        "var-siamese", {f"model.base.{name.split('.')[1]}": 6 for name in SIZES if "model" in name}
    )
    torch.manual_seed(0)
    model = recipe.build(tokenizer).eval()
    assert isinstance(model, VarSiamese)
    out = model(labelled_batch)
    p, q = out.semantic.values()
    spread = torch.exp(p.log_variance / 2) - torch.exp(q.log_variance / 2)
    read = torch.cat([(p.mean - q.mean) ** 2 + spread**2, p.mean * q.mean], 1)  # (B, 12)
    weights = dict(model.named_parameters())
    hidden = torch.relu(read @ weights["perceptron.first.weight"].T + weights["perceptron.first.bias"])
    logits = hidden @ weights["classifier.weight"].T + weights["classifier.bias"]
    assert_close(out.predictions[0].logits, logits)
    labels = labelled_batch.labels.long()
    expected = -logits.log_softmax(1)[torch.arange(6), labels].sum()
    assert_close(recipe.objective(out, 0).total, expected)
    assert_close(model.duplicate_probability(p, q), logits.double().softmax(1)[:, 1], FLOAT32)
    assert out.posteriors == {}  # without a prior, there is no KL term


@pytest.mark.parametrize("measure", ["w2", "mahalanobis", "jensen-shannon", "euclidean", "cosine"])
def test_every_row_of_the_ablation_is_a_setting(measure: str, tokenizer: Tokenizer, labelled_batch: Batch) -> None:
    small = {f"model.base.{name}": 6 for name in ("d_model", "hidden_dim", "semantic_dim")} | {"model.hidden_dim": 5}
    recipe = recipes.configure("var-siamese", small | {"model.features": [measure]})
    torch.manual_seed(0)
    model = recipe.build(tokenizer)
    assert model.perceptron.first.in_features == 6
    recipe.objective(model(labelled_batch), 0).total.backward()
    for name, parameter in model.named_parameters():
        if measure in ("euclidean", "cosine") and "log_variance" in name:  # these measures compare only the means
            assert parameter.grad is None
        else:
            assert parameter.grad is not None and parameter.grad.isfinite().all()


def test_unsuitable_features_models_and_batches_are_refused(
    tokenizer: Tokenizer, batch: Batch, first_stage: Path
) -> None:
    with pytest.raises(UsageError, match="needs a duplicate classifier"):
        DuplicateEncoder(bgt_core.load(first_stage, "cpu", "fp32"))
    with pytest.raises(UsageError, match=r"'hadamar' is not a measure.*Did you mean 'hadamard'"):
        recipes.configure("var-siamese", {"model.features": ["w2", "hadamar"]})
    with pytest.raises(UsageError, match="choose one or more of w2"):
        recipes.configure("var-siamese", {"model.features": []})
    of_points = recipes.configure("var-siamese", {"base": "sp", "model.base.d_model": 8}).build(tokenizer)
    with pytest.raises(UsageError, match="compares Gaussian posteriors"):
        of_points(replace(batch, labels=torch.zeros(6)))
    with pytest.raises(UsageError, match="two columns and labels"):
        of_points(batch)
