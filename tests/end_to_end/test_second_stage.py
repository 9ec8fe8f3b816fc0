"""A second training stage copies a checkpoint's weights, does not change frozen parameters, and trains a classifier."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import bgt_core
from bgt_core import checkpoint, training
from bgt_core.errors import DataError, UsageError
from bgt_core.recipes.var_siamese import PairClassifier
from tests.runs import metrics

COLUMNS = ("a:en", "b:en", "gold:label")
SETTINGS: dict[str, Any] = {
    "classes": 2, "data.valid_pairs": 60, "train.epochs": 6.0, "train.batch_tokens": 600, "train.micro_tokens": 2_000,
    "train.learning_rate": 0.05, "train.valid_every": 20, "train.save_every": 10,
}  # fmt: skip


@pytest.fixture(scope="module")
def labelled(grammar: list, write_rows: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of English pairs: a sentence and its upper-cased copy (label 1), or the next sentence (label 0)."""
    english = [pair.texts["en"] for pair in grammar]
    following = [*english[1:], english[0]]
    others = [text.upper() if row % 2 else following[row] for row, text in enumerate(english)]
    rows = [(*pair, row % 2) for row, pair in enumerate(zip(english, others, strict=True))]
    return write_rows(tmp_path_factory.mktemp("labelled") / "labelled.tsv", rows)


@pytest.fixture(scope="module")
def trained(saved: Path, labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a second stage that starts from the untrained model `saved` and is not interrupted."""
    out, settings = tmp_path_factory.mktemp("second") / "run", {"columns": COLUMNS, "overrides": SETTINGS}
    return training.train("pair-classifier", [labelled], out, init_from=saved, device="cpu", **settings)


def tensors(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


def test_sizes_and_tokenizer_are_those_of_the_checkpoint(trained: Path, saved: Path) -> None:
    config = checkpoint.read_config(trained)
    before = checkpoint.read_config(saved)["arguments"]
    sizes = {name: value for name, value in before.items() if name.startswith("model.")}
    assert {
        name.replace("model.base.", "model."): config["arguments"][name] for name in config["arguments"]
    }.items() >= sizes.items()
    assert (config["arguments"]["base"], config["arguments"]["init_from"]) == ("bgt-small", str(saved))
    assert (trained / "tokenizer.model").read_bytes() == (saved / "tokenizer.model").read_bytes()
    assert (trained.parent / "tokenizer.model").read_bytes() == (saved / "tokenizer.model").read_bytes()


def test_frozen_parameters_do_not_change(trained: Path, saved: Path) -> None:
    before, after = tensors(saved), tensors(trained)
    frozen = [name for name in before if name.startswith(("encoders.semantic", "encoders.en"))]
    assert frozen == [name for name in after if name.startswith("encoders.")]
    assert all(torch.equal(before[name], after[name]) for name in frozen)
    assert not any("encoders" in name for name in load_file(trained / "optimizer.safetensors"))
    loaded = bgt_core.load(trained, "cpu", "fp32")
    base = bgt_core.load(saved, "cpu", "fp32")
    for latent in base.latents:
        vectors = (model.embed(["one cat", "two dogs sleep"], lang="en", latent=latent) for model in (base, loaded))
        assert np.array_equal(*vectors)


def test_the_classifier_learns_an_easy_task(trained: Path) -> None:
    first, *_, last = metrics(trained)
    assert last["accuracy/label"] > 0.95
    assert last["label"] < first["label"]
    assert last["label"] < np.log(2) / 2
    assert "elbo" not in last and not any(name.startswith("kl/") for name in last)
    assert isinstance(checkpoint.load(trained).model, PairClassifier)


def test_a_resumed_run_ends_in_the_same_weights(trained: Path, tmp_path: Path) -> None:
    """Frozen parameters have no optimiser state, so resuming must not try to restore one."""
    out = Path(shutil.copytree(trained.parent, tmp_path / "run"))
    first, last = checkpoint.steps_of(out)
    shutil.rmtree(last)
    assert checkpoint.load(first).config["step"] > 0
    assert training.resume(out, device="cpu") == last
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (last / name).read_bytes() == (trained / name).read_bytes()


LINE, LABELS = "a sentence here\tand one there\t1\n", list(COLUMNS)


@pytest.mark.parametrize(
    ("overrides", "columns", "text", "message"),
    [
        ({"freeze": ["encoder"]}, LABELS, LINE, "freeze 'encoder': no parameter name starts with this; the model has "),
        ({"freeze": ["encoders", "classifier"]}, LABELS, LINE, "nothing is left to train"),
        ({"model.base.semantic_dim": 13}, LABELS, LINE, r"model\.safetensors: parameter '.*' has shape .*12.*13"),
        ({"classes": 1}, LABELS, LINE, "classes 1 must be at least 2"),
        ({"base": "sp"}, LABELS, LINE, "no setting"),
        ({}, ["a:en", "b:en"], "a sentence here\tand one there\n", "needs two columns and labels"),
        ({}, ["a:en", "gold:label"], "a sentence here\t1\n", "needs two columns and labels"),
        ({}, LABELS, LINE.replace("1", "yes"), "the gold is not a number"),
        ({}, LABELS, LINE.replace("1", "7"), "label 7 is not one of the 2"),
        ({}, LABELS, LINE.replace("1", "0.5"), "label 0.5 is not one of the 2"),
    ],
)
def test_unsuitable_settings_and_rows_are_refused_in_one_line(
    overrides: dict[str, Any], columns: list[str], text: str, message: str, saved: Path, tmp_path: Path
) -> None:
    rows, out = tmp_path / "rows.tsv", tmp_path / "run"
    rows.write_text("".join(f"number {row} is {text}" for row in range(100)), encoding="utf-8")
    options: dict[str, Any] = {"init_from": saved, "columns": columns, "overrides": SETTINGS | overrides}
    with pytest.raises((UsageError, DataError), match=message) as caught:
        training.train("pair-classifier", [rows], out, device="cpu", **options)
    assert "\n" not in str(caught.value)
    assert not out.exists()


@pytest.mark.slow
def test_a_model_is_trained_further_from_its_checkpoint(saved: Path, tsv: Path, tmp_path: Path) -> None:
    """Training on other data can start from a checkpoint. It keeps the model's sizes, but not the training settings."""
    settings = {"train.epochs": 0.2, "data.valid_pairs": 20, "freeze": ["decoders", "translators"]}
    folder = training.train("bgt-small", [tsv], tmp_path / "run", init_from=saved, overrides=settings, device="cpu")
    config, before = checkpoint.read_config(folder), checkpoint.read_config(saved)
    assert config["arguments"]["model.d_model"] == before["arguments"]["model.d_model"] == 16
    assert config["arguments"]["train.learning_rate"] == 3e-3 != before["arguments"]["train.learning_rate"]
    assert config["arguments"]["data.vocab_size"] == 400
    start, end = tensors(saved), tensors(folder)
    assert start.keys() == end.keys()
    moved = {name for name, value in start.items() if not torch.equal(value, end[name])}
    assert any(name.startswith("encoders.semantic") for name in moved)
    assert not any(name.startswith("decoders.") for name in moved)
