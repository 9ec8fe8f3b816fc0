"""Agreement with a teacher's vectors, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from bgt_core.contracts import Batch, Outputs
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.models.latent import LatentModel
from bgt_core.objectives.combine import Sum
from bgt_core.objectives.distillation import Distillation
from bgt_core.recipes import Recipe, build
from bgt_core.training.validate import terms_of
from tests.close import assert_close

Tiny = Callable[..., Recipe]
SIZES = {"bgt": {"d_model": 16, "ffn_dim": 24, "heads": 2, "encoder_layers": 1}, "bgt-small": {"d_model": 16}}
UNITS = 5


def model(name: str, tokenizer: Tokenizer, teacher_dim: int = UNITS) -> LatentModel:
    torch.manual_seed(0)
    return build(name, {**SIZES[name], "teacher_dim": teacher_dim}).build(tokenizer).eval()


@pytest.fixture
def taught(batch: Batch) -> Batch:
    """Six rows with vectors, of lengths that must not matter."""
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(len(batch), UNITS)) * rng.uniform(0.1, 9, (len(batch), 1))
    return replace(batch, targets=torch.tensor(vectors, dtype=torch.float32))


@pytest.mark.parametrize("name", SIZES)
def test_the_loss_is_the_formula_in_numpy(name: str, tokenizer: Tokenizer, taught: Batch) -> None:
    learner = model(name, tokenizer)
    out = learner(taught)
    matrix = learner.state_dict()["teacher.weight"].double().numpy()  # (D, L)
    assert matrix.shape == (UNITS, build(name, SIZES[name]).model.semantic_dim)
    assert taught.targets is not None
    targets, costs = taught.targets.double().numpy(), {}
    for column, posterior in out.semantic.items():
        mapped = posterior.mean.detach().double().numpy() @ matrix.T
        cosines = (mapped * targets).sum(1) / np.linalg.norm(mapped, axis=1) / np.linalg.norm(targets, axis=1)
        costs[f"distillation/{column}"] = 1 - cosines
    loss = Distillation()(out, step=0)
    assert {name: value.item() for name, value in loss.terms.items()} == pytest.approx(
        {name: rows.sum() for name, rows in costs.items()}, rel=1e-5
    )
    assert loss.total.item() == pytest.approx(sum(rows.sum() for rows in costs.values()), rel=1e-5)
    assert not any(value.requires_grad for value in loss.terms.values())
    held_out = dict(terms_of(out))
    for key, rows in costs.items():
        assert_close(held_out[key], rows)


def test_each_language_is_taught_through_the_one_encoder(tokenizer: Tokenizer, taught: Batch) -> None:
    """Whichever the teacher read: a gradient reaches the tokens of both."""
    learner = model("bgt-small", tokenizer)
    Distillation()(learner(taught), 0).total.backward()
    table = learner.get_parameter("encoders.semantic.body.table.weight")
    assert table.grad is not None
    moved = set(table.grad.abs().sum(1).nonzero().flatten().tolist())
    for side in taught.sides.values():
        assert set(side.ids[side.mask].tolist()) - {3} <= moved  # all but EOS, which the average leaves out
    own = learner.get_parameter("teacher.weight").grad
    assert own is not None and own.abs().sum() > 0


def test_rows_without_vectors_cost_nothing(tokenizer: Tokenizer, batch: Batch) -> None:
    learner = model("bgt-small", tokenizer)
    out = learner(batch)
    loss = Distillation()(out, 0)
    assert (out.agreement, loss.terms, loss.total.item()) == ({}, {}, 0)
    recipe = build("bgt-small", {**SIZES["bgt-small"], "distillation.weight": 7.0, "teacher_dim": UNITS})
    whole = recipe.objective(out, 0)
    plain = build("bgt-small", SIZES["bgt-small"]).objective(out, 0)
    assert torch.equal(whole.total, plain.total) and whole.terms.keys() == plain.terms.keys()


@pytest.mark.parametrize("name", SIZES)
def test_the_head_is_made_last_and_changes_nothing_else(name: str, tokenizer: Tokenizer) -> None:
    plain, taught = (model(name, tokenizer, units).state_dict() for units in (0, UNITS))
    assert taught.keys() - plain.keys() == {"teacher.weight"}
    assert all(torch.equal(value, taught[key]) for key, value in plain.items())


def test_the_part_is_left_out_unless_it_weighs() -> None:
    objective = build("bgt-small", {}).objective
    assert "distillation" in objective and "distillation" not in objective.counting
    agreed = Outputs({}, {}, agreement={"en": torch.tensor([1.0, 0.0, -1.0])})
    assert Sum({"distillation": Distillation(2.0)})(agreed, 0).total.item() == 2 * (0 + 1 + 2)


def test_a_width_below_nothing_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(UsageError, match="teacher_dim=-1 should be a number from 0"):
        model("bgt", tokenizer, -1)
