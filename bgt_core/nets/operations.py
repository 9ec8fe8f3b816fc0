"""The most frequent operations, in less time and memory than torch's own, which give the same numbers to rounding.

tests/nets/test_operations.py computes every recipe by plain PyTorch too. Two more fast forms are chosen by an argument:
a layout of positions (`nets.packing`: without padding, or with), and a cache of keys and values in a search
(`nets.decoder.KVCache`).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.backend import accumulates, compiles_shapes, linear, matmul_dtype, pad_to_grid
from bgt_core.contracts import Tokens
from bgt_core.nets.packing import PackedLayout

STEPS = 1 << 16  # a 16-bit draw decides each unit of dropout, four draws per random word
CHUNK = 32  # tokens per softmax: at a vocabulary of 8k their scores fit a CPU core's cache
BLOCK = 1024  # tokens whose scores, and then gradients, are in memory; twice that in bf16
SLAB = 2048  # rows of dW per product; a whole second dW would be the largest tensor in memory
GPU_BLOCK = 8192  # CHUNK and BLOCK on devices that need large products


def exact(x: Tensor) -> Tensor:
    """x in single precision or better."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def dropout(x: Tensor, probability: float) -> Tensor:
    """Zero each unit with this probability, and scale the others so that the expectation stays.

    On a CPU the probability is rounded to a multiple of 1/65536; the scale uses the rounded one.
    """
    if x.device.type != "cpu":
        return F.dropout(x, probability)
    words = torch.randint(-(2**63), 2**63 - 1, ((x.numel() + 3) // 4,))
    draws = words.view(torch.int16)[: x.numel()].view(x.shape)
    dropped = round(probability * STEPS)
    kept = draws.ge_(dropped - STEPS // 2).to(x.dtype).mul_(STEPS / (STEPS - dropped))
    return x * kept


def softmax(scores: Tensor) -> Tensor:
    """Softmax over the last dimension, in single precision or better."""
    return _ShortSoftmax.apply(exact(scores))


class _ShortSoftmax(torch.autograd.Function):
    """Softmax and its gradient in four passes over memory forward and three backward; autograd of each operation would
    need a dozen. On a CPU torch's own does not vectorise over fewer than 16 columns, and is six times slower there."""

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


def lookup(table: nn.Embedding, ids: Tensor) -> Tensor:
    """Rows of a table: ids of any shape -> (*shape, H).

    Autograd makes a dense gradient, as large as the table, for each use of a table, and adds them up: a step with eight
    uses of one table fills, moves and adds it eight times. Here each use adds to `.grad` itself while `backward` runs.
    The sum is the same. Gradients for `torch.autograd.grad`, and those of a table that is not a parameter, go through
    autograd as usual. Hooks on a table's own gradient are not called.
    """
    return _Lookup.apply(table.weight, ids, table.padding_idx)


def _gathers(weight: Tensor) -> bool:
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
        in_place = _gathers(weight)
        if in_place and weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        gathered = weight.grad if in_place else torch.zeros_like(weight)
        others = None if ctx.padding is None else gathered[ctx.padding].clone()  # the gradient of a tied output layer
        gathered.index_add_(0, ids.flatten(), grad.flatten(0, -2).to(gathered.dtype))
        if others is not None:
            gathered[ctx.padding] = others
        return (None if in_place else gathered), None, None


def nll(
    features: Tensor, weight: Tensor, offset: Tensor | None, target: Tokens, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Label-smoothed cross-entropy of scores = features @ weight.T + offset.

    Only the scores of a few hundred tokens are in memory, and their gradient is computed at once. So memory does not
    grow with T x V, and nothing is computed twice.

    Args:
        features: For each token, (N, H).
        weight: (V, H).
        offset: Added to the scores of a sentence's tokens, (B, V), or None.
        target: B sentences of N tokens.
        smoothing: From 0 to below 1.

    Returns:
        The scalar sum over tokens of (1 - smoothing) * NLL + smoothing * mean over V of -log p, and each sentence's
        plain NLL without gradient, (B,), both in nats.
    """
    layout = PackedLayout.of(target)
    x, ids = features.to(matmul_dtype(features)), layout.pack(target.ids)
    loss, nats = _FusedNLL.apply(x, weight, offset, layout.rows, ids, smoothing, torch.is_grad_enabled())
    return loss, layout.sum(nats)


class _FusedNLL(torch.autograd.Function):
    """Sum of logsumexp - (1 - smoothing) * gold score - smoothing * mean score; each token's logsumexp - gold score.

    The backward pass scales the gradients in place, so it can run only once; torch rejects a second one.
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
        """x (N, H) in the dtype of products, weight (V, H), offset (B, V) or None, rows (N,) each token's sentence;
        `learns`: whether gradients are on, which can't be seen in here."""
        wants_gradient = learns and any(ctx.needs_input_grad[:3])
        dtype = torch.promote_types(x.dtype, torch.float32)  # of softmax and sums, whatever the dtype of products
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
            del gradients  # freed before the next block
        nats, loss = total - gold, (total - (1 - smoothing) * gold).sum()
        if smoothing:
            _smooth_(smoothing, x, weight, offset, rows, loss, (grad_x, grad_weight, grad_offset))
        ctx.weight = weight
        ctx.save_for_backward(grad_x, grad_weight, grad_offset)
        ctx.mark_non_differentiable(nats)
        return loss, nats

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_x, to_weight, grad_offset = ctx.saved_tensors
        if grad_offset is not None:
            grad_offset.mul_(grad)
        weight = ctx.weight
        if not ctx.needs_input_grad[1]:
            to_weight = None
        elif not _gathers(weight):
            to_weight.mul_(grad)
        else:  # as `lookup`, without a second dense gradient of a tied table
            weight.grad = to_weight.mul_(grad) if weight.grad is None else weight.grad.addcmul_(to_weight, grad)
            to_weight = None
        return grad_x.mul_(grad), to_weight, grad_offset, None, None, None, None


def _scores_to_gradients_(
    scores: Tensor,
    offset: Tensor | None,
    rows: Tensor,
    target: Tensor,
    smoothing: float,
    grad_offset: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Replace scores of n tokens without their offset, (n, V), by their gradients in the loss of `_FusedNLL`, without
    the part of `_smooth_`; return each token's gold score and logsumexp, (n,).

    offset (B, V), rows (n,) each token's sentence, target (n,); the offset's gradient is added to `grad_offset`. On a
    CPU every pass covers few tokens, which stay in its cache.
    """
    dtype = torch.promote_types(scores.dtype, torch.float32)
    gold, top, peak = scores.new_empty(3, len(scores), 1, dtype=dtype)
    less = torch.full_like(gold, smoothing - 1)
    chunk = CHUNK if scores.device.type == "cpu" else GPU_BLOCK
    parts = [part.split(chunk) for part in (scores, rows, target[:, None], gold, top, peak, less)]
    for gradient, row, piece, gold_part, top_part, peak_part, less_part in zip(*parts, strict=True):
        score = gradient.to(dtype)  # a copy if in 16 bits
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
    return gold.squeeze(1), (top - peak.log_()).squeeze(1)  # exact, however unlikely the gold token is


def _smooth_(
    smoothing: float,
    x: Tensor,
    weight: Tensor,
    offset: Tensor | None,
    rows: Tensor,
    loss: Tensor,
    gradients: tuple[Tensor, Tensor, Tensor | None],
) -> None:
    """Subtract `smoothing` * the mean score over V from the loss, and its gradient from those of x, weight and offset,
    all in place. The mean is linear in x, so no pass over the scores is needed."""
    grad_x, grad_weight, grad_offset = gradients
    dtype = loss.dtype
    even, share = x.sum(0, dtype=dtype), smoothing / len(weight)
    direction = weight.sum(0, dtype=dtype)
    loss -= share * (even @ direction)
    grad_x -= share * direction
    grad_weight -= share * even
    if offset is not None and grad_offset is not None:
        counts = torch.zeros_like(offset[:, 0], dtype=dtype).index_add_(0, rows, torch.ones_like(x[:, 0], dtype=dtype))
        loss -= share * (counts @ offset.sum(1, dtype=dtype))
        grad_offset -= share * counts[:, None]
