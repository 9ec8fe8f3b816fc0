"""The Transformer that writes a sentence while it attends to every state of another (Vaswani et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from bgt_core.contracts import Role, Tokens
from bgt_core.nets.dropout import Dropout
from bgt_core.nets.fast.kv_cache import KeyValues, SourceCache
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.layers import CrossAttention, FeedForward, SelfAttention, TokenAndPositionEmbedding, shift_right
from bgt_core.nets.prediction import OutputLayer, SentencePrediction


@dataclass(frozen=True, eq=False)
class EncoderStates:
    """What an attention decoder reads of B sentences: one state for each of their N pieces."""

    states: Tensor  # (N, H)
    side: Tokens  # the sentences, (B, T)

    def __len__(self) -> int:
        return len(self.side.ids)

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.states.device

    def no_latent(self) -> Tensor:
        """What a decoder passes on in place of a latent, (B, 0)."""
        return self.states.new_empty(len(self), 0)


class AttentionDecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, feed-forward; LayerNorm after each residual."""

    def __init__(self, width: int, inner: int, heads: int, dropout: float):
        super().__init__()
        self.attention, self.cross = SelfAttention(width, heads), CrossAttention(width, heads)
        self.feed = FeedForward(width, inner)
        self.norm_attention, self.norm_cross, self.norm_feed = (nn.LayerNorm(width) for _ in range(3))
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        layout: PackedLayout,
        allowed: Tensor,
        source: Tensor,
        real: Tensor | None,
        cache: KeyValues | None = None,
    ) -> Tensor:
        """x (N, H), where it may look among its own pieces and among `source`, the keys and values of the sentences
        that it translates -> (N, H)."""
        x = self.norm_attention(x + self.dropout(self.attention(x, layout, allowed, cache)))
        x = self.norm_cross(x + self.dropout(self.cross(x, layout, source, real)))
        return self.norm_feed(x + self.dropout(self.feed(x)))


class AttentionDecoder(nn.Module):
    """p(sentence | states of its source).

    It starts from EOS and reads the pieces before (teacher forcing in training, `step` in search). `layer` is the
    output layer, one that reads no latent.
    """

    def __init__(self, table: nn.Embedding, layer: OutputLayer, layers: int, inner: int, heads: int, dropout: float):
        super().__init__()
        self.words, self.heads = TokenAndPositionEmbedding(table, dropout), heads
        sizes = table.embedding_dim, inner, heads, dropout
        self.layers = nn.ModuleList(AttentionDecoderLayer(*sizes) for _ in range(layers))
        self.layer = layer

    def forward(self, role: Role, column: str, source: EncoderStates, target: Tokens) -> SentencePrediction:
        """What the decoder says of `target` (B, T), given the states of B sources."""
        layout, source_layout = PackedLayout.of(target), PackedLayout.of(source.side)
        x = self.words(layout.pack(shift_right(target.ids)), layout)  # (N, H)
        length = layout.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()[None, None]
        for layer, keys_values in zip(self.layers, self.keys_values(source.states, source_layout), strict=True):
            x = layer(x, layout, causal, keys_values, source_layout.real)
        return SentencePrediction(role, column, x, source.no_latent(), self.layer, target)

    def keys_values(self, states: Tensor, layout: PackedLayout) -> list[Tensor]:
        """What each layer attends to: states (N, H) -> (2, B, heads, S, H/heads) each."""
        return [cast(CrossAttention, layer.cross).keys_values(states, layout) for layer in self.layers]

    def start(self, source: EncoderStates) -> SourceCache:
        """A search that has read nothing yet, for each of B sources."""
        layout, states = PackedLayout.of(source.side), source.states
        return SourceCache(
            layers=[KeyValues.empty(states, len(source), self.heads, states.shape[1]) for _ in self.layers],
            ancestor_mask=states.new_empty(len(source), 1, 0, dtype=torch.bool),
            sources=[keys_values.contiguous() for keys_values in self.keys_values(states, layout)],
            real=layout.real,
        )

    def step(self, pieces: Tensor, state: SourceCache) -> Tensor:
        """The last piece of each hypothesis, (B, n) -> scores of the next, (B, n, V); the first piece is EOS."""
        count, n = pieces.shape
        ids = pieces.flatten()
        x = self.words(ids, PackedLayout.column(ids), state.position)  # (B * n, H): all stand at one position
        state.advance(n)
        layout = PackedLayout((count, n), torch.arange(count * n, device=ids.device), pieces >= 0)
        for layer, source, seen in zip(self.layers, state.sources, state.layers, strict=True):
            x = layer(x, layout, state.ancestor_mask[:, None], source, state.real, seen)
        return self.layer.logits(x.view(count, n, -1), x.new_empty(count, 1, 0))
