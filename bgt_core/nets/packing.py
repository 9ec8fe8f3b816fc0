"""Packing: only real tokens are computed; padding exists inside attention only.

A packed tensor (N, H) holds the N real tokens of B sentences one after another, row by row of the padded (B, T).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from bgt_core.contracts import Tokens


@dataclass(frozen=True, eq=False)
class PackedLayout:
    """The positions of N real tokens among B x T."""

    shape: tuple[int, int]  # B, T
    flat_index: Tensor  # (N,) as in `Tokens`
    mask: Tensor  # (B, T) bool, True at real tokens

    def __post_init__(self) -> None:
        """Compute what layers read; compiled ones can't fill a cache."""
        if not self.whole:
            _ = self.rows, self.columns, self.fill_index, self.length_blocks

    @classmethod
    def of(cls, side: Tokens) -> PackedLayout:
        batch, length = side.ids.shape
        return cls((batch, length), side.flat_index, side.mask)

    @classmethod
    def column(cls, tokens: Tensor) -> PackedLayout:
        """One token per sentence, (B,)."""
        return cls((len(tokens), 1), torch.arange(len(tokens), device=tokens.device), tokens[:, None] >= 0)

    @cached_property
    def rows(self) -> Tensor:
        """The sentence of each token, (N,)."""
        return self.flat_index // self.shape[1]

    @cached_property
    def columns(self) -> Tensor:
        """The position of each token in its sentence, (N,)."""
        return self.flat_index % self.shape[1]

    @property
    def real(self) -> Tensor | None:
        """Columns that are not padding, for attention, (B, 1, 1, T) bool; None without padding."""
        return None if self.whole else self.mask[:, None, None, :]

    def pack(self, x: Tensor) -> Tensor:
        """(B, T, ...) -> (N, ...)."""
        return x.flatten(0, 1).index_select(0, self.flat_index)

    def unpack(self, x: Tensor) -> Tensor:
        """(N, H) -> (B, T, H), zero at padding."""
        batch, length = self.shape
        if self.whole:
            return x.view(batch, length, -1)
        return x.new_zeros(batch * length, x.shape[1]).index_copy(0, self.flat_index, x).view(batch, length, -1)

    def split(self, x: Tensor, parts: int, heads: int) -> Tensor:
        """Reshape for attention: (N, parts * H) -> (parts, B, heads, T, H / heads).

        Values at padding are finite and must not be attended to: they get no gradient.
        """
        batch, length = self.shape
        if self.whole:
            return x.view(batch, length, parts, heads, -1).permute(2, 0, 3, 1, 4)
        part, head = (torch.arange(count, device=x.device) for count in (parts, heads))
        source = (self.fill_index.view(batch, 1, length) * parts + part[:, None, None, None]) * heads + head[:, None]
        rows, columns = self.rows[:, None, None], self.columns[:, None, None]
        inverse = ((part[:, None] * batch + rows) * heads + head) * length + columns  # (N, parts, heads)
        moved = _Move.apply(x.reshape(-1, x.shape[1] // (parts * heads)), source.flatten(), inverse.flatten())
        return moved.view(parts, batch, heads, length, -1)

    def join(self, x: Tensor) -> Tensor:
        """Reshape the result of attention: (B, heads, T, H / heads) -> (N, H)."""
        heads, length = x.shape[1:3]
        if self.whole:
            return x.transpose(1, 2).reshape(len(self.flat_index), -1)
        head = torch.arange(heads, device=x.device)
        source = (self.rows[:, None] * heads + head) * length + self.columns[:, None]  # (N, heads)
        return _Take.apply(x.reshape(-1, x.shape[-1]), source.flatten()).view(len(self.flat_index), -1)

    def repeat(self, z: Tensor) -> Tensor:
        """Repeat each sentence's value at each of its tokens: (B, ...) -> (N, ...)."""
        return z.index_select(0, self.rows)

    def sum(self, x: Tensor) -> Tensor:
        """Sum over the tokens of each sentence, in single precision or better: (N, ...) -> (B, ...)."""
        exact = torch.promote_types(x.dtype, torch.float32)
        return x.new_zeros(self.shape[0], *x.shape[1:], dtype=exact).index_add(0, self.rows, x.to(exact))

    def mean(self, x: Tensor) -> Tensor:
        """Mean over the tokens of each sentence: (N, H) -> (B, H)."""
        return self.sum(x) / self.mask.sum(1, keepdim=True)

    @cached_property
    def whole(self) -> bool:
        """Whether nothing is padded: packed and padded are then the same memory."""
        return len(self.flat_index) == self.shape[0] * self.shape[1]

    @cached_property
    def length_blocks(self) -> list[tuple[slice, slice, PackedLayout]]:
        """Rows, tokens and layout of adjacent sentences of similar length in a micro-batch.

        Attention costs the square of the padded length: on a CPU a new block begins when that is halved. On a GPU there
        is one block, because finding more would wait for the device.
        """
        if self.whole or self.mask.device.type != "cpu":
            return [(slice(None), slice(None), self)]
        lengths = self.mask.sum(1)
        longest = lengths.flip(0).cummax(0).values.flip(0).tolist()  # of each sentence and those after it
        starts = [0]
        for row, length in enumerate(longest):
            if 2 * length <= longest[starts[-1]]:
                starts.append(row)
        if len(starts) == 1 and longest[0] == self.shape[1]:
            return [(slice(None), slice(None), self)]
        ends = [0, *lengths.cumsum(0).tolist()]
        blocks = []
        for first, last in pairwise([*starts, len(longest)]):
            mask = self.mask[first:last, : longest[first]]
            part = PackedLayout((last - first, longest[first]), mask.flatten().nonzero().squeeze(1), mask)
            blocks.append((slice(first, last), slice(ends[first], ends[last]), part))
        return blocks

    @cached_property
    def fill_index(self) -> Tensor:
        """The token to put at each position, (B * T,): its own, or at padding the one before."""
        return (self.mask.flatten().cumsum(0) - 1).clamp(min=0)


class PaddedLayout(PackedLayout):
    """All B x T positions, with padding: the layout for export. Nothing is moved, and every shape follows from B and T,
    whereas the number of real tokens depends on the data."""

    whole = True

    @classmethod
    def of_mask(cls, mask: Tensor) -> PaddedLayout:
        """(B, T)."""
        batch, length = mask.shape
        return cls((batch, length), torch.arange(batch * length), mask)

    @property
    def columns(self) -> Tensor:
        """(B * T,)."""
        batch, length = self.shape
        return torch.arange(length).expand(batch, length).flatten()

    @property
    def real(self) -> Tensor:
        """(B, 1, 1, T)."""
        return self.mask[:, None, None, :]

    def pack(self, x: Tensor) -> Tensor:
        """(B, T, ...) -> (B * T, ...)."""
        return x.flatten(0, 1)

    def join(self, x: Tensor) -> Tensor:
        """(B, heads, T, H / heads) -> (B * T, H)."""
        return x.transpose(1, 2).reshape(self.shape[0] * self.shape[1], -1)

    def sum(self, x: Tensor) -> Tensor:
        """Sum over the real tokens of each sentence, in single precision or better: (B * T, ...) -> (B, ...)."""
        exact = x.to(torch.promote_types(x.dtype, torch.float32)).unflatten(0, self.shape)
        return exact.where(self.mask.view(*self.shape, *[1] * (x.dim() - 1)), 0).sum(1)


def pick_rows(x: Tensor, index: Tensor) -> Tensor:
    """Gather rows of x (N, H); 16-bit numbers are copied in pairs, which halves the time on a CPU."""
    if x.itemsize != 2 or x.shape[1] % 2:
        return x.index_select(0, index)
    return x.contiguous().view(torch.int32).index_select(0, index).view(x.dtype)


class _Move(torch.autograd.Function):
    """Gather rows `source` of x; `inverse[i]` is the output row of input row i, by which gradients return."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, source: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return pick_rows(x, source)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (inverse,) = ctx.saved_tensors
        return pick_rows(grad, inverse), None, None


class _Take(torch.autograd.Function):
    """Gather distinct rows `source` of x: the gradient is a copy, whereas torch's would add."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, source: Tensor) -> Tensor:
        ctx.save_for_backward(source)
        ctx.shape = x.shape
        return pick_rows(x, source)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (source,) = ctx.saved_tensors
        return grad.new_zeros(ctx.shape).index_copy_(0, source, grad), None
