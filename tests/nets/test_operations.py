"""Every recipe computed by plain PyTorch has the losses and gradients of the fast operations."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bgt_core import recipes
from bgt_core.contracts import Batch, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.nets import operations
from bgt_core.nets.layers import Dropout
from bgt_core.nets.operations import lookup
from bgt_core.recipes import RECIPES, Recipe
from tests.close import assert_close

LABELLED = {"data.columns": ["en", "fr", "gold:label"]}
SETTINGS: dict[str, dict[str, object]] = {
    "pair-classifier": LABELLED,
    "reference-classifier": {"data.columns": ["en", "fr"], "model.d_model": 12},
    "var-siamese": {**LABELLED, "model.base.hidden_dim": 10, "model.base.semantic_dim": 12, "model.hidden_dim": 14},
    "vgvae": {"objective.margin.mined_only": False, "train.mega_batch": 0},
}


def plain_nll(
    x: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor | None,
    rows: torch.Tensor,
    ids: torch.Tensor,
    smoothing: float,
    learns: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = F.linear(x, weight) if offset is None else F.linear(x, weight) + offset[rows]
    log_p = scores.log_softmax(-1)
    gold = -log_p.gather(1, ids[:, None]).squeeze(1)
    return ((1 - smoothing) * gold - smoothing * log_p.mean(-1)).sum(), gold.detach()


PLAIN = {
    operations._ShortSoftmax: lambda scores: scores.softmax(-1),
    operations._Lookup: lambda weight, ids, padding: F.embedding(ids, weight, padding),
    operations._FusedNLL: plain_nll,
}


@pytest.mark.parametrize("name", RECIPES)
def test_losses_and_gradients_of_a_recipe_are_those_of_plain_pytorch(
    name: str,
    tiny: Callable[..., Recipe],
    stirred: Callable,
    tokenizer: Tokenizer,
    batch: Batch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sized = recipes.build(name, SETTINGS[name]) if "classifier" in name or name == "var-siamese" else tiny(name)
    without: dict[str, object] = {key: 0.0 for key in sized.arguments or {} if key.endswith(".dropout")}
    recipe = recipes.build(name, {**(sized.arguments or {}), **without, **SETTINGS.get(name, {})})
    torch.manual_seed(0)
    model = stirred(recipe.build(tokenizer).double()).train()
    labelled = replace(batch, labels=torch.tensor([0.0, 1, 1, 0, 1, 0]))
    results: list[Any] = []
    for plain in (True, False):
        own = copy.deepcopy(model)  # some follow what they have read
        torch.manual_seed(1)
        with monkeypatch.context() as patch:
            for operation, function in PLAIN.items() if plain else ():
                patch.setattr(operation, "apply", function)
            loss = recipe.objective(own(labelled), step=3)
        gradients = torch.autograd.grad(loss.total, list(own.parameters()), materialize_grads=True)
        numbers = (
            [loss.total[None], *map(torch.atleast_1d, loss.terms.values())],
            [each.flatten() for each in gradients],
        )
        results.append(tuple(map(torch.cat, numbers)))
    for expected, given in zip(*results, strict=True):
        assert expected.any()
        assert_close(given, expected)


def test_without_gradients_there_is_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    products = []

    def counted(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        products.append(tuple(weight.shape))
        return x @ weight.T

    monkeypatch.setattr(operations, "linear", counted)
    torch.manual_seed(0)
    features, weight = torch.randn(5, 4), torch.randn(9, 4, requires_grad=True)
    target = Tokens.pad([[4, 5, 3], [6, 3]], "en")
    learning = operations.nll(features, weight, None, target, 0.1)
    assert products == [(9, 4), (4, 9)]
    products.clear()
    for off in (torch.no_grad(), torch.inference_mode()):
        with off:
            loss, nats = operations.nll(features, weight, None, target, 0.1)
        assert_close(loss, learning[0])
        assert_close(nats, learning[1])
    assert products == [(9, 4)] * 2


IDS = torch.tensor([[3, 1, 3, 0], [1, 1, 4, 0]])  # some twice, and padding


@pytest.mark.parametrize("uses", [1, 3])
def test_rows_and_their_gradients_are_those_of_an_embedding(uses: int) -> None:
    torch.manual_seed(0)
    table = nn.Embedding(6, 5, padding_idx=0)
    weight = table.weight.detach().clone().requires_grad_()
    for _ in range(uses):
        slope = torch.randn(2, 4, 5)
        rows, expected = lookup(table, IDS), F.embedding(IDS, weight, padding_idx=0)
        assert torch.equal(rows, expected)
        (rows * slope).sum().backward()
        (expected * slope).sum().backward()
    assert table.weight.grad is not None and table.weight.grad[3].abs().max() > 0
    assert_close(table.weight.grad, weight.grad)


def test_a_frozen_table_stays_without_a_gradient() -> None:
    table, scale = nn.Embedding(6, 5), nn.Parameter(torch.ones(5))
    table.weight.requires_grad_(False)
    (lookup(table, IDS) * scale).sum().backward()
    assert table.weight.grad is None
    assert scale.grad is not None


def test_what_else_the_padding_row_is_used_for_keeps_its_gradient() -> None:
    """An output layer tied to the table scores the token of padding too."""
    torch.manual_seed(0)
    table = nn.Embedding(6, 5, padding_idx=0)
    weight = table.weight.detach().clone().requires_grad_()
    for rows, own in ((lookup(table, IDS), table.weight), (F.embedding(IDS, weight, padding_idx=0), weight)):
        ((rows * torch.ones(5)).sum() + (own * torch.arange(30.0).view(6, 5)).sum()).backward(retain_graph=True)
        (2 * rows).sum().backward()  # after the row has a gradient
    assert table.weight.grad is not None and table.weight.grad[0].abs().max() > 0
    assert_close(table.weight.grad, weight.grad)


@pytest.mark.parametrize("also", ["words", "table"])
def test_autograd_grad_sees_the_table_and_leaves_grad_alone(also: str) -> None:
    """A table that is looked up and multiplied with, as one that is tied to an output layer."""
    table, words = nn.Embedding(6, 5), torch.randn(3, 5, requires_grad=True)
    asked = [words, table.weight] if also == "table" else [words]

    def loss(rows: torch.Tensor) -> torch.Tensor:
        return (rows.sum((0, 2)) * (words @ table.weight.T).sum(0)[:4]).sum()

    gradients = torch.autograd.grad(loss(lookup(table, IDS)), asked)
    assert table.weight.grad is None and words.grad is None
    expected = torch.autograd.grad(loss(F.embedding(IDS, table.weight)), asked)
    for gradient, reference in zip(gradients, expected, strict=True):
        assert_close(gradient, reference)


def test_a_backward_pass_to_other_inputs_leaves_the_table_alone() -> None:
    table, scale = nn.Embedding(6, 5), nn.Parameter(torch.ones(5))
    (lookup(table, IDS) * scale).sum().backward(inputs=[scale])
    assert table.weight.grad is None and scale.grad is not None


UNITS = 400_000


@pytest.mark.parametrize("probability", [0.05, 0.1, 0.5, 0.9])
def test_share_dropped_and_expectation(probability: float) -> None:
    torch.manual_seed(0)
    kept = Dropout(probability).train()(torch.ones(UNITS, dtype=torch.float64))
    error = (probability * (1 - probability) / UNITS) ** 0.5
    assert abs((kept == 0).double().mean().item() - probability) < 4 * error + 1 / 65536
    assert abs(kept.mean().item() - 1) < 4 * error / (1 - probability)
    survivors = kept[kept != 0]
    assert torch.equal(survivors, survivors[0].expand_as(survivors))
    assert survivors[0].item() == pytest.approx(1 / (1 - probability), rel=1 / 65536 / (1 - probability))


def test_units_are_dropped_independently() -> None:
    torch.manual_seed(0)
    dropped = (Dropout(0.5).train()(torch.ones(UNITS)) == 0).double()
    for distance in (1, 2, 3, 4, 5, 8):  # four draws share one random word
        together = (dropped[:-distance] * dropped[distance:]).mean().item()
        assert abs(together - 0.25) < 5 * (0.25 * 0.75 / UNITS) ** 0.5


def test_it_does_nothing_in_evaluation_or_at_zero() -> None:
    x = torch.randn(50)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0).train()(x), x)


def test_the_same_seed_drops_the_same_units() -> None:
    x, dropout = torch.ones(1000), Dropout(0.3).train()
    torch.manual_seed(4)
    first = dropout(x)
    second = dropout(x)
    torch.manual_seed(4)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("probability", [-0.1, 1.0, 1.5])
def test_an_impossible_share_is_refused(probability: float) -> None:
    with pytest.raises(ValueError, match=str(probability)):
        Dropout(probability)
