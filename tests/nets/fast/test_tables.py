"""Gradients that gather in place are those of torch's own embedding."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bgt_core.nets.fast.tables import lookup
from tests.close import assert_close

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
