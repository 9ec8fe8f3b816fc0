"""The Transformer that reads a sentence: a body for encoders."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.contracts import BOS, Tokens
from bgt_core.nets.dropout import Dropout
from bgt_core.nets.layers import BERT_EPS, FeedForward, NormedEmbedding, SelfAttention, TokenAndPositionEmbedding
from bgt_core.nets.packing import PackedLayout, PaddedLayout


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, LayerNorm after each residual."""

    def __init__(
        self,
        width: int,
        inner: int,
        heads: int,
        dropout: float,
        activation: type[nn.Module] = nn.ReLU,
        eps: float = 1e-5,
    ):
        super().__init__()
        self.attention, self.feed = SelfAttention(width, heads), FeedForward(width, inner, activation)
        self.norm_attention, self.norm_feed = nn.LayerNorm(width, eps=eps), nn.LayerNorm(width, eps=eps)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, layout: PackedLayout, allowed: Tensor | None) -> Tensor:
        """(N, H) -> (N, H)."""
        x = self.norm_attention(x + self.dropout(self.attention(x, layout, allowed)))
        return self.norm_feed(x + self.dropout(self.feed(x)))


class Transformer(nn.Module):
    """An encoder's body: the mean over all real positions, EOS included, of the last layer (paper, sec. 3)."""

    words: TokenAndPositionEmbedding | NormedEmbedding

    def __init__(self, table: nn.Embedding, layers: int, inner: int, heads: int, dropout: float):
        super().__init__()
        self.width = table.embedding_dim
        self.words = TokenAndPositionEmbedding(table, dropout)
        self.layers = nn.ModuleList(EncoderLayer(self.width, inner, heads, dropout) for _ in range(layers))

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


class Bert(Transformer):
    """The same body with BERT's parts (Devlin et al. 2019): learned positions, LayerNorm on embeddings, GELU. It can
    start from layers of a pretrained encoder (`run.student`). Sentences begin with BOS, as BERT's with [CLS]: heads
    attend to it when they have nothing to say. Heads have 32 units, feed-forward layers 4 H."""

    def __init__(self, table: nn.Embedding, layers: int, positions: int = 128):
        width = table.embedding_dim
        super().__init__(table, 0, 4 * width, width // 32, 0.0)
        self.words = NormedEmbedding(table, positions)
        sizes = width, 4 * width, width // 32, 0.0, nn.GELU, BERT_EPS
        self.layers = nn.ModuleList(EncoderLayer(*sizes) for _ in range(layers))

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, H)."""
        side = with_start(side)
        layout = layout.of_mask(side.mask) if isinstance(layout, PaddedLayout) else PackedLayout.of(side)
        return layout.mean(self.states(side, layout))


def with_start(side: Tokens) -> Tokens:
    """The same sentences with BOS before each, (B, T) -> (B, T + 1)."""
    batch, length = side.ids.shape
    starts = torch.arange(batch, device=side.ids.device) * (length + 1)
    words = side.flat_index // length * (length + 1) + side.flat_index % length + 1
    return Tokens(
        F.pad(side.ids, (1, 0), value=BOS),
        F.pad(side.mask, (1, 0), value=True),
        side.lang,
        torch.cat([starts, words]).sort().values,
    )
