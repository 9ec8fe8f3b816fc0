"""Packing: only real pieces are computed on; padding exists around attention alone.

A packed tensor (N, H) holds the N real pieces of B sentences one after another, row by row of the padded (B, T).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
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
        return cls(tuple(side.ids.shape), side.flat_index, side.mask)

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

    def pack(self, ids: Tensor) -> Tensor:
        """(B, T) -> (N,)."""
        return ids.flatten().index_select(0, self.places)

    def split(self, x: Tensor, parts: int, heads: int) -> Tensor:
        """What attention reads: (N, parts * H) -> (parts, B, heads, T, H / heads).

        What stands at padding is finite and must not be attended to: no gradient comes from it.
        """
        batch, length = self.shape
        if self.whole:
            return x.view(batch, length, parts, heads, -1).permute(2, 0, 3, 1, 4)
        part, head = (torch.arange(count, device=x.device) for count in (parts, heads))
        there = (self.slots.view(batch, 1, length) * parts + part[:, None, None, None]) * heads + head[:, None]
        rows, columns = self.rows[:, None, None], self.columns[:, None, None]
        back = ((part[:, None] * batch + rows) * heads + head) * length + columns  # (N, parts, heads)
        moved = _Move.apply(x.reshape(-1, x.shape[1] // (parts * heads)), there.flatten(), back.flatten())
        return moved.view(parts, batch, heads, length, -1)

    def join(self, x: Tensor) -> Tensor:
        """What attention made: (B, heads, T, H / heads) -> (N, H)."""
        heads, length = x.shape[1:3]
        if self.whole:
            return x.transpose(1, 2).reshape(len(self.places), -1)
        head = torch.arange(heads, device=x.device)
        there = (self.rows[:, None] * heads + head) * length + self.columns[:, None]  # (N, heads)
        return _Take.apply(x.reshape(-1, x.shape[-1]), there.flatten()).view(len(self.places), -1)

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
    def blocks(self) -> list[tuple[slice, slice, Layout]]:
        """Rows, pieces and layout of sentences of like length, where a micro-batch has them next to each other.

        Attention costs the square of the length that a sentence is padded to: on a CPU a new block begins where that
        is halved. Elsewhere all are one block, as its search would wait for the device.
        """
        if self.whole or self.mask.device.type != "cpu":
            return [(slice(None), slice(None), self)]
        lengths = self.mask.sum(1)
        longest = lengths.flip(0).cummax(0).values.flip(0).tolist()  # of each sentence and those after it
        starts = [0]
        for row, length in enumerate(longest):
            if 2 * length <= longest[starts[-1]]:
                starts.append(row)
        pieces = [0, *lengths.cumsum(0).tolist()]
        blocks = []
        for first, last in pairwise([*starts, len(longest)]):
            mask = self.mask[first:last, : longest[first]]
            part = Layout(tuple(mask.shape), mask.flatten().nonzero().squeeze(1), mask)
            blocks.append((slice(first, last), slice(pieces[first], pieces[last]), part))
        return blocks

    @cached_property
    def slots(self) -> Tensor:
        """The piece to put at each place, (B * T,): its own, or at padding the one before."""
        return (self.mask.flatten().cumsum(0) - 1).clamp(min=0)


class _Move(torch.autograd.Function):
    """Rows `there` of x; `back` says where each row of x came to be used, and is all that has a gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        return x.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (back,) = ctx.saved_tensors
        return grad.index_select(0, back), None, None


class _Take(torch.autograd.Function):
    """Rows `there` of x, all different: the gradient is a copy, where torch's would add."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Tensor) -> Tensor:
        ctx.save_for_backward(there)
        ctx.shape = x.shape
        return x.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (there,) = ctx.saved_tensors
        return grad.new_zeros(ctx.shape).index_copy_(0, there, grad), None
