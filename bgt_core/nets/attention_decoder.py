"""A Transformer decoder with attention to every state of the source (Vaswani et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from bgt_core.contracts import Role, Tokens
from bgt_core.nets.decoder import CausalDecoder, DecoderLayer
from bgt_core.nets.dropout import Dropout
from bgt_core.nets.fast.kv_cache import KVCache
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.layers import CrossAttention, FeedForward, SelfAttention, TokenAndPositionEmbedding
from bgt_core.nets.prediction import OutputLayer, SentencePrediction


@dataclass(frozen=True, eq=False)
class EncoderStates:
    """The input of an attention decoder for B sentences: one state for each of their N tokens."""

    states: Tensor  # (N, H)
    side: Tokens  # the sentences, (B, T)

    def __len__(self) -> int:
        return len(self.side.ids)

    @property
    def device(self) -> torch.device:
        """Their device."""
        return self.states.device

    def no_latent(self) -> Tensor:
        """An empty latent, (B, 0)."""
        return self.states.new_empty(len(self), 0)


class AttentionDecoderLayer(DecoderLayer):
    """Causal self-attention, attention to the source, feed-forward; LayerNorm after each residual."""

    fuses = False

    def __init__(self, width: int, ffn_dim: int, heads: int, dropout: float):
        nn.Module.__init__(self)
        self.attention, self.cross = SelfAttention(width, heads), CrossAttention(width, heads)
        self.feed = FeedForward(width, ffn_dim)
        self.norm_attention, self.norm_cross, self.norm_feed = (nn.LayerNorm(width) for _ in range(3))
        self.dropout = Dropout(dropout)


class AttentionDecoder(CausalDecoder):
    """p(sentence | states of its source).

    It starts from EOS and reads the tokens before (teacher forcing in training, `step` in search). `layer` is an output
    layer without a latent.
    """

    def __init__(self, table: nn.Embedding, layer: OutputLayer, layers: int, ffn_dim: int, heads: int, dropout: float):
        super().__init__()
        self.words, self.heads = TokenAndPositionEmbedding(table, dropout), heads
        sizes = table.embedding_dim, ffn_dim, heads, dropout
        self.layers = nn.ModuleList(AttentionDecoderLayer(*sizes) for _ in range(layers))
        self.layer = layer

    def forward(self, role: Role, column: str, source: EncoderStates, target: Tokens) -> SentencePrediction:
        """Predict `target` (B, T) from the states of B sources."""
        layout = PackedLayout.of(source.side)
        return self.predict(
            role, column, source.no_latent(), target, self.keys_values(source.states, layout), layout.real
        )

    def keys_values(self, states: Tensor, layout: PackedLayout) -> list[Tensor]:
        """Keys and values for the attention of each layer: states (N, H) -> (2, B, heads, S, H/heads) each."""
        return [cast(CrossAttention, layer.cross).keys_values(states, layout) for layer in self.layers]

    def start(self, source: EncoderStates) -> KVCache:
        """The initial state of a search for each of B sources."""
        layout, states = PackedLayout.of(source.side), source.states
        attended = [keys_values.contiguous() for keys_values in self.keys_values(states, layout)]
        return self.begin(states, source.no_latent(), attended, layout.real)
