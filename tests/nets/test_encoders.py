"""Heads: from what a body read to a posterior."""

from __future__ import annotations

import math

import torch

from bgt_core.nets.encoders import GaussianHead, SharedVarianceHead
from tests.close import assert_close


def test_a_head_is_two_linear_maps_without_bias() -> None:
    head = GaussianHead(6, 3, log_variance=-2.0)
    posterior = head(torch.zeros(2, 6))
    assert not posterior.mean.any()
    assert (posterior.log_variance == -2).all()
    x = torch.randn(2, 6)
    assert_close(head(x).mean, x @ head.mean.weight.T)
    assert_close(head(x).log_variance, x @ head.log_variance.weight.T - 2)


def test_a_spread_head_keeps_the_mean_and_has_one_variance_for_all() -> None:
    head = SharedVarianceHead(6, log_variance=-3.0)
    x = torch.randn(2, 6)
    posterior = head(x)
    assert torch.equal(posterior.mean, x)
    assert (posterior.log_variance == -3).all() and posterior.log_variance.shape == (2, 6)
    posterior.kl().sum().backward()
    expected = (math.exp(-3) - 1) / 2 * 2  # d KL / d log-variance = (exp(v) - 1) / 2, for two sentences
    assert_close(head.log_variance.grad, torch.full((6,), expected))
