"""Products with weights. On a CPU those in single precision are oneDNN's: torch's own are MKL's, which run at half
speed on processors other than Intel's. Both are exact to rounding."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Linear):
    """x W^T + b."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., K) -> (..., N)."""
        return product(x, self.weight, self.bias)


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (..., K), weight (N, K), bias (N,) -> (..., N): `torch.nn.functional.linear`, autocast included."""
    if not single(x) or torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled():
        return _Product.apply(x.flatten(0, -2), weight, bias).unflatten(0, x.shape[:-1])
    return onednn(x, weight, bias)


def linear_add_(other: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """other (M, N) + x (M, K) @ weight (N, K)^T, all of one dtype, without a gradient; may use other's memory."""
    if single(x):
        return torch.ops.mkldnn._linear_pointwise.binary(x, other, weight, None, "add")
    return other.addmm_(x, weight.T)


def matmul_dtype(x: Tensor) -> torch.dtype:
    """The dtype that matrix products of x have now: autocast's where it is on, else x's own."""
    device = x.device.type
    on = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    return torch.get_autocast_dtype(device) if on else x.dtype


def single(x: Tensor) -> bool:
    """Whether its products are oneDNN's, which has none of no rows, and can't be exported."""
    there = torch.backends.mkldnn.is_available() and not torch.compiler.is_exporting()
    return there and x.device.type == "cpu" and x.dtype == torch.float32 and len(x) > 0


def onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (..., K), weight (N, K), bias (N,), single precision -> (..., N), without a gradient."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """x (M, K), weight (N, K), bias (N,) -> (M, N)."""
        ctx.save_for_backward(x, weight)
        return onednn(x, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        to_x, to_weight, to_bias = ctx.needs_input_grad
        return (
            onednn(grad, weight.T) if to_x else None,
            onednn(grad.T, x.T) if to_weight else None,
            grad.sum(0) if to_bias else None,
        )
