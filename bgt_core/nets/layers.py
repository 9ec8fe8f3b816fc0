"""The layers of Transformers: embeddings with positions, attention, feed-forward layers and encoder layers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from bgt_core.backend import Linear, matmul_dtype
from bgt_core.contracts import EOS, PAD, Tokens
from bgt_core.errors import UsageError, check_least
from bgt_core.nets.operations import PackedLayout, dropout, exact, softmax


class Dropout(nn.Module):
    """Dropout that is active only in training: see `operations.dropout`."""

    def __init__(self, probability: float):
        super().__init__()
        if not 0 <= probability < 1:
            raise UsageError(f"dropout {probability} must be from 0 to below 1")
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.probability) if self.training and self.probability else x


@dataclass(eq=False)
class KeyValues:
    """The keys and values that one self-attention layer of a decoder has computed so far in a search."""

    store: Tensor  # (2, B, heads, room, H/heads): keys and values, and free room for later tokens
    used: int = 0  # number of tokens in `store`

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values of n tokens, (B, heads, n, H/heads). Return all S so far, (B, heads, S, H/heads)."""
        start, self.used = self.used, self.used + keys.shape[2]
        if self.used > self.store.shape[3]:  # double the size, so that a token is copied about once on average
            grown = keys.new_empty(2, *keys.shape[:2], 2 * self.used, keys.shape[3])
            grown[:, :, :, :start] = self.store[:, :, :, :start]
            self.store = grown
        self.store[0, :, :, start : self.used], self.store[1, :, :, start : self.used] = keys, values
        return self.store[0, :, :, : self.used], self.store[1, :, :, : self.used]

    def select(self, rows: Tensor) -> None:
        """Keep only the hypotheses of the sentences with these indices, (B',)."""
        self.store = self.store.index_select(1, rows)


# cuDNN's attention is not in this list: on an H100, it takes 16 ms to plan a new shape, which most batches have.
GPU_ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
BLOCK_SCORES = 2**25  # maximum number of attention scores in memory at once


def make_embedding(vocab_size: int, width: int) -> nn.Embedding:
    """Return token embeddings (V, H), initialised from N(0, 1/H), with a row of zeros for padding."""
    check_least(1, width=width)
    table = nn.Embedding(vocab_size, width, padding_idx=PAD)
    nn.init.normal_(table.weight, std=width**-0.5)
    with torch.no_grad():
        table.weight[PAD].zero_()
    return table


def xavier_linear(inputs: int, outputs: int, bias: bool = True) -> Linear:
    """Return a Linear with Xavier-initialised weights and a bias of zero, as in the BGT authors' code."""
    layer = Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def shift_right(ids: Tensor) -> Tensor:
    """Return the decoder's input for teacher forcing: EOS, then all tokens except the last, (B, T) -> (B, T)."""
    return F.pad(ids[:, :-1], (1, 0), value=EOS)


def sinusoids(start: int, length: int, like: Tensor) -> Tensor:
    """Return the sinusoidal encodings of the positions from `start` to `start + length - 1`, (length, H). In each row,
    the sines come before the cosines. Width, device and precision are the same as for `like` (..., H)."""
    half = like.shape[-1] // 2
    rates = torch.exp(
        torch.arange(half, dtype=torch.float32, device=like.device) * (-math.log(10_000) / max(1, half - 1))
    )
    angles = torch.arange(start, start + length, dtype=torch.float32, device=like.device)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(like.dtype)


class TokenAndPositionEmbedding(nn.Module):
    """Embed tokens: sqrt(H) times the embedding of the token, plus the encoding of its position, then dropout."""

    def __init__(self, table: nn.Embedding, dropout: float):
        super().__init__()
        if table.embedding_dim % 2:
            raise UsageError(f"width {table.embedding_dim} must be even, because half of the units encode sines")
        self.table, self.dropout = table, Dropout(dropout)

    def forward(self, ids: Tensor, layout: PackedLayout, start: int = 0) -> Tensor:
        """Embed token ids: (R,) -> (R, H), in the dtype of matrix products. A sentence's first position is `start`."""
        words = self.table(ids) * math.sqrt(self.table.embedding_dim)
        x = words + sinusoids(start, layout.shape[1], words)[layout.columns]
        return self.dropout(x.to(matmul_dtype(x)))


def blocks_of(q: Tensor, k: Tensor) -> list[slice]:
    """Split T queries into blocks. Attention to S keys is computed block by block, so that memory does not grow with
    T * S. Texts of up to about a thousand words need only one block."""
    if torch.compiler.is_compiling():  # use one block, because a compiled graph must work for any T
        return [slice(None)]
    size = max(1, BLOCK_SCORES // (q.shape[0] * q.shape[1] * k.shape[2]))
    return [slice(start, start + size) for start in range(0, q.shape[2], size)]


def attend(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Tensor:
    """Scaled dot-product attention: q (B, heads, T, H/heads), k and v (B, heads, S, H/heads) -> the shape of q.

    `allowed`, broadcastable to (B, heads, T, S), is True where a query may attend to a key."""
    if q.is_cuda:
        with sdpa_kernel(GPU_ATTENTION):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
    if len(blocks := blocks_of(q, k)) > 1:
        rows = [allowed if allowed is None or allowed.shape[-2] == 1 else allowed[..., block, :] for block in blocks]
        return torch.cat([attend(q[:, :, block], k, v, row) for block, row in zip(blocks, rows, strict=True)], dim=2)
    # On a CPU, batched products are several times faster than torch's attention, if there are many small matrices.
    scores = exact(q @ k.transpose(-1, -2)).mul_(q.shape[-1] ** -0.5)
    if allowed is not None:  # add a float32 mask, because masked_fill and adding a 16-bit mask are slower
        scores.add_(torch.zeros_like(allowed, dtype=scores.dtype).masked_fill_(~allowed, -math.inf))
    return softmax(scores).to(v.dtype) @ v


class SelfAttention(nn.Module):
    """Multi-head self-attention. In a search, `cache` contains the keys and values of earlier tokens."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        if heads < 1 or width % heads:
            raise UsageError(f"width {width} must be a multiple of the number of heads; {heads} heads do not divide it")
        self.heads = heads
        self.qkv, self.out = xavier_linear(width, 3 * width), xavier_linear(width, width)

    def forward(
        self, x: Tensor, layout: PackedLayout, allowed: Tensor | None, cache: KeyValues | None = None
    ) -> Tensor:
        """Attend within sentences: x (R, H), allowed (a mask, broadcast to (B, heads, T, S)) -> (R, H)."""
        qkv, blocks, mixed = self.qkv(x), layout.length_blocks, []
        # Use `split`: in the backward pass, each slice would allocate a gradient as large as `qkv`.
        parts = qkv.split([len(part.flat_index) for *_, part in blocks]) if len(blocks) > 1 else [qkv]
        for of_block, (rows, _, part) in zip(parts, blocks, strict=True):
            here = allowed
            if allowed is not None and part is not layout:
                here = allowed.expand(layout.shape[0], -1, -1, -1)[rows, :, : part.shape[1], : part.shape[1]]
            q, k, v = part.split(of_block, 3, self.heads)  # (B, heads, T, H/heads)
            if cache is not None:
                k, v = cache.extend(k, v)
            mixed.append(part.join(attend(q, k, v, here)))
        return self.out(torch.cat(mixed))


class CrossAttention(nn.Module):
    """Multi-head attention to the states of a source sentence, or to the slots of a `Memory`."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q, self.kv = xavier_linear(width, width), xavier_linear(width, 2 * width)
        self.out = xavier_linear(width, width)

    def keys_values(self, states: Tensor, layout: PackedLayout) -> Tensor:
        """Compute the keys and values of R source tokens: states (R, H) -> (2, B, heads, S, H/heads)."""
        return layout.split(self.kv(states), 2, self.heads)

    def forward(self, x: Tensor, layout: PackedLayout, keys_values: Tensor, real: Tensor | None) -> Tensor:
        """Attend to the source: x (R, H) -> (R, H). `real` (B, 1, 1, S) is False where the source has padding."""
        (q,), (k, v) = layout.split(self.q(x), 1, self.heads), keys_values
        return self.out(layout.join(attend(q, k, v, real)))


class FeedForward(nn.Sequential):
    """A feed-forward layer for each token: Linear, ReLU, Linear; (R, H) -> (R, H)."""

    def __init__(self, width: int, ffn_dim: int):
        super().__init__(xavier_linear(width, ffn_dim), nn.ReLU(), xavier_linear(ffn_dim, width))


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward layer, each with a residual connection followed by LayerNorm."""

    def __init__(self, width: int, ffn_dim: int, heads: int, dropout: float):
        super().__init__()
        self.width = width
        self.attention, self.feed = SelfAttention(width, heads), FeedForward(width, ffn_dim)
        self.norm_attention, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, layout: PackedLayout, allowed: Tensor | None) -> Tensor:
        """Compute the next states of R tokens: (R, H) -> (R, H)."""
        x = self.norm_attention(x + self.dropout(self.attention(x, layout, allowed)))
        return self.norm_feed(x + self.dropout(self.feed(x)))


class Transformer(nn.Module):
    """A Transformer encoder: the mean of the last layer's states over all tokens, EOS included (BGT paper, sec. 3)."""

    def __init__(self, table: nn.Embedding, layers: int, ffn_dim: int, heads: int, dropout: float):
        super().__init__()
        self.width = table.embedding_dim
        self.words = TokenAndPositionEmbedding(table, dropout)
        self.layers = nn.ModuleList(EncoderLayer(self.width, ffn_dim, heads, dropout) for _ in range(layers))

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Encode sentences as vectors: Tokens (B, T) -> (B, H)."""
        layout = layout or PackedLayout.of(side)
        return layout.mean(self.states(side, layout))

    def states(self, side: Tokens, layout: PackedLayout) -> Tensor:
        """Return the last layer's state of each token: Tokens (B, T) -> (R, H)."""
        x = self.words(layout.pack(side.ids), layout)
        for layer in self.layers:
            x = layer(x, layout, layout.real)
        return x
