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


def fused_adam_(
    values: Tensor,
    gradient: Tensor,
    means: Tensor,
    squares: Tensor,
    step: Tensor,
    *,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> None:
    """One step of Adam in place, without weight decay and without a gradient (Kingma & Ba 2015, algorithm 1).

    Parameters, their gradient and the two moments have one shape; `step` () counts from 1, this step included. One
    kernel where torch has it: all that `torch.optim.Adam` does around it takes longer than a small network's update.
    """
    if HAS_FUSED_ADAM:
        _adam_kernel_(values, gradient, means, squares, step, lr, beta1, beta2, eps)
        return
    means.lerp_(gradient, 1 - beta1)
    squares.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    steps = step.item()
    deviation = squares.div(1 - beta2**steps).sqrt_().add_(eps)
    values.addcdiv_(means, deviation, value=-lr / (1 - beta1**steps))


def _adam_kernel_(
    values: Tensor, gradient: Tensor, means: Tensor, squares: Tensor, step: Tensor, *settings: float
) -> None:
    lr, beta1, beta2, eps = settings
    torch._fused_adam_(
        [values], [gradient], [means], [squares], [], [step],
        lr=lr, beta1=beta1, beta2=beta2, weight_decay=0.0, eps=eps, amsgrad=False, maximize=False,
    )  # fmt: skip


def _has_fused_adam() -> bool:
    """Whether this torch has the operator in the form used above: it is private, and may go in any release."""
    values, gradient, means, squares = torch.zeros(4, 1)
    try:
        _adam_kernel_(values, gradient, means, squares, torch.ones(()), 1e-3, 0.9, 0.999, 1e-8)
    except (AttributeError, RuntimeError, TypeError):
        return False
    return True


HAS_FUSED_ADAM = _has_fused_adam()
