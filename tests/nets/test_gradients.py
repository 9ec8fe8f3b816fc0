"""Gradients that gather in place are those of torch's own embedding."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bgt_core.nets.gradients import lookup

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
    torch.testing.assert_close(table.weight.grad, weight.grad)


def test_a_frozen_table_stays_without_a_gradient() -> None:
    table, scale = nn.Embedding(6, 5), nn.Parameter(torch.ones(5))
    table.weight.requires_grad_(False)
    (lookup(table, IDS) * scale).sum().backward()
    assert table.weight.grad is None
    assert scale.grad is not None


def test_what_else_the_padding_row_is_used_for_keeps_its_gradient() -> None:
    """An output layer tied to the table scores the piece of padding too."""
    torch.manual_seed(0)
    table = nn.Embedding(6, 5, padding_idx=0)
    weight = table.weight.detach().clone().requires_grad_()
    for rows, own in ((lookup(table, IDS), table.weight), (F.embedding(IDS, weight, padding_idx=0), weight)):
        ((rows * torch.ones(5)).sum() + (own * torch.arange(30.0).view(6, 5)).sum()).backward(retain_graph=True)
        (2 * rows).sum().backward()  # after the row has a gradient
    assert table.weight.grad is not None and table.weight.grad[0].abs().max() > 0
    torch.testing.assert_close(table.weight.grad, weight.grad)
