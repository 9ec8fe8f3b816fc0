"""Gradients of large tables, accumulated in place.

Autograd makes a dense gradient, as large as the table, for each use of a table, and adds them up: a step with eight
uses of one table fills, moves and adds it eight times. Here each use adds to `.grad` itself while `backward`
runs. The sum is the same. Gradients for `torch.autograd.grad`, and those of a table that is not a parameter, go
through autograd as usual. Hooks on a table's own gradient are not called.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.backend import accumulates


def lookup(table: nn.Embedding, ids: Tensor) -> Tensor:
    """Rows of the table: ids of any shape -> (*shape, H)."""
    return _Lookup.apply(table.weight, ids, table.padding_idx)


def add_gradient(weight: Tensor, gradient: Tensor, scale: Tensor) -> Tensor | None:
    """Add scale * gradient to the gradient of a parameter, and return None; return it if autograd wants it.

    `gradient` (any shape, the weight's) is used up; `scale` is a scalar.
    """
    if not gathers(weight):
        return gradient.mul_(scale)
    if weight.grad is None:
        weight.grad = gradient.mul_(scale)
    else:
        weight.grad.addcmul_(gradient, scale)
    return None


def gathers(weight: Tensor) -> bool:
    """Whether the current backward pass can add the gradient of a weight to `.grad`."""
    return isinstance(weight, nn.Parameter) and accumulates(weight)


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, ids: Tensor, padding: int | None) -> Tensor:
        """weight (V, H), ids of any shape -> (*shape, H); the row of `padding` gets no gradient."""
        ctx.weight, ctx.padding = weight, padding
        ctx.save_for_backward(ids)
        return F.embedding(ids, weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None]:
        (ids,), weight = ctx.saved_tensors, ctx.weight
        in_place = gathers(weight)
        if in_place and weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        gathered = weight.grad if in_place else torch.zeros_like(weight)
        others = None if ctx.padding is None else gathered[ctx.padding].clone()  # the gradient of a tied output layer
        gathered.index_add_(0, ids.flatten(), grad.flatten(0, -2).to(gathered.dtype))
        if others is not None:
            gathered[ctx.padding] = others
        return (None if in_place else gathered), None, None
