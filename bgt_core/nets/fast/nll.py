"""The negative log-likelihood of tokens without a (tokens, vocabulary) matrix of scores."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bgt_core.backend import compiles_shapes, linear, matmul_dtype, pad_to_grid
from bgt_core.contracts import Tokens
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.fast.tables import add_gradient

CHUNK = 32  # tokens per softmax: at a vocabulary of 8k their scores fit a CPU core's cache
BLOCK = 1024  # tokens whose scores, and then gradients, are in memory; twice that in bf16
SLAB = 2048  # rows of dW per product; a whole second dW would be the largest tensor in memory
GPU_BLOCK = 8192  # CHUNK and BLOCK on devices that need large products


def nll(
    features: Tensor, weight: Tensor, offset: Tensor | None, target: Tokens, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Label-smoothed cross-entropy of scores = features @ weight.T + offset.

    features (N, H), weight (V, H), offset (B, V) or None -> loss, the scalar sum of (1 - smoothing) * NLL + smoothing *
    mean over V of -log p, and each sentence's plain NLL, (B,), in nats. Only the scores of a few hundred tokens are in
    memory, and their gradient is computed at once. So memory does not grow with T x V, and nothing is computed twice.
    """
    layout = PackedLayout.of(target)
    x, ids = features.to(matmul_dtype(features)), layout.pack(target.ids)
    loss, nats = _FusedNLL.apply(x, weight, offset, layout.rows, ids, smoothing, torch.is_grad_enabled())
    return loss, layout.sum(nats)


def scores_to_gradients_(
    scores: Tensor,
    offset: Tensor | None,
    rows: Tensor,
    target: Tensor,
    smoothing: float,
    grad_offset: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Replace scores of n tokens without their offset, (n, V), by their gradients in the loss of `_FusedNLL`, without
    the part of `smooth`; return each token's gold score and logsumexp, (n,).

    offset (B, V), rows (n,) each token's sentence, target (n,); the offset's gradient is added to `grad_offset`. On a
    CPU every pass covers few tokens, which stay in its cache.
    """
    exact = torch.promote_types(scores.dtype, torch.float32)
    gold, top, peak = scores.new_empty(3, len(scores), 1, dtype=exact)
    less = torch.full_like(gold, smoothing - 1)
    chunk = CHUNK if scores.device.type == "cpu" else GPU_BLOCK
    parts = [part.split(chunk) for part in (scores, rows, target[:, None], gold, top, peak, less)]
    for gradient, row, piece, gold_part, top_part, peak_part, less_part in zip(*parts, strict=True):
        score = gradient.to(exact)  # a copy if in 16 bits
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


def smooth(
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
    exact = loss.dtype
    even, share = x.sum(0, dtype=exact), smoothing / len(weight)
    direction = weight.sum(0, dtype=exact)
    loss -= share * (even @ direction)
    grad_x -= share * direction
    grad_weight -= share * even
    if offset is not None and grad_offset is not None:
        counts = torch.zeros_like(offset[:, 0], dtype=exact).index_add_(0, rows, torch.ones_like(x[:, 0], dtype=exact))
        loss -= share * (counts @ offset.sum(1, dtype=exact))
        grad_offset -= share * counts[:, None]


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
        exact = torch.promote_types(x.dtype, torch.float32)  # softmax and sums, whatever the dtype of products
        block = BLOCK * 4 // x.itemsize if x.device.type == "cpu" else GPU_BLOCK
        used = weight.to(x.dtype)
        shared = None if offset is None else offset.to(exact)
        grad_x, grad_weight = torch.empty_like(x), torch.empty_like(weight)
        grad_offset = None if offset is None else torch.zeros_like(offset, dtype=exact)
        gold, total = x.new_empty(2, len(x), dtype=exact)
        padded = pad_to_grid(x) if compiles_shapes(x) else x
        for first in range(0, len(x), block):
            part = slice(first, min(first + block, len(x)))
            features, count = padded[first : first + block], part.stop - first
            gradients = linear(features, used)
            gradients[count:] = 0
            work = (
                gradients[:count],
                shared,
                rows[part],
                target[part],
                smoothing,
                grad_offset if wants_gradient else None,
            )
            gold[part], total[part] = scores_to_gradients_(*work)
            if wants_gradient:
                grad_x[part] = linear(gradients, used.T)[:count]
                for row in range(0, len(weight), SLAB):
                    slab = slice(row, row + SLAB)
                    product = gradients[:, slab].T @ features
                    grad_weight[slab] = grad_weight[slab].add_(product) if first else product
            del gradients, work  # freed before the next block
        nats, loss = total - gold, (total - (1 - smoothing) * gold).sum()
        if smoothing:
            smooth(smoothing, x, weight, offset, rows, loss, (grad_x, grad_weight, grad_offset))
        ctx.weight = weight
        ctx.save_for_backward(grad_x, grad_weight, grad_offset)
        ctx.mark_non_differentiable(nats)
        return loss, nats

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_x, grad_weight, grad_offset = ctx.saved_tensors
        if grad_offset is not None:
            grad_offset.mul_(grad)
        to_weight = add_gradient(ctx.weight, grad_weight, grad) if ctx.needs_input_grad[1] else None
        return grad_x.mul_(grad), to_weight, grad_offset, None, None, None, None
