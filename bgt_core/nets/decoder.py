"""A Transformer decoder that generates a sentence from a latent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from bgt_core.contracts import Role, Tokens
from bgt_core.errors import UsageError
from bgt_core.nets.dropout import Dropout
from bgt_core.nets.fast.kv_cache import KeyValues, KVCache
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.layers import (
    CrossAttention,
    FeedForward,
    SelfAttention,
    TokenAndPositionEmbedding,
    shift_right,
    xavier_linear,
)
from bgt_core.nets.memory import Memory
from bgt_core.nets.prediction import OutputLayer, SentencePrediction


class DecoderLayer(nn.Module):
    """Causal self-attention, the latent in place of cross-attention if `attention` is set, feed-forward.

    Attention fusion: Linear([x ; z]) in the slot where a translator attends to its source (paper, sec. 2). It is
    computed as Linear_x(x) + Linear_z(z), the same map, with z's part once per sentence. The released code applies a
    ReLU here and drops its result; this layer has no ReLU. With `slots` it then attends to the slots of a memory
    (`nets.memory`).
    """

    def __init__(
        self,
        width: int,
        latent: int,
        ffn_dim: int,
        heads: int,
        dropout: float,
        attention: bool = True,
        slots: bool = False,
    ):
        super().__init__()
        self.attention, self.feed = SelfAttention(width, heads), FeedForward(width, ffn_dim)
        self.fuses = attention
        if attention:
            self.fuse_hidden, self.fuse_latent = xavier_linear(width, width), xavier_linear(latent, width, bias=False)
            self.norm_fuse = nn.LayerNorm(width)
        if slots:
            self.cross, self.norm_cross = CrossAttention(width, heads), nn.LayerNorm(width)
        self.norm_attention, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        latent: Tensor,
        layout: PackedLayout,
        allowed: Tensor | None,
        attended: Tensor | None = None,
        real: Tensor | None = None,
        cache: KeyValues | None = None,
    ) -> Tensor:
        """x (N, H), latent (B, L), keys and values for cross-attention, and a mask of those that are not padding -> (N,
        H)."""
        x = self.norm_attention(x + self.dropout(self.attention(x, layout, allowed, cache)))
        if self.fuses:
            fused = self.fuse_hidden(x) + layout.repeat(self.fuse_latent(latent))  # (N, H)
            x = self.norm_fuse(x + self.dropout(fused))
        if attended is not None:
            x = self.norm_cross(x + self.dropout(self.cross(x, layout, attended, real)))
        return self.norm_feed(x + self.dropout(self.feed(x)))


class CausalDecoder(nn.Module):
    """A stack of decoder layers over the tokens so far: all at once in training, one at a time in search."""

    words: TokenAndPositionEmbedding
    layers: nn.ModuleList
    heads: int  # of each layer
    layer: OutputLayer
    word_dropout = 0.0  # proportion of past tokens hidden in training: the latent must supply them

    def predict(
        self,
        role: Role,
        column: str,
        latent: Tensor,
        target: Tokens,
        attended: Sequence[Tensor | None],
        real: Tensor | None = None,
    ) -> SentencePrediction:
        """Predict `target` (B, T) from latent (B, L) and each layer's keys and values (`KVCache.attended`)."""
        layout = PackedLayout.of(target)
        x = self.words(layout.pack(shift_right(target.ids)), layout)  # (N, H)
        if self.training and self.word_dropout:
            x = x * (torch.rand(len(x), 1, device=x.device) >= self.word_dropout)
        x = self.fuse_words(x, latent, layout, layout.columns)
        length = layout.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()[None, None]
        for layer, others in zip(self.layers, attended, strict=True):
            x = layer(x, latent, layout, causal, others, real)
        return SentencePrediction(role, column, x, latent, self.layer, target)

    def fuse_words(self, words: Tensor, latent: Tensor, layout: PackedLayout, positions: Tensor) -> Tensor:
        """The input at each token: (N, H), latent (B, L), positions (N,) -> (N, H)."""
        return words

    def begin(
        self, like: Tensor, latent: Tensor, attended: Sequence[Tensor | None], real: Tensor | None = None
    ) -> KVCache:
        """The initial state of a search for each latent, (B, L); keys and values have the precision of `like`."""
        count, width = len(latent), self.words.table.embedding_dim
        return KVCache(
            layers=[KeyValues.empty(like, count, self.heads, width) for _ in self.layers],
            ancestor_mask=latent.new_empty(count, 1, 0, dtype=torch.bool),
            latent=latent,
            scorer=self.layer.scorer(latent),
            attended=list(attended),
            real=real,
        )

    def step(self, tokens: Tensor, state: KVCache) -> Tensor:
        """The last token of each hypothesis, (B, n) -> scores of the next, (B, n, V); the first token is EOS."""
        return state.scorer(self.read(tokens, state))

    def read(self, tokens: Tensor, state: KVCache) -> Tensor:
        """The last token of each hypothesis, (B, n) -> features, (B, n, H)."""
        count, n = tokens.shape
        ids = tokens.flatten()
        x = self.words(ids, PackedLayout.column(ids), state.position)  # (B * n, H): all at the same position
        layout = PackedLayout((count, n), torch.arange(count * n, device=ids.device), tokens >= 0)
        x = self.fuse_words(x, state.latent, layout, torch.full_like(ids, state.position))
        state.advance(n)
        for layer, attended, seen in zip(self.layers, state.attended, state.layers, strict=True):
            x = layer(x, state.latent, layout, state.ancestor_mask[:, None], attended, state.real, seen)
        return x.view(count, n, -1)


class TransformerDecoder(CausalDecoder):
    """p(sentence | latent): a Transformer that attends only to its own states.

    It starts from EOS and reads the tokens before (teacher forcing in training, `step` in search). `layer` is the
    output layer, which gets the latent as well (Logit fusion). `fuse` names where else the latent enters: "attention",
    each layer's slot, and "word", beside each input token: a linear map of [word ; z]. The word's part of that map is
    left to the table, which is trained anyway. `memory` provides a part of the latent at the token's own position,
    and as slots that every layer attends to.
    """

    def __init__(
        self,
        table: nn.Embedding,
        layer: OutputLayer,
        latent: int,
        layers: int,
        ffn_dim: int,
        heads: int,
        dropout: float,
        word_dropout: float = 0.0,
        fuse: Collection[str] = ("attention",),
        memory: Memory | None = None,
    ):
        super().__init__()
        if not 0 <= word_dropout <= 1:
            raise UsageError(f"{word_dropout} must be from 0 to 1", parameter="word_dropout")
        width = table.embedding_dim
        self.words = TokenAndPositionEmbedding(table, dropout)
        self.fuse_word = xavier_linear(latent, width, bias=False) if "word" in fuse else None
        self.memory = memory
        sizes = width, latent, ffn_dim, heads, dropout, "attention" in fuse, memory is not None
        self.layers = nn.ModuleList(DecoderLayer(*sizes) for _ in range(layers))
        self.heads, self.layer, self.word_dropout = heads, layer, word_dropout

    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        """Predict `target` (B, T) from latent (B, L)."""
        return self.predict(role, column, latent, target, self.slots(latent))

    def fuse_words(self, words: Tensor, latent: Tensor, layout: PackedLayout, positions: Tensor) -> Tensor:
        """Add word fusion, if `fuse` names it, and the memory's content at each token's position: (N, H), (B, L), (N,)
        -> (N, H)."""
        if self.fuse_word is not None:
            words = words + layout.repeat(self.fuse_word(latent))
        if self.memory is not None:
            words = words + self.memory.at(latent, positions, layout)
        return words

    def slots(self, latent: Tensor) -> list[Tensor | None]:
        """The keys and values of the memory's slots for each layer, (2, B, heads, S, H/heads) each; None without a
        memory."""
        if self.memory is None:
            return [None] * len(self.layers)
        return self.memory.keys_values(latent, [cast(CrossAttention, layer.cross) for layer in self.layers])

    def start(self, latent: Tensor) -> KVCache:
        """The initial state of a search for each latent, (B, L)."""
        return self.begin(latent, latent, self.slots(latent))


class TaggedDecoder(nn.Module):
    """A decoder shared by several languages, for one of them, marked by a learnt vector beside the latent.

    The shared parameters learn from all languages; each language adds only a vector. `layer` is that language's output
    layer, over the decoder's.
    """

    def __init__(self, decoder: TransformerDecoder, layer: OutputLayer, width: int):
        super().__init__()
        self.decoder, self.layer = decoder, layer
        self.tag = nn.Parameter(torch.randn(width))

    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        """See `TransformerDecoder`; latent (B, L) is without the vector of the language."""
        return replace(self.decoder(role, column, self.tagged(latent), target), layer=self.layer)

    def start(self, latent: Tensor) -> KVCache:
        """See `TransformerDecoder.start`."""
        state = self.decoder.start(latent := self.tagged(latent))
        return replace(state, scorer=self.layer.scorer(latent))

    def step(self, tokens: Tensor, state: KVCache) -> Tensor:
        """See `TransformerDecoder.step`."""
        return self.decoder.step(tokens, state)

    def tagged(self, latent: Tensor) -> Tensor:
        """(B, L) -> (B, L + W)."""
        return torch.cat([latent, self.tag.to(latent.dtype).expand(len(latent), -1)], dim=-1)
