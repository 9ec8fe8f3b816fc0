"""Packed tensors, which have no padding; and dropout, softmax and a loss that need less time and memory than torch's.

Layers process only real tokens; padding is added for attention, and removed afterwards. A packed tensor (R, H) contains
the R real tokens of B sentences: the rows of the padded tensor (B, T, H) one after another, without padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bgt_core.backend import compiles_shapes, linear, matmul_dtype, pad_to_grid
from bgt_core.contracts import Tokens

STEPS = 1 << 16  # number of values of a 16-bit integer; dropout draws one such integer for each unit
CHUNK = 32  # number of tokens per softmax, so that their scores fit into the cache of a CPU core
BLOCK = 1024  # maximum number of tokens whose float32 scores are in memory at once; in bf16, twice as many
SLAB = 2048  # number of rows of the weight's gradient that are computed at once, to limit memory
GPU_BLOCK = 8192  # replaces CHUNK and BLOCK on a GPU, because GPUs are fast only with large products


@dataclass(frozen=True, eq=False)
class PackedLayout:
    """The positions of the R real tokens of B sentences in a padded tensor (B, T, ...)."""

    shape: tuple[int, int]  # B, T
    flat_index: Tensor  # (R,): `Tokens.flat_index`
    mask: Tensor  # (B, T) bool, True at real tokens

    def __post_init__(self) -> None:
        """Compute all cached properties now, because compiled layers can't fill a cache."""
        if not self.whole:
            _ = self.rows, self.columns, self.fill_index, self.length_blocks

    @classmethod
    def of(cls, side: Tokens) -> PackedLayout:
        batch, length = side.ids.shape
        return cls((batch, length), side.flat_index, side.mask)

    @classmethod
    def column(cls, tokens: Tensor) -> PackedLayout:
        """Return the layout of B sentences with one token each, given the tokens, (B,)."""
        return cls((len(tokens), 1), torch.arange(len(tokens), device=tokens.device), tokens[:, None] >= 0)

    @cached_property
    def rows(self) -> Tensor:
        """The index of each token's sentence, (R,)."""
        return self.flat_index // self.shape[1]

    @cached_property
    def columns(self) -> Tensor:
        """The position of each token in its sentence, (R,)."""
        return self.flat_index % self.shape[1]

    @property
    def real(self) -> Tensor | None:
        """The attention mask of real tokens, (B, 1, 1, T) bool; None if nothing is padded."""
        return None if self.whole else self.mask[:, None, None, :]

    def pack(self, x: Tensor) -> Tensor:
        """Remove the padding of a tensor: (B, T, ...) -> (R, ...)."""
        return x.flatten(0, 1) if self.whole else x.flatten(0, 1).index_select(0, self.flat_index)

    def unpack(self, x: Tensor) -> Tensor:
        """Pad a packed tensor with zeros: (R, H) -> (B, T, H)."""
        batch, length = self.shape
        if self.whole:
            return x.view(batch, length, -1)
        return x.new_zeros(batch * length, x.shape[1]).index_copy(0, self.flat_index, x).view(batch, length, -1)

    def split(self, x: Tensor, parts: int, heads: int) -> Tensor:
        """Reshape for attention: (R, parts * H) -> (parts, B, heads, T, H / heads). Attention must mask padding,
        because padding gets arbitrary finite values, without a gradient."""
        batch, length = self.shape
        if self.whole:
            return x.view(batch, length, parts, heads, -1).permute(2, 0, 3, 1, 4)
        part, head = (torch.arange(count, device=x.device) for count in (parts, heads))
        source = (self.fill_index.view(batch, 1, length) * parts + part[:, None, None, None]) * heads + head[:, None]
        moved = x.reshape(-1, x.shape[1] // (parts * heads)).index_select(0, source.flatten())
        return moved.view(parts, batch, heads, length, -1)

    def join(self, x: Tensor) -> Tensor:
        """Reshape the output of attention: (B, heads, T, H / heads) -> (R, H)."""
        heads, length = x.shape[1:3]
        if self.whole:
            return x.transpose(1, 2).reshape(self.shape[0] * self.shape[1], -1)
        head = torch.arange(heads, device=x.device)
        source = (self.rows[:, None] * heads + head) * length + self.columns[:, None]  # (R, heads)
        return x.reshape(-1, x.shape[-1]).index_select(0, source.flatten()).view(len(self.flat_index), -1)

    def repeat(self, z: Tensor) -> Tensor:
        """Copy the row of each sentence to all of its tokens: (B, ...) -> (R, ...)."""
        return z.index_select(0, self.rows)

    def sum(self, x: Tensor) -> Tensor:
        """Sum over the tokens of each sentence, in float32 or float64: (R, ...) -> (B, ...)."""
        x = exact(x)
        return x.new_zeros(self.shape[0], *x.shape[1:]).index_add(0, self.rows, x)

    def mean(self, x: Tensor) -> Tensor:
        """Average over the tokens of each sentence: (R, H) -> (B, H)."""
        return self.sum(x) / self.mask.sum(1, keepdim=True)

    @cached_property
    def whole(self) -> bool:
        """Whether all sentences have T tokens, so that there is no padding to remove."""
        return len(self.flat_index) == self.shape[0] * self.shape[1]

    @cached_property
    def length_blocks(self) -> list[tuple[slice, slice, PackedLayout]]:
        """Group adjacent sentences of similar length in blocks: (rows of sentences, tokens, layout) for each block.

        The cost of attention grows with the square of the padded length. So on a CPU, a new block begins at a sentence
        if it and all later sentences are at most half as long as the longest sentence of the current block. On a GPU,
        there is only one block. To find several, the CPU would have to wait until the GPU has computed the lengths.
        """
        if self.whole or self.mask.device.type != "cpu":
            return [(slice(None), slice(None), self)]
        lengths = self.mask.sum(1)
        longest = lengths.flip(0).cummax(0).values.flip(0).tolist()  # longest[i] is the maximum of lengths[i:]
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
        """For each position of the padded tensor, the index of its token; at padding, of the last token before it."""
        return (self.mask.flatten().cumsum(0) - 1).clamp(min=0)


class PaddedLayout(PackedLayout):
    """A layout that keeps padding: its packed tensors are (B * T, ...). So all shapes depend only on B and T, not on
    the number of real tokens. Exported and compiled models need this."""

    whole = True

    @classmethod
    def of_mask(cls, mask: Tensor) -> PaddedLayout:
        """Return the layout of B sentences with the mask of real tokens (B, T)."""
        batch, length = mask.shape
        return cls((batch, length), torch.arange(batch * length), mask)

    @property
    def columns(self) -> Tensor:
        """The position of each token in its sentence, padding included, (B * T,)."""
        batch, length = self.shape
        return torch.arange(length).expand(batch, length).flatten()

    @property
    def real(self) -> Tensor:
        """The attention mask of real tokens, (B, 1, 1, T) bool."""
        return self.mask[:, None, None, :]

    def sum(self, x: Tensor) -> Tensor:
        """Sum over the real tokens of each sentence, in float32 or float64: (B * T, ...) -> (B, ...)."""
        real = self.mask.view(*self.shape, *[1] * (x.dim() - 1))
        return exact(x).unflatten(0, self.shape).where(real, 0).sum(1)


def exact(x: Tensor) -> Tensor:
    """Convert x to float32, for sums and softmax; float64 stays float64."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def dropout(x: Tensor, probability: float) -> Tensor:
    """Set each unit to zero with this probability, and scale the other units so that the expectation does not change.
    On a CPU, the probability is rounded to a multiple of 1/65536."""
    if x.device.type != "cpu":
        return F.dropout(x, probability)
    words = torch.randint(-(2**63), 2**63 - 1, ((x.numel() + 3) // 4,))  # a 64-bit word has four draws of 16 bits
    draws = words.view(torch.int16)[: x.numel()].view(x.shape)
    dropped = round(probability * STEPS)
    kept = draws.ge_(dropped - STEPS // 2).to(x.dtype).mul_(STEPS / (STEPS - dropped))
    return x * kept


def softmax(scores: Tensor) -> Tensor:
    """Compute the softmax over the last dimension in float32, or in float64 for float64 scores."""
    return _ShortSoftmax.apply(exact(scores))


class _ShortSoftmax(torch.autograd.Function):
    """Softmax over the last dimension. For fewer than 16 columns on a CPU, torch's softmax does not use vector
    instructions, and is six times slower."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        probs = (scores - scores.amax(-1, keepdim=True)).exp_()
        probs.div_(probs.sum(-1, keepdim=True))
        ctx.save_for_backward(probs)
        return probs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (probs,) = ctx.saved_tensors
        weighted = grad * probs
        return weighted.addcmul_(probs, weighted.sum(-1, keepdim=True), value=-1)


def nll(
    features: Tensor, weight: Tensor, offset: Tensor | None, target: Tokens, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Compute the label-smoothed cross-entropy of scores = features (R, H) @ weight (V, H).T + offset, in nats.

    The offset (B, V) is added to the scores of all tokens of a sentence. The loss is a scalar: the sum over tokens of
    (1 - smoothing) * NLL + smoothing * (mean of -log p over the vocabulary). The NLL of each sentence is returned too,
    (B,), without smoothing or gradient. The forward pass also computes the gradients, in blocks of tokens. So
    memory does not grow with R x V, and no score is computed twice.
    """
    layout = PackedLayout.of(target)
    x, ids = features.to(matmul_dtype(features)), layout.pack(target.ids)
    loss, nats = _FusedNLL.apply(x, weight, offset, layout.rows, ids, smoothing, torch.is_grad_enabled())
    return loss, layout.sum(nats)


class _FusedNLL(torch.autograd.Function):
    """Compute the loss and the NLL of each token. The gold score is the score of the target token. The NLL is
    logsumexp - gold score. The loss is the sum over tokens of logsumexp - (1 - smoothing) * gold score - smoothing *
    mean score.

    The backward pass scales the stored gradients in place, so torch refuses a second backward pass.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        offset: Tensor | None,
        rows: Tensor,
        target: Tensor,
        smoothing: float,
        learns: bool,
    ) -> tuple[Tensor, Tensor]:
        """Compute the loss: x (R, H), weight (V, H), offset (B, V) or None, target (R,); rows (R,) are the indices of
        the tokens' sentences.

        `learns`: whether gradients were enabled in the caller; torch always disables them inside this method."""
        wants_gradient = learns and any(ctx.needs_input_grad[:3])
        dtype = torch.promote_types(x.dtype, torch.float32)  # for softmax and sums; products have x's dtype
        block = BLOCK * 4 // x.itemsize if x.device.type == "cpu" else GPU_BLOCK
        used = weight.to(x.dtype)
        shared = None if offset is None else offset.to(dtype)
        grad_x, grad_weight = torch.empty_like(x), torch.empty_like(weight)
        grad_offset = None if offset is None else torch.zeros_like(offset, dtype=dtype)
        gold, total = x.new_empty(2, len(x), dtype=dtype)
        padded = pad_to_grid(x) if compiles_shapes(x) else x
        for first in range(0, len(x), block):
            part = slice(first, min(first + block, len(x)))
            features, count = padded[first : first + block], part.stop - first
            gradients = linear(features, used)
            gradients[count:] = 0
            to_offset = grad_offset if wants_gradient else None
            gold[part], total[part] = _scores_to_gradients_(
                gradients[:count], shared, rows[part], target[part], smoothing, to_offset
            )
            if wants_gradient:
                grad_x[part] = linear(gradients, used.T)[:count]
                for row in range(0, len(weight), SLAB):
                    slab = slice(row, row + SLAB)
                    product = gradients[:, slab].T @ features
                    grad_weight[slab] = grad_weight[slab].add_(product) if first else product
            del gradients  # free their memory before the next block
        nats, loss = total - gold, (total - (1 - smoothing) * gold).sum()
        if smoothing:  # the mean score is linear in x and weight, so this needs no further pass over the scores
            even, direction, share = x.sum(0, dtype=dtype), weight.sum(0, dtype=dtype), smoothing / len(weight)
            loss -= share * (even @ direction)
            grad_x -= share * direction
            grad_weight -= share * even
            if offset is not None and grad_offset is not None:
                counts = torch.zeros_like(offset[:, 0], dtype=dtype)
                counts.index_add_(0, rows, torch.ones_like(x[:, 0], dtype=dtype))  # count the tokens of each sentence
                loss -= share * (counts @ offset.sum(1, dtype=dtype))
                grad_offset -= share * counts[:, None]
        ctx.save_for_backward(grad_x, grad_weight, grad_offset)
        ctx.mark_non_differentiable(nats)
        return loss, nats

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_x, grad_weight, grad_offset = ctx.saved_tensors
        if grad_offset is not None:
            grad_offset.mul_(grad)
        to_weight = grad_weight.mul_(grad) if ctx.needs_input_grad[1] else None
        return grad_x.mul_(grad), to_weight, grad_offset, None, None, None, None


def _scores_to_gradients_(
    scores: Tensor, offset: Tensor | None, rows: Tensor, target: Tensor, smoothing: float, grad_offset: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Replace the scores of n tokens, (n, V), by the gradients of the loss. Return gold scores and logsumexps, (n,).

    `scores` do not yet include the offset (B, V). Its gradient is added to `grad_offset`. The caller adds the gradient
    of the loss term that has the mean score. On a CPU, softmax is computed for few tokens at once, so that it is fast.
    """
    dtype = torch.promote_types(scores.dtype, torch.float32)
    gold, top, peak = scores.new_empty(3, len(scores), 1, dtype=dtype)
    less = torch.full_like(gold, smoothing - 1)
    chunk = CHUNK if scores.device.type == "cpu" else GPU_BLOCK
    parts = [part.split(chunk) for part in (scores, rows, target[:, None], gold, top, peak, less)]
    for gradient, row, piece, gold_part, top_part, peak_part, less_part in zip(*parts, strict=True):
        score = gradient.to(dtype)  # copies 16-bit scores; float32 scores share the memory of `gradient`
        if offset is not None:
            score += offset.index_select(0, row)
        torch.gather(score, 1, piece, out=gold_part)
        torch.amax(score, 1, keepdim=True, out=top_part)
        probs = torch.softmax(score, 1, out=score)
        torch.amax(probs, 1, keepdim=True, out=peak_part)
        probs.scatter_add_(1, piece, less_part)
        if grad_offset is not None:
            grad_offset.index_add_(0, row, probs)
        if probs.dtype != gradient.dtype:
            gradient.copy_(probs)
    return gold.squeeze(1), (top - peak.log_()).squeeze(1)  # logsumexp, exact even if the gold token is very unlikely
