"""Encoders: a body that reads a sentence and a head that makes a posterior of what it read."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from bgt_core.backend import Linear
from bgt_core.contracts import Posterior, Tokens
from bgt_core.nets.packing import PackedLayout
from bgt_core.posterior import Gaussian, Point


class GaussianHead(nn.Module):
    """Mean and log-variance, each a bias-free linear map of the body's vector (reference: released code).

    `log_variance` is where the log-variance starts: at 0 the posterior starts as wide as the prior, and
    a decoder sees mostly noise until it has narrowed.
    """

    def __init__(self, width: int, latent: int, log_variance: float = 0.0):
        super().__init__()
        self.mean = Linear(width, latent, bias=False)
        self.log_variance = Linear(width, latent, bias=False)
        self.start = log_variance

    def forward(self, features: Tensor) -> Gaussian:
        """(B, H) -> posterior over (B, L)."""
        return Gaussian(self.mean(features), self.log_variance(features) + self.start)


class SharedVarianceHead(nn.Module):
    """The body's vector is the posterior mean itself; each unit has one trained log-variance for all sentences."""

    def __init__(self, latent: int, log_variance: float = 0.0):
        super().__init__()
        self.log_variance = nn.Parameter(torch.full((latent,), log_variance))

    def forward(self, features: Tensor) -> Gaussian:
        """(B, L) -> posterior over (B, L)."""
        return Gaussian(features, self.log_variance.expand_as(features))


class PointHead(nn.Module):
    """A bias-free linear map of the body's vector, without a variance: the model has no prior."""

    def __init__(self, width: int, latent: int):
        super().__init__()
        self.mean = Linear(width, latent, bias=False)

    def forward(self, features: Tensor) -> Point:
        """(B, H) -> posterior at one point, (B, L)."""
        return Point(self.mean(features))


class NoLatent(nn.Module):
    """An encoder of no units: where a model has no latent, (B, 0), and pays no KL."""

    def forward(self, side: Tokens) -> Point:
        """Tokens (B, T) -> posterior over (B, 0)."""
        return Point(side.ids.new_zeros(len(side.ids), 0, dtype=torch.float32))


class Encoder(nn.Module):
    """q(z | sentence) = head(body(sentence)). With `Point` as the head the body's vector is the mean itself.

    A body takes a side and, where not the packed one, the layout to compute it in (`nets.packing`).
    """

    def __init__(self, body: nn.Module, head: Callable[[Tensor], Posterior]):
        super().__init__()
        self.body, self.head = body, head

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Posterior:
        """Tokens (B, T) -> posterior over (B, L)."""
        return self.head(self.body(side) if layout is None else self.body(side, layout))
