"""Transformer decoders (Vaswani et al. 2017), which get a latent, or attend to the states of a source sentence."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from bgt_core.contracts import Role, Tokens
from bgt_core.errors import UsageError
from bgt_core.nets import layers as parts
from bgt_core.nets.layers import CrossAttention, Dropout, FeedForward, KeyValues, SelfAttention, xavier_linear
from bgt_core.nets.operations import PackedLayout
from bgt_core.nets.output import OutputLayer, Scorer, SentencePrediction


@dataclass(eq=False, kw_only=True)
class KVCache:
    """The state of a decoder in a search with n hypotheses for each of B sentences.

    The keys and values of all hypotheses of a sentence are stored together, and are never moved. For each hypothesis,
    `ancestor_mask` is True only at the stored tokens that belong to it. So a hypothesis gets a new parent without a
    copy of keys and values, and one product computes the attention of all hypotheses of a sentence. The scores are the
    same as in a forward pass over all tokens so far.
    """

    layers: list[KeyValues]
    ancestor_mask: Tensor  # (B, n, S) bool, for S stored tokens of all n hypotheses
    latent: Tensor  # (B, L)
    scorer: Scorer
    attended: list[Tensor | None]  # for each layer, the keys and values of cross-attention, (2, B, heads, S, H/heads)
    real: Tensor | None  # (B, 1, 1, S) bool, False where `attended` has padding; None if it has no padding
    position: int = 0  # position of the next token, the same for all hypotheses

    def reorder(self, parents: Tensor) -> None:
        """Replace hypothesis i of each sentence by a copy of hypothesis parents[:, i]; `parents` is (B, n)."""
        where = parents[:, :, None].expand(-1, -1, self.ancestor_mask.shape[2])
        self.ancestor_mask = self.ancestor_mask.gather(1, where)

    def select(self, rows: Tensor) -> None:
        """Keep only the hypotheses of the sentences with these indices, (B',)."""
        self.ancestor_mask, self.latent = (part.index_select(0, rows) for part in (self.ancestor_mask, self.latent))
        self.scorer.select(rows)
        self.attended = [part if part is None else part.index_select(1, rows) for part in self.attended]
        self.real = None if self.real is None else self.real.index_select(0, rows)
        for layer in self.layers:
            layer.select(rows)


class Memory(nn.Module):
    """Maps a latent to two kinds of vectors for a decoder: a vector for each input token, which is added to the token,
    and S vectors per sentence, called slots, to which all tokens attend."""

    def at(self, latent: Tensor, positions: Tensor, layout: PackedLayout) -> Tensor:
        """Return the vectors to add to a decoder's input tokens: latents (B, L), positions (R,) -> (R, H)."""
        raise NotImplementedError

    def states(self, latent: Tensor) -> Tensor:
        """Return the slots, the vectors to which all tokens attend: latents (B, L) -> (B, S, H)."""
        raise NotImplementedError

    def keys_values(self, latent: Tensor, layers: Sequence[CrossAttention]) -> list[Tensor | None]:
        """Return the slots' keys and values for the attention of each layer: (B, L) -> (2, B, heads, S, H/heads)."""
        states = self.states(latent)
        batch, slots, _ = states.shape
        real = torch.ones(batch, slots, dtype=torch.bool, device=latent.device)
        layout = PackedLayout((batch, slots), torch.arange(batch * slots, device=latent.device), real)
        return [layer.keys_values(states.flatten(0, 1), layout) for layer in layers]


class DecoderLayer(nn.Module):
    """A decoder layer: causal self-attention, fusion of the latent z (if `fuses`), attention to the slots of a `Memory`
    (if `slots`), and a feed-forward layer.

    Fusion replaces the attention to a source sentence by Linear([x ; z]) (attention fusion: BGT paper, sec. 2). It is
    computed as Linear_x(x) + Linear_z(z), so that Linear_z(z) is computed once per sentence, not per token. The
    authors' code also computes a ReLU of the result, but discards it.
    """

    def __init__(
        self, width: int, latent: int, ffn_dim: int, heads: int, dropout: float, fuses: bool = True, slots: bool = False
    ):
        super().__init__()
        self.attention, self.feed = SelfAttention(width, heads), FeedForward(width, ffn_dim)
        self.fuses = fuses
        if fuses:
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
        """Compute the next states of R tokens: x (R, H), latent (B, L) -> (R, H). `attended` has the keys and values of
        cross-attention, and `real` is False at their padding."""
        x = self.norm_attention(x + self.dropout(self.attention(x, layout, allowed, cache)))
        if self.fuses:
            fused = self.fuse_hidden(x) + layout.repeat(self.fuse_latent(latent))  # (R, H)
            x = self.norm_fuse(x + self.dropout(fused))
        if attended is not None:
            x = self.norm_cross(x + self.dropout(self.cross(x, layout, attended, real)))
        return self.norm_feed(x + self.dropout(self.feed(x)))


class CausalDecoder(nn.Module):
    """A stack of decoder layers. Each token attends to itself and all previous tokens. The stack reads a whole sentence
    at once in training, and one token per step in a search."""

    words: parts.TokenAndPositionEmbedding
    layers: nn.ModuleList
    heads: int  # number of attention heads in each layer
    layer: OutputLayer  # the output layer; checkpoints store its weights under this name
    word_dropout = 0.0  # share of previous tokens that are hidden in training, so that the latent has to encode them

    def predict(
        self,
        role: Role,
        column: str,
        latent: Tensor,
        target: Tokens,
        attended: Sequence[Tensor | None],
        real: Tensor | None = None,
    ) -> SentencePrediction:
        """Predict sentences `target` (B, T) from latents (B, L). For `attended` and `real`, see the class `KVCache`."""
        layout = PackedLayout.of(target)
        x = self.words(layout.pack(parts.shift_right(target.ids)), layout)  # (R, H)
        if self.training and self.word_dropout:
            x = x * (torch.rand(len(x), 1, device=x.device) >= self.word_dropout)
        x = self.fuse_words(x, latent, layout, layout.columns)
        length = layout.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()[None, None]
        for layer, others in zip(self.layers, attended, strict=True):
            x = layer(x, latent, layout, causal, others, real)
        return SentencePrediction(role, column, x, latent, self.layer, target)

    def fuse_words(self, words: Tensor, latent: Tensor, layout: PackedLayout, positions: Tensor) -> Tensor:
        """Add a map of the latent to embedded tokens: words (R, H), latent (B, L), positions (R,) -> (R, H)."""
        return words

    def begin(
        self, like: Tensor, latent: Tensor, attended: Sequence[Tensor | None], real: Tensor | None = None
    ) -> KVCache:
        """Return the initial state of a search, with one hypothesis for each latent (B, L). Keys and values have the
        device and precision of `like`."""
        count, width = len(latent), self.words.table.embedding_dim // self.heads
        return KVCache(
            layers=[KeyValues(like.new_empty(2, count, self.heads, 0, width)) for _ in self.layers],
            ancestor_mask=latent.new_empty(count, 1, 0, dtype=torch.bool),
            latent=latent,
            scorer=self.layer.scorer(latent),
            attended=list(attended),
            real=real,
        )

    def step(self, tokens: Tensor, state: KVCache) -> Tensor:
        """Score the next token of each hypothesis, given its last token: (B, n) -> (B, n, V). In the first step of a
        search, the last token is EOS."""
        return state.scorer(self.features(tokens, state))

    def features(self, tokens: Tensor, state: KVCache) -> Tensor:
        """Compute the features for the next token of each hypothesis, given its last token: (B, n) -> (B, n, H)."""
        count, n = tokens.shape
        ids = tokens.flatten()
        x = self.words(ids, PackedLayout.column(ids), state.position)  # (B * n, H); all tokens have the same position
        layout = PackedLayout((count, n), torch.arange(count * n, device=ids.device), tokens >= 0)
        x = self.fuse_words(x, state.latent, layout, torch.full_like(ids, state.position))
        own = torch.eye(n, dtype=torch.bool, device=ids.device)  # a hypothesis attends to its own current token
        state.ancestor_mask = torch.cat([state.ancestor_mask, own.expand(count, n, n)], dim=2)
        state.position += 1
        for layer, attended, seen in zip(self.layers, state.attended, state.layers, strict=True):
            x = layer(x, state.latent, layout, state.ancestor_mask[:, None], attended, state.real, seen)
        return x.view(count, n, -1)


class TransformerDecoder(CausalDecoder):
    """A Transformer that computes p(sentence | latent z). It reads z and the previous tokens, and starts from EOS.

    Args:
        table: The token embeddings, (V, H).
        layer: The output layer, which also gets z (Logit fusion).
        latent: Number of units of z, L.
        layers: Number of decoder layers.
        ffn_dim: Width of the feed-forward layers.
        heads: Number of attention heads.
        dropout: Probability of dropout in training.
        word_dropout: Share of previous tokens that are hidden in training, from 0 to 1.
        fuse: Other places where z enters. With "attention", z enters each layer (`DecoderLayer`). With "word", a linear
            map of z is added to each input token. The BGT paper maps [word ; z]; here, the word's embedding, which is
            trained, is added without a map.
        memory: Maps z to vectors that are added to the input tokens, and to slots to which each layer attends.
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
        self.words = parts.TokenAndPositionEmbedding(table, dropout)
        self.fuse_word = xavier_linear(latent, width, bias=False) if "word" in fuse else None
        self.memory = memory
        sizes = width, latent, ffn_dim, heads, dropout, "attention" in fuse, memory is not None
        self.layers = nn.ModuleList(DecoderLayer(*sizes) for _ in range(layers))
        self.heads, self.layer, self.word_dropout = heads, layer, word_dropout

    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        """Predict the target sentences (B, T) from their latents (B, L)."""
        return self.predict(role, column, latent, target, self.slots(latent))

    def fuse_words(self, words: Tensor, latent: Tensor, layout: PackedLayout, positions: Tensor) -> Tensor:
        if self.fuse_word is not None:
            words = words + layout.repeat(self.fuse_word(latent))
        if self.memory is not None:
            words = words + self.memory.at(latent, positions, layout)
        return words

    def slots(self, latent: Tensor) -> list[Tensor | None]:
        """Return the slots' keys and values for each layer, (2, B, heads, S, H/heads); None if there is no memory."""
        if self.memory is None:
            return [None] * len(self.layers)
        return self.memory.keys_values(latent, [cast(CrossAttention, layer.cross) for layer in self.layers])

    def start(self, latent: Tensor) -> KVCache:
        """Return the initial state of a search, with one hypothesis for each latent (B, L)."""
        return self.begin(latent, latent, self.slots(latent))


@dataclass(frozen=True, eq=False)
class EncoderStates:
    """The input of an `AttentionDecoder`: the encoder states of the R tokens of B source sentences."""

    states: Tensor  # (R, H)
    side: Tokens  # the source sentences, (B, T)

    def __len__(self) -> int:
        return len(self.side.ids)

    @property
    def device(self) -> torch.device:
        return self.states.device

    def no_latent(self) -> Tensor:
        """An empty latent, (B, 0), for methods of decoders that expect a latent."""
        return self.states.new_empty(len(self), 0)


class AttentionDecoderLayer(DecoderLayer):
    """A decoder layer: causal self-attention, attention to the source, and a feed-forward layer, each with a residual
    connection followed by LayerNorm."""

    fuses = False

    def __init__(self, width: int, ffn_dim: int, heads: int, dropout: float):
        nn.Module.__init__(self)
        self.attention, self.cross = SelfAttention(width, heads), CrossAttention(width, heads)
        self.feed = FeedForward(width, ffn_dim)
        self.norm_attention, self.norm_cross, self.norm_feed = (nn.LayerNorm(width) for _ in range(3))
        self.dropout = Dropout(dropout)


class AttentionDecoder(CausalDecoder):
    """A Transformer that computes p(sentence | encoder states of a source sentence), and starts from EOS. `layer` is an
    output layer that reads no latent."""

    def __init__(self, table: nn.Embedding, layer: OutputLayer, layers: int, ffn_dim: int, heads: int, dropout: float):
        super().__init__()
        self.words, self.heads = parts.TokenAndPositionEmbedding(table, dropout), heads
        sizes = table.embedding_dim, ffn_dim, heads, dropout
        self.layers = nn.ModuleList(AttentionDecoderLayer(*sizes) for _ in range(layers))
        self.layer = layer

    def forward(self, role: Role, column: str, source: EncoderStates, target: Tokens) -> SentencePrediction:
        """Predict the target sentences (B, T) from the encoder states of B source sentences."""
        layout = PackedLayout.of(source.side)
        return self.predict(
            role, column, source.no_latent(), target, self.keys_values(source.states, layout), layout.real
        )

    def keys_values(self, states: Tensor, layout: PackedLayout) -> list[Tensor]:
        return [cast(CrossAttention, layer.cross).keys_values(states, layout) for layer in self.layers]

    def start(self, source: EncoderStates) -> KVCache:
        """Return the initial state of a search, with one hypothesis for each of B source sentences."""
        layout, states = PackedLayout.of(source.side), source.states
        attended = [keys_values.contiguous() for keys_values in self.keys_values(states, layout)]
        return self.begin(states, source.no_latent(), attended, layout.real)
