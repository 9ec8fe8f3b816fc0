"""Packing: only real pieces are computed on; padding exists around attention alone.

A packed tensor (N, H) holds the N real pieces of B sentences one after another, row by row of the padded (B, T).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from bgt_core.contracts import Tokens


@dataclass(frozen=True)
class Layout:
    """Where N real pieces stand among B x T places."""

    shape: tuple[int, int]  # B, T
    places: Tensor  # (N,) as in `Tokens`
    mask: Tensor  # (B, T)

    @classmethod
    def of(cls, side: Tokens) -> Layout:
        return cls(tuple(side.ids.shape), side.places, side.mask)

    @classmethod
    def column(cls, pieces: Tensor) -> Layout:
        """One piece a sentence, (B,)."""
        return cls((len(pieces), 1), torch.arange(len(pieces), device=pieces.device), pieces[:, None] >= 0)

    @cached_property
    def rows(self) -> Tensor:
        """The sentence of each piece, (N,)."""
        return self.places // self.shape[1]

    @cached_property
    def columns(self) -> Tensor:
        """The position of each piece in its sentence, (N,)."""
        return self.places % self.shape[1]

    def pack(self, x: Tensor) -> Tensor:
        """(B, T, ...) -> (N, ...)."""
        flat = x.flatten(0, 1)
        return flat if self.whole else _Pack.apply(flat, self.places)

    def pad(self, x: Tensor) -> Tensor:
        """(N, H) -> (B, T, H); what stands at padding is finite and must not be read: its gradient is dropped."""
        if not self.whole:
            x = _Pad.apply(x, self.places, self.slots)
        return x.view(*self.shape, *x.shape[1:])

    def repeat(self, z: Tensor) -> Tensor:
        """What each sentence has, at each of its pieces: (B, ...) -> (N, ...)."""
        return z.index_select(0, self.rows)

    def sum(self, x: Tensor) -> Tensor:
        """Over the pieces of each sentence, in single precision or better: (N, ...) -> (B, ...)."""
        exact = torch.promote_types(x.dtype, torch.float32)
        return x.new_zeros(self.shape[0], *x.shape[1:], dtype=exact).index_add(0, self.rows, x.to(exact))

    def mean(self, x: Tensor) -> Tensor:
        """Over the pieces of each sentence: (N, H) -> (B, H)."""
        return self.sum(x) / self.mask.sum(1, keepdim=True)

    @cached_property
    def whole(self) -> bool:
        """Nothing is padded: packed and padded are the same memory."""
        return len(self.places) == self.shape[0] * self.shape[1]

    @cached_property
    def slots(self) -> Tensor:
        """The piece to put at each place, (B * T,): its own, or at padding the one before."""
        return (self.mask.flatten().cumsum(0) - 1).clamp(min=0)


class _Pack(torch.autograd.Function):
    """`index_select`, whose places are all different: its gradient is a copy, where torch's would add."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.shape = x.shape
        return x.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return grad.new_zeros(ctx.shape).index_copy_(0, places, grad), None


class _Pad(torch.autograd.Function):
    """`index_select` by slots, whose gradient comes from real places only."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor, slots: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        return x.index_select(0, slots)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (places,) = ctx.saved_tensors
        return grad.index_select(0, places), None, None
