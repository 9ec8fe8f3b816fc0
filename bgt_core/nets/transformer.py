"""The Transformer: its parts, the encoder's body, and the decoder that reads a latent vector."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.backend import Linear, matmul_dtype
from bgt_core.contracts import EOS, PAD, OutputLayer, Role, Tokens
from bgt_core.errors import UsageError
from bgt_core.nets.dropout import Dropout
from bgt_core.nets.kv_cache import KeyValues, KVCache
from bgt_core.nets.prediction import SentencePrediction
from bgt_core.nets.packing import Layout


def embedding(vocab_size: int, width: int) -> nn.Embedding:
    """A piece table (V, H), N(0, 1/H) with a zero row for padding."""
    if width < 1:
        raise UsageError(f"width {width} must be at least 1")
    table = nn.Embedding(vocab_size, width, padding_idx=PAD)
    nn.init.normal_(table.weight, std=width**-0.5)
    with torch.no_grad():
        table.weight[PAD].zero_()
    return table


def linear(inputs: int, outputs: int, bias: bool = True) -> Linear:
    """A Linear with Xavier weights and zero bias, as the released code starts it."""
    layer = Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def sinusoids(start: int, length: int, like: Tensor) -> Tensor:
    """Fixed positions start..start+length-1: sines, then cosines, (length, H)."""
    half = like.shape[-1] // 2
    rates = torch.exp(torch.arange(half, device=like.device) * (-math.log(10_000) / max(1, half - 1)))
    angles = torch.arange(start, start + length, device=like.device)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(like.dtype)


class TokenAndPositionEmbedding(nn.Module):
    """Piece ids -> embedding * sqrt(H) + positions, with dropout."""

    def __init__(self, table: nn.Embedding, dropout: float):
        super().__init__()
        if table.embedding_dim % 2:
            raise UsageError(f"width {table.embedding_dim} must be even: half of each position are sines")
        self.table, self.dropout = table, Dropout(dropout)

    def forward(self, ids: Tensor, layout: Layout, start: int = 0) -> Tensor:
        """ids (N,), the first column at position `start` -> (N, H), in the dtype of products."""
        words = self.table(ids) * math.sqrt(self.table.embedding_dim)
        x = words + sinusoids(start, layout.shape[1], words)[layout.columns]
        return self.dropout(x.to(matmul_dtype(x)))


class _ShortSoftmax(torch.autograd.Function):
    """Four passes forward and three back, where autograd would make a dozen of these lines."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        chances = (scores - scores.amax(-1, keepdim=True)).exp_()
        chances.div_(chances.sum(-1, keepdim=True))
        ctx.save_for_backward(chances)
        return chances

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (chances,) = ctx.saved_tensors
        weighted = grad * chances
        return weighted.addcmul_(chances, weighted.sum(-1, keepdim=True), value=-1)


def short_softmax(scores: Tensor) -> Tensor:
    """Softmax over the last dimension, in single precision or better.

    On a CPU torch's own does not vectorise over fewer than 16 columns, and is six times slower there.
    """
    return _ShortSoftmax.apply(scores.to(torch.promote_types(scores.dtype, torch.float32)))


class SelfAttention(nn.Module):
    """Multi-head self-attention; `cache` holds the keys and values of the steps before."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        if heads < 1 or width % heads:
            raise UsageError(f"width {width} is not a multiple of {heads} heads; choose heads that divide it")
        self.heads = heads
        self.qkv, self.out = linear(width, 3 * width), linear(width, width)

    def forward(self, x: Tensor, layout: Layout, allowed: Tensor | None, cache: KeyValues | None = None) -> Tensor:
        """x (N, H), allowed broadcastable to (B, heads, T, S) -> (N, H)."""
        qkv, mixed = self.qkv(x), []
        for rows, pieces, part in layout.blocks:
            here = allowed
            if allowed is not None and part is not layout:
                here = allowed.expand(layout.shape[0], -1, -1, -1)[rows, :, : part.shape[1], : part.shape[1]]
            mixed.append(self.mix(qkv[pieces], part, here, cache))
        return self.out(torch.cat(mixed))

    def mix(self, qkv: Tensor, layout: Layout, allowed: Tensor | None, cache: KeyValues | None) -> Tensor:
        """(N, 3 * H) -> (N, H)."""
        q, k, v = layout.split(qkv, 3, self.heads)  # (B, heads, T, H/heads)
        if cache is not None:
            k, v = cache.extend(k, v)
        if qkv.is_cuda:
            return layout.join(F.scaled_dot_product_attention(q, k, v, attn_mask=allowed))
        # many tiny products: plain batched matmuls are several times faster than SDPA on a CPU
        scores = (q @ k.transpose(-1, -2)).mul_(q.shape[-1] ** -0.5)
        if allowed is not None:  # added: masked_fill is slower, and again on the way back
            scores.add_(torch.zeros_like(allowed, dtype=scores.dtype).masked_fill_(~allowed, -math.inf))
        return layout.join(short_softmax(scores).to(v.dtype) @ v)


class FeedForward(nn.Sequential):
    def __init__(self, width: int, inner: int):
        super().__init__(linear(width, inner), nn.ReLU(), linear(inner, width))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, LayerNorm after each residual."""

    def __init__(self, width: int, inner: int, heads: int, dropout: float):
        super().__init__()
        self.attention, self.feed = SelfAttention(width, heads), FeedForward(width, inner)
        self.norm_attention, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, layout: Layout, allowed: Tensor | None) -> Tensor:
        """(N, H) -> (N, H)."""
        x = self.norm_attention(x + self.dropout(self.attention(x, layout, allowed)))
        return self.norm_feed(x + self.dropout(self.feed(x)))


class Transformer(nn.Module):
    """An encoder's body: the mean over all real positions, EOS included, of the last layer (paper, sec. 3)."""

    def __init__(self, table: nn.Embedding, layers: int, inner: int, heads: int, dropout: float):
        super().__init__()
        self.width = table.embedding_dim
        self.words = TokenAndPositionEmbedding(table, dropout)
        self.layers = nn.ModuleList(EncoderLayer(self.width, inner, heads, dropout) for _ in range(layers))

    def forward(self, side: Tokens) -> Tensor:
        """Tokens (B, T) -> (B, H)."""
        layout = Layout.of(side)
        allowed = None if layout.whole else side.mask[:, None, None, :]  # (B, 1, 1, T)
        x = self.words(layout.pack(side.ids), layout)  # (N, H)
        for layer in self.layers:
            x = layer(x, layout, allowed)
        return layout.mean(x)


class DecoderLayer(nn.Module):
    """Causal self-attention, the latent in place of cross-attention where `attention` is set, feed-forward.

    Attention fusion: Linear([x ; z]) in the slot where a translator attends to its source (paper,
    sec. 2). It is computed as Linear_x(x) + Linear_z(z), the same map, with z's part once a sentence.
    The released code applies a ReLU here and drops its result: there is none.
    """

    def __init__(self, width: int, latent: int, inner: int, heads: int, dropout: float, attention: bool = True):
        super().__init__()
        self.attention, self.feed = SelfAttention(width, heads), FeedForward(width, inner)
        self.fuses = attention
        if attention:
            self.fuse_hidden, self.fuse_latent = linear(width, width), linear(latent, width, bias=False)
            self.norm_fuse = nn.LayerNorm(width)
        self.norm_attention, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Tensor, latent: Tensor, layout: Layout, allowed: Tensor | None, cache: KeyValues | None = None
    ) -> Tensor:
        """x (N, H), latent (B, L) -> (N, H)."""
        x = self.norm_attention(x + self.dropout(self.attention(x, layout, allowed, cache)))
        if self.fuses:
            fused = self.fuse_hidden(x) + layout.repeat(self.fuse_latent(latent))  # (N, H)
            x = self.norm_fuse(x + self.dropout(fused))
        return self.norm_feed(x + self.dropout(self.feed(x)))


class Decoder(nn.Module):
    """p(sentence | latent): a Transformer that has nothing to attend to but its own past.

    It starts from EOS and reads the pieces before (teacher forcing in training, `step` in search).
    `layer` is the output layer, which gets the latent as well (Logit fusion). `fuse` names where else the
    latent enters: "attention", each layer's slot, and "word", beside each piece read: a linear map of
    [word ; z]. The word's part of that map is left to the table, which is trained anyway.
    """

    def __init__(
        self,
        table: nn.Embedding,
        layer: OutputLayer,
        latent: int,
        layers: int,
        inner: int,
        heads: int,
        dropout: float,
        word_dropout: float = 0.0,
        fuse: Collection[str] = ("attention",),
    ):
        super().__init__()
        width = table.embedding_dim
        self.words = TokenAndPositionEmbedding(table, dropout)
        self.fuse_word = linear(latent, width, bias=False) if "word" in fuse else None
        sizes = width, latent, inner, heads, dropout, "attention" in fuse
        self.layers = nn.ModuleList(DecoderLayer(*sizes) for _ in range(layers))
        self.layer = layer
        self.word_dropout = word_dropout  # share of past pieces hidden in training: the latent must tell them

    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        """What the decoder says of `target` (B, T), given latent (B, L)."""
        layout = Layout.of(target)
        past = F.pad(target.ids[:, :-1], (1, 0), value=EOS)  # (B, T)
        x = self.words(layout.pack(past), layout)  # (N, H)
        if self.training and self.word_dropout:
            x = x * (torch.rand(len(x), 1, device=x.device) >= self.word_dropout)
        x = self.beside(x, latent, layout)
        length = layout.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()[None, None]
        for layer in self.layers:
            x = layer(x, latent, layout, causal)
        return SentencePrediction(role, column, x, latent, self.layer, target)

    def beside(self, words: Tensor, latent: Tensor, layout: Layout) -> Tensor:
        """Word fusion, where it is asked for: (N, H), (B, L) -> (N, H)."""
        return words if self.fuse_word is None else words + layout.repeat(self.fuse_word(latent))

    def start(self, latent: Tensor) -> KVCache:
        """A search that has read nothing yet, for each latent, (B, L)."""
        width, count = self.words.table.embedding_dim, len(latent)
        heads = [layer.attention.heads for layer in self.layers]
        layers = [KeyValues(latent.new_empty(2, count, each, 0, width // each)) for each in heads]
        return KVCache(
            latent, self.layer.project_latent(latent), layers, latent.new_empty(count, 1, 0, dtype=torch.bool)
        )

    def step(self, pieces: Tensor, past: KVCache) -> Tensor:
        """The last piece of each hypothesis, (B, n) -> scores of the next, (B, n, V); the first piece is EOS."""
        count, n = pieces.shape
        itself = torch.eye(n, dtype=torch.bool, device=pieces.device).expand(count, n, n)
        past.kin = torch.cat([past.kin, itself], dim=2)
        ids = pieces.flatten()
        x = self.words(ids, Layout.column(ids), past.position)  # (B * n, H): all stand at one position
        layout = Layout((count, n), torch.arange(count * n, device=ids.device), pieces >= 0)
        x = self.beside(x, past.latent, layout)
        for layer, seen in zip(self.layers, past.layers, strict=True):
            x = layer(x, past.latent, layout, past.kin[:, None], seen)
        past.position += 1
        return self.layer.logits(x.view(count, n, -1), past.share[:, None])
