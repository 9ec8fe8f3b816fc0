"""Encoders: a body that encodes a sentence and a head that turns the result into a posterior; in 8 bits on request."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.backend import Int8Weight, Linear, linear_int8, matmul_dtype
from bgt_core.contracts import Posterior, Tokens
from bgt_core.device import cpu_has
from bgt_core.nets.operations import exact
from bgt_core.nets.packing import PackedLayout
from bgt_core.posterior import Gaussian, Point, VonMisesFisher


class GaussianHead(nn.Module):
    """Mean and log-variance, each a linear map of the body's vector, bias-free as in the released code unless `bias`.

    `log_variance` is the initial log-variance: at 0 the posterior starts as wide as the prior, and a decoder gets
    mostly noise until it has narrowed.
    """

    def __init__(self, width: int, latent: int, log_variance: float = 0.0, bias: bool = False):
        super().__init__()
        self.mean = Linear(width, latent, bias=bias)
        self.log_variance = Linear(width, latent, bias=bias)
        self.start = log_variance

    def forward(self, features: Tensor) -> Gaussian:
        """(B, H) -> posterior over (B, L)."""
        return Gaussian(self.mean(features), self.log_variance(features) + self.start)


class VonMisesFisherHead(nn.Module):
    """A mean direction and a concentration, each from a linear map of the body's vector. The concentration is above 1,
    softplus(x) + 1, as in the released code of Chen et al. (2019)."""

    def __init__(self, width: int, latent: int):
        super().__init__()
        self.mean = Linear(width, latent)
        self.concentration = Linear(width, 1)

    def forward(self, features: Tensor) -> VonMisesFisher:
        """(B, H) -> posterior over (B, L)."""
        mean, raw = exact(self.mean(features)), exact(self.concentration(features))
        return VonMisesFisher(F.normalize(mean, dim=-1), F.softplus(raw).squeeze(-1) + 1)


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
    """An encoder without units, for a model without a latent: (B, 0), with a KL of 0."""

    def forward(self, side: Tokens) -> Point:
        """Tokens (B, T) -> posterior over (B, 0)."""
        return Point(side.ids.new_zeros(len(side.ids), 0, dtype=torch.float32))


class Encoder(nn.Module):
    """q(z | sentence) = head(body(sentence)). With `Point` as the head the body's vector is the mean itself.

    A body takes a side and, unless it is the packed one, a layout (`nets.packing`).
    """

    def __init__(self, body: nn.Module, head: Callable[[Tensor], Posterior]):
        super().__init__()
        self.body, self.head = body, head

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Posterior:
        """Tokens (B, T) -> posterior over (B, L)."""
        return self.head(self.body(side) if layout is None else self.body(side, layout))


TINY = 1e-30  # replaces the largest value if all are zero


class Int8Linear(nn.Module):
    """x W^T + b with W in 8 bits, with a scale for each row of W, and x rounded to 8 bits with one scale.

    Products are exact sums of integers; the error is that of rounding, about 1% of the result's norm.
    """

    def __init__(self, layer: nn.Linear):
        super().__init__()
        weight = layer.weight.detach()
        scales = weight.abs().amax(1).clamp(min=TINY) / 127
        self.weight = Int8Weight.pack((weight / scales[:, None]).round().to(torch.int8), scales)
        self.bias = layer.bias if layer.bias is None else layer.bias.detach()
        # x is unsigned; it has 7 bits without VNNI, which adds pairs of products in 16 bits
        self.zero = 128 if cpu_has("avx512_vnni") else 64

    def forward(self, x: Tensor) -> Tensor:
        """(..., K) -> (..., N), in the dtype of other products."""
        low, high = x.aminmax()
        scale = max(-low.item(), high.item(), TINY) / (self.zero - 1)
        half = torch.tensor(self.zero + 0.5, dtype=torch.float32, device="cpu")
        rounded = torch.add(half, x.float(), alpha=1 / scale).to(torch.uint8)  # truncates
        return linear_int8(rounded, scale, self.zero, self.weight, self.bias, matmul_dtype(x))


def quantised(encoder: Encoder) -> Encoder:
    """The same encoder with every Linear of its body in 8 bits; the other parts are shared with it."""
    return Encoder(_replaced(encoder.body), encoder.head)


def _replaced(module: nn.Module) -> nn.Module:
    if isinstance(module, Linear):
        return Int8Linear(module)
    replaced = copy.copy(module)
    replaced._modules = {name: None if part is None else _replaced(part) for name, part in module._modules.items()}
    return replaced
