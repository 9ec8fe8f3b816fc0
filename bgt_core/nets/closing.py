"""Closing marks: the tokens of punctuation that end a sentence."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bgt_core.contracts import EOS, PAD, Tokens
from bgt_core.nets.fast.packing import PaddedLayout


class ClosingMarks(nn.Module):
    """Remove closing marks from sentences, or exchange them between sentences.

    Args:
        marks: (V,) bool, True for tokens that consist of marks (`Tokenizer.closing_marks`).
    """

    marks: Tensor

    def __init__(self, marks: Tensor):
        super().__init__()
        self.register_buffer("marks", marks, persistent=False)

    def closing(self, side: Tokens) -> Tensor:
        """(B, T) bool: tokens of a mark with only marks between them and EOS. The first token is never one."""
        inside = side.mask & (side.ids != EOS)
        others = inside & ~self.marks[side.ids]
        words_after = others.flip(1).cumsum(1).flip(1)  # from this token on
        at_end = inside & (words_after == 0)
        return torch.cat([torch.zeros_like(at_end[:, :1]), at_end[:, 1:]], dim=1)

    def remove(self, side: Tokens) -> Tokens:
        """The same sentences without their closing marks, each still ending in EOS; (B, T) as before."""
        if side.ids.is_meta:  # on the meta device only shapes are needed
            return side
        closing = self.closing(side)
        dropped = closing.sum(1, keepdim=True)  # (B, 1)
        last = side.mask.sum(1, keepdim=True) - 1 - dropped  # the new position of EOS
        column = torch.arange(side.ids.shape[1], device=side.ids.device)
        ids = torch.where(column < last, side.ids, torch.where(column == last, EOS, PAD))
        return Tokens.of(ids, column <= last, side.lang)

    def single(self, side: Tokens) -> tuple[Tensor, Tensor]:
        """Whether each sentence ends in exactly one closing mark, (B,) bool, and its column, (B,)."""
        return self.closing(side).sum(1) == 1, side.mask.sum(1) - 2

    def exchange(self, side: Tokens, share: float) -> Tokens:
        """The same sentences, about `share` of them with the closing mark of another sentence of the batch.

        Only sentences that end in exactly one mark give or take one. Drawn from torch's global generator.
        """
        single, column = self.single(side)
        column = column.clamp(min=0)[:, None]
        mark, other = side.ids.gather(1, column), torch.randperm(len(side.ids), device=side.ids.device)
        takes = single & single[other] & (torch.rand(len(other), device=other.device) < share)
        ids = side.ids.scatter(1, column, torch.where(takes[:, None], mark[other], mark))
        return Tokens(ids, side.mask, side.lang, side.flat_index)


class WithoutClosingMarks(nn.Module):
    """A body that does not see closing marks: whether a sentence is a question or exclamation is left to the language
    latents."""

    def __init__(self, body: nn.Module, closing: ClosingMarks):
        super().__init__()
        self.width = body.width
        self.body, self.closing = body, closing

    def forward(self, side: Tokens, layout: PaddedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, H)."""
        shorter = self.closing.remove(side)
        return self.body(shorter, None if layout is None else layout.of_mask(shorter.mask))
