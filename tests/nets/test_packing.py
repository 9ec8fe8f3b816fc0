"""Packed tensors against indexing with a mask."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from bgt_core.contracts import Tokens
from bgt_core.nets.packing import Layout


@pytest.fixture(params=[[3, 6, 1], [4, 4]], ids=["padded", "whole"])
def side(request: pytest.FixtureRequest, random_tokens: Callable[..., Tokens]) -> Tokens:
    return random_tokens(request.param, 50)


def test_packing_is_indexing_with_the_mask(side: Tokens) -> None:
    layout, x = Layout.of(side), torch.randn(*side.ids.shape, 5, dtype=torch.float64, requires_grad=True)
    packed, expected = layout.pack(x), x[side.mask]
    torch.testing.assert_close(packed, expected, rtol=0, atol=0)
    weights = torch.randn_like(packed)
    found, wanted = (torch.autograd.grad((y * weights).sum(), x)[0] for y in (packed, expected))
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def test_padding_is_the_inverse_at_real_places_and_finite_elsewhere(side: Tokens) -> None:
    layout, x = Layout.of(side), torch.randn(len(side.places), 5, dtype=torch.float64, requires_grad=True)
    padded = layout.pad(x)
    assert padded.shape == (*side.ids.shape, 5) and padded.isfinite().all()
    torch.testing.assert_close(padded[side.mask], x, rtol=0, atol=0)
    weights = torch.randn_like(padded)
    (found,) = torch.autograd.grad((padded * weights).sum(), x)
    torch.testing.assert_close(found, weights[side.mask], rtol=0, atol=0)


def test_sums_and_repeats_follow_the_sentences(side: Tokens) -> None:
    layout, x = Layout.of(side), torch.randn(len(side.places), 5)
    lengths = side.mask.sum(1).tolist()
    parts = x.split(lengths)
    torch.testing.assert_close(layout.sum(x), torch.stack([part.sum(0) for part in parts]))
    torch.testing.assert_close(layout.mean(x), torch.stack([part.mean(0) for part in parts]))
    z = torch.randn(len(lengths), 3)
    torch.testing.assert_close(layout.repeat(z), z.repeat_interleave(torch.tensor(lengths), dim=0))
    assert layout.columns.tolist() == [column for length in lengths for column in range(length)]


def test_half_precision_is_summed_in_single() -> None:
    layout = Layout.of(Tokens.pad([[5] * 1000], "en"))
    ones = torch.full((1000, 1), 1.0, dtype=torch.bfloat16)  # in bf16 a sum of ones stays at 256
    assert layout.sum(ones).item() == 1000
