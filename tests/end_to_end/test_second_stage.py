"""A second stage: the parts taken from a checkpoint, the frozen parameters, and a classifier trained on top."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
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
from bgt_core.recipes.bgt import PairClassifier

COLUMNS = ("a:en", "b:en", "gold:label")
SETTINGS: dict[str, Any] = {
    "classes": 2, "data.valid_pairs": 60, "train.epochs": 6.0, "train.batch_tokens": 600, "train.micro_tokens": 2_000,
    "train.learning_rate": 0.05, "train.valid_every": 20, "train.save_every": 10,
}  # fmt: skip


@pytest.fixture(scope="module")
def labelled(grammar: list, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of English sentences: a sentence and itself in upper case (1), or the next sentence (0)."""
    english = [pair.texts["en"] for pair in grammar]
    rows = [
        f"{text}\t{text.upper() if row % 2 else english[(row + 1) % len(english)]}\t{row % 2}\n"
        for row, text in enumerate(english)
    ]
    path = tmp_path_factory.mktemp("labelled") / "labelled.tsv"
    path.write_text("".join(rows), encoding="utf-8")
    return path


def second_stage(init_from: Path, data: Path, out: Path, **overrides: Any) -> Path:
    settings = SETTINGS | {name.replace("__", "."): value for name, value in overrides.items()}
    return training.train(
        "pair-classifier", [data], out, init_from=init_from, columns=COLUMNS, overrides=settings, device="cpu"
    )


@pytest.fixture(scope="module")
def trained(saved: Path, labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run on an untrained model, whose encoders average token vectors."""
    return second_stage(saved, labelled, tmp_path_factory.mktemp("second") / "run")


def tensors(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


def encoders(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value for name, value in weights.items() if name.startswith("encoders.")}


def same(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(value, right[name]) for name, value in left.items())


def valid_rows(folder: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder.parent / "metrics.jsonl").read_text("utf-8").splitlines()]
    return [row for row in rows if row["kind"] == "valid"]


def test_it_takes_sizes_tokenizer_and_weights_from_the_checkpoint(trained: Path, saved: Path) -> None:
    config = checkpoint.read_config(trained)
    before = checkpoint.read_config(saved)["arguments"]
    sizes = {name: value for name, value in before.items() if name.startswith("model.")}
    assert {
        name.replace("model.base.", "model."): config["arguments"][name] for name in config["arguments"]
    }.items() >= sizes.items()
    assert (config["arguments"]["base"], config["arguments"]["init_from"]) == ("bgt-small", str(saved))
    assert (trained / "tokenizer.model").read_bytes() == (saved / "tokenizer.model").read_bytes()
    assert (trained.parent / "tokenizer.model").read_bytes() == (saved / "tokenizer.model").read_bytes()


def test_what_is_frozen_is_the_same_before_and_after_bit_for_bit(trained: Path, saved: Path) -> None:
    english = {name: value for name, value in encoders(tensors(saved)).items() if not name.startswith("encoders.fr")}
    assert same(encoders(tensors(trained)), english)
    assert not any("encoders" in name for name in load_file(trained / "optimizer.safetensors"))
    loaded = bgt_core.load(trained, "cpu", "fp32")
    base = bgt_core.load(saved, "cpu", "fp32")
    for latent in base.latents:
        vectors = (model.embed(["one cat", "two dogs sleep"], lang="en", latent=latent) for model in (base, loaded))
        assert np.array_equal(*vectors)


def test_the_classifier_learns_a_task_that_can_be_learnt(trained: Path) -> None:
    first, last = (valid_rows(trained)[i] for i in (0, -1))
    assert last["accuracy/label"] > 0.95
    assert last["label"] < first["label"]
    assert last["label"] < np.log(2) / 2
    assert "elbo" not in last and not any(name.startswith("kl/") for name in last)
    loaded = checkpoint.load(trained)
    assert isinstance(loaded.model, PairClassifier)


def test_a_resumed_run_ends_in_the_same_weights(trained: Path, tmp_path: Path) -> None:
    """Frozen parameters have no optimizer moments to restore."""
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
def test_what_does_not_fit_is_one_clear_line_and_leaves_nothing(
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
def test_a_model_is_trained_on_from_its_checkpoint(saved: Path, tsv: Path, tmp_path: Path) -> None:
    """Train the same recipe on other data: sizes come from the checkpoint, training settings do not."""
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
