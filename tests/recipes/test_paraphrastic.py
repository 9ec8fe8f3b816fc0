"""AVG and GRAN as recipes: the paper's settings, and one beginning with the vectors of the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import bgt_core
from bgt_core import checkpoint, recipes, run
from bgt_core.contracts import Batch
from bgt_core.data.text import Tokenizer
from bgt_core.nets.pooling import GRAN
from bgt_core.recipes import Recipe

TEXTS = ["one cat", "two dogs sleep in the old house", ""]


@pytest.mark.parametrize(("name", "epochs"), [("avg", 20.0), ("gran", 3.0)])
def test_the_settings_are_the_paper_s(name: str, epochs: float) -> None:
    paper = {
        "objective.margin.margin": 0.4,
        "objective.margin.both_sides": True,
        "model.d_model": 300,
        "model.dropout": 0.0,
        "train.epochs": epochs,
        "train.learning_rate": 1e-3,
        "train.mega_batch": 0,
        "train.composition_l2": 0.0,
        "train.table_l2": 0.0,
        "train.weight_decay": 0.0,
        "train.scramble": 0.0,
        "data.columns": ("a:en", "b:en"),
    }
    arguments = recipes.build(name, {}).arguments or {}
    assert {setting: arguments[setting] for setting in paper} == paper


def open_gate(body: GRAN) -> None:
    """Its sigmoid is 1 in single precision, whatever is read."""
    with torch.no_grad():
        body.gate_words.weight.zero_()
        body.gate_states.weight.zero_()
        body.gate_words.bias.fill_(100.0)


def test_gran_begins_with_the_vectors_of_avg_and_with_its_gate_at_1_equals_it(tsv: Path, tmp_path: Path) -> None:
    sizes = {"d_model": 16, "vocab_size": 300, "valid_pairs": 20, "epochs": 1.0, "batch_tokens": 900}
    average = run.train("avg", [tsv], tmp_path / "avg", overrides=sizes, device="cpu")
    started = {"valid_pairs": 20, "epochs": 0.0}
    gated = run.train("gran", [tsv], tmp_path / "gran", init_from=average, overrides=started, device="cpu")
    assert (gated / "tokenizer.model").read_bytes() == (average / "tokenizer.model").read_bytes()
    avg, gran = (bgt_core.load(folder, "cpu", "fp32") for folder in (average, gated))
    (body,) = (part for part in gran.model.modules() if isinstance(part, GRAN))
    assert torch.equal(body.table.weight, avg.model.encoders["semantic"].body.table.weight)
    before = gran.embed(TEXTS, lang="en")
    open_gate(body)
    assert (before != avg.embed(TEXTS, lang="en")).any()
    assert np.array_equal(gran.embed(TEXTS, lang="en"), avg.embed(TEXTS, lang="en"))


def test_an_open_gate_learns_the_words_that_avg_learns(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch
) -> None:
    """Where the gate can't move, loss and gradient of the table are the average's, bit for bit."""
    losses, gradients = [], []
    for name in ("avg", "gran"):
        recipe = tiny(name)
        torch.manual_seed(0)
        model = recipe.build(tokenizer)
        body = model.encoders["semantic"].body
        if isinstance(body, GRAN):
            open_gate(body)
        loss = recipe.objective(model(batch), step=0)
        loss.total.backward()
        losses.append(loss.total)
        gradients.append(body.table.weight.grad)
    assert losses[0] > 0
    assert torch.equal(*losses) and torch.equal(*gradients)


def test_only_sizes_are_taken_from_another_checkpoint(saved: Path) -> None:
    """Of `saved`, a BGT, the sizes are taken that both have; no setting turns one body into the other."""
    arguments = run.inherited("gran", str(saved))
    assert arguments["model.d_model"] == checkpoint.read_config(saved)["arguments"]["model.d_model"]
    assert "model.body" not in arguments
