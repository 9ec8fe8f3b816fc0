"""A Transformer encoder, as a body for encoders."""

from __future__ import annotations

from torch import Tensor, nn

from bgt_core.contracts import Tokens
from bgt_core.nets.dropout import Dropout
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.layers import FeedForward, SelfAttention, TokenAndPositionEmbedding


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, LayerNorm after each residual."""

    def __init__(self, width: int, ffn_dim: int, heads: int, dropout: float):
        super().__init__()
        self.width = width
        self.attention, self.feed = SelfAttention(width, heads), FeedForward(width, ffn_dim)
        self.norm_attention, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, layout: PackedLayout, allowed: Tensor | None) -> Tensor:
        """(N, H) -> (N, H)."""
        x = self.norm_attention(x + self.dropout(self.attention(x, layout, allowed)))
        return self.norm_feed(x + self.dropout(self.feed(x)))


class Transformer(nn.Module):
    """An encoder's body: the mean over all real positions, EOS included, of the last layer (paper, sec. 3)."""

    def __init__(self, table: nn.Embedding, layers: int, ffn_dim: int, heads: int, dropout: float):
        super().__init__()
        self.width = table.embedding_dim
        self.words = TokenAndPositionEmbedding(table, dropout)
        self.layers = nn.ModuleList(EncoderLayer(self.width, ffn_dim, heads, dropout) for _ in range(layers))

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, H)."""
        layout = layout or PackedLayout.of(side)
        return layout.mean(self.states(side, layout))

    def states(self, side: Tokens, layout: PackedLayout) -> Tensor:
        """The last layer at every real position: Tokens (B, T) -> (N, H)."""
        x = self.words(layout.pack(side.ids), layout)
        allowed = layout.real
        for layer in self.layers:
            x = layer(x, layout, allowed)
        return x
