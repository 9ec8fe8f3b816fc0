"""The penalties on parameters, by hand; what they add to an update; where tables are held to after a restart."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from bgt_core import checkpoint, run
from bgt_core.contracts import Batch
from bgt_core.data.batching import StepBatch
from bgt_core.data.text import Tokenizer
from bgt_core.errors import NotFound, UsageError
from bgt_core.recipes import Recipe
from bgt_core.training.config import TrainConfig
from bgt_core.training.loop import Trainer, train_step
from bgt_core.training.penalty import Penalty, piece_tables
from bgt_core.training.workers import SINGLE_PROCESS
from tests.close import assert_close

TABLE = "encoders.semantic.body.table.weight"
Tiny = Callable[..., Recipe]


class TwoParts(nn.Module):
    """A table that two names share, and a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(2, 2)
        self.same = self.table
        self.layer = nn.Linear(2, 1)
        with torch.no_grad():
            self.table.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
            self.layer.weight.copy_(torch.tensor([[3.0, -1.0]]))
            self.layer.bias.fill_(2.0)


def test_both_by_hand() -> None:
    model, config = TwoParts(), TrainConfig(composition_l2=0.5, table_l2=0.1)
    penalty = Penalty.of(model, config, {"table.weight": torch.tensor([[1.0, 0.0], [0.0, 4.0]])})
    assert penalty is not None
    terms = penalty.terms()
    assert list(terms) == ["penalty/composition", "penalty/tables"]
    assert terms["penalty/composition"].item() == pytest.approx(0.5 / 2 * (9 + 1 + 4))
    assert terms["penalty/tables"].item() == pytest.approx(0.1 / 2 * (4 + 9))
    sum(terms.values()).backward()
    assert_close(model.layer.weight.grad, 0.5 * torch.tensor([[3.0, -1.0]]))
    assert_close(model.layer.bias.grad, torch.tensor([1.0]))
    assert_close(model.table.weight.grad, 0.1 * torch.tensor([[0.0, 2.0], [3.0, 0.0]]))


def test_what_has_no_weight_costs_nothing() -> None:
    model = TwoParts()
    assert Penalty.of(model, TrainConfig(), {}) is None
    penalty = Penalty.of(model, TrainConfig(composition_l2=0.5), {})
    assert penalty is not None and list(penalty.terms()) == ["penalty/composition"]
    assert list(piece_tables(model)) == ["table.weight"]


@pytest.mark.parametrize("name", ["composition_l2", "table_l2"])
def test_a_negative_weight_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} -0.1 must not be negative"):
        TrainConfig(**{name: -0.1})


def part(batch: Batch, rows: slice) -> Batch:
    """Some rows of a batch."""
    sides = {name: type(side).of(side.ids[rows], side.mask[rows], side.lang) for name, side in batch.sides.items()}
    return Batch(sides, batch.anchor)


@pytest.mark.parametrize("cut", [[slice(0, 6)], [slice(0, 1), slice(1, 6)]])
def test_an_update_pays_once_however_it_is_cut(
    cut: list[slice], tiny: Tiny, tokenizer: Tokenizer, batch: Batch
) -> None:
    """Its step is the loss's gradient, over all rows, and lambda_c W_c or lambda_w (W - W_start)."""
    recipe = tiny("gran")
    weights = TrainConfig(composition_l2=0.3, table_l2=0.2, weight_decay=0.0, clip=1e9, precision="fp32")
    batches = {number: part(batch, rows) for number, rows in enumerate(cut)}
    moved, losses = [], []
    for config in (weights, replace(weights, composition_l2=0.0, table_l2=0.0)):
        torch.manual_seed(0)
        model = recipe.build(tokenizer).train()
        before = {name: value.detach().clone() for name, value in model.named_parameters()}
        start = {TABLE: before[TABLE] - 1}
        sgd = torch.optim.SGD(model.parameters(), lr=1.0)
        penalty = Penalty.of(model, config, start)
        trainer = Trainer(model, sgd, recipe.objective, config, torch.device("cpu"), SINGLE_PROCESS, penalty)
        sums = train_step(trainer, 0, StepBatch(6, batches))
        moved.append({name: before[name] - value.detach() for name, value in model.named_parameters()})
        losses.append({name: value / 6 for name, value in sums.terms.items()})
    for name, value in before.items():
        expected = 0.2 * torch.ones_like(value) if name == TABLE else 0.3 * value
        assert_close(moved[0][name] - moved[1][name], expected)
    squares = sum(value.square().sum() for name, value in before.items() if name != TABLE)
    assert_close(losses[0]["penalty/composition"], 0.3 / 2 * squares)
    assert_close(losses[0]["penalty/tables"], torch.tensor(0.2 / 2 * before[TABLE].numel()))
    added = losses[0]["penalty/composition"] + losses[0]["penalty/tables"]
    assert_close(losses[0]["loss"], losses[1]["loss"] + added)


def test_a_run_that_restarts_holds_its_tables_to_the_same_start(
    tiny: Tiny, tsv: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    settings = {"epochs": 1.0, "min_tokens": 2, "valid_every": 6, "save_every": 3, "learning_rate": 0.1}
    recipe = tiny("avg", **settings, table_l2=0.5, batch_tokens=400, micro_tokens=400)
    tokenizer.save(tmp_path / "tokenizer.model")
    kept: list[Path] = []

    def keep(row: dict[str, object]) -> None:
        if row["kind"] == "valid" and not kept:
            kept.append(Path(shutil.copytree(tmp_path / "run", tmp_path / "half")))

    last = run.train(recipe, [tsv], tmp_path / "run", tokenizer=tmp_path / "tokenizer.model", device="cpu", report=keep)
    torch.manual_seed(recipe.train.seed)
    began = dict(recipe.build(tokenizer).named_parameters())[TABLE].detach()
    assert torch.equal(load_file(tmp_path / "run" / "start.safetensors")[TABLE], began)
    assert 0 < checkpoint.load(tmp_path / "half").config["step"] < checkpoint.load(last).config["step"]
    resumed = run.resume(tmp_path / "half", device="cpu")
    assert (resumed / "model.safetensors").read_bytes() == (last / "model.safetensors").read_bytes()
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert rows[-2]["penalty/tables"] > 0

    shutil.rmtree(resumed)
    (tmp_path / "half" / "start.safetensors").unlink()
    with pytest.raises(NotFound, match=r"start\.safetensors: missing: train\.table_l2"):
        run.resume(tmp_path / "half", device="cpu")
