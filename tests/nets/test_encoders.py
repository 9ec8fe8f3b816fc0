"""Heads, and the average that a correction is added to."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from bgt_core.contracts import Tokens
from bgt_core.nets.average import Average
from bgt_core.nets.encoders import AveragePath, Encoder, GaussianHead
from bgt_core.nets.transformer import Transformer, embedding


def parts() -> tuple[Average, Encoder]:
    torch.manual_seed(0)
    body = Transformer(embedding(30, 8), layers=1, inner=12, heads=2, dropout=0.0)
    return Average(torch.rand(30), 5), Encoder(body, GaussianHead(8, 5))


def test_a_head_is_two_linear_maps_without_bias() -> None:
    head = GaussianHead(6, 3, log_variance=-2.0)
    posterior = head(torch.zeros(2, 6))
    assert not posterior.mean.any()
    assert (posterior.log_variance == -2).all()
    x = torch.randn(2, 6)
    torch.testing.assert_close(head(x).mean, x @ head.mean.weight.T)
    torch.testing.assert_close(head(x).log_variance, x @ head.log_variance.weight.T - 2)


def test_the_mean_starts_as_the_average(random_tokens: Callable[..., Tokens]) -> None:
    average, encoder = parts()
    side = random_tokens([4, 7], 30)
    assert torch.equal(AveragePath(average, encoder, share=0.5)(side).mean, average(side))


def test_the_correction_is_scaled_and_the_variance_is_the_encoders(
    random_tokens: Callable[..., Tokens], stirred: Callable[[nn.Module], nn.Module]
) -> None:
    average, encoder = parts()
    path, side = stirred(AveragePath(average, encoder, share=0.5)), random_tokens([4, 7], 30)
    alone = encoder(side)
    torch.testing.assert_close(path(side).mean, average(side) + 0.5 * alone.mean)
    assert (0.5 * alone.mean).abs().max() > 0.01
    torch.testing.assert_close(path(side).log_variance, alone.log_variance)
