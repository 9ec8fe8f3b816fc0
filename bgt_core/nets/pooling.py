"""Averaging: a sentence is the mean of its token vectors, plain or weighted."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.backend import Linear
from bgt_core.contracts import EOS, UNK, Tokens
from bgt_core.errors import UsageError
from bgt_core.nets.binding import Binding
from bgt_core.nets.dropout import Dropout
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.forms import exact, lookup
from bgt_core.nets.layers import make_embedding
from bgt_core.nets.roles import RolePooling
from bgt_core.nets.transformer import Transformer


class MeanPooling(nn.Module):
    """The plain mean of token vectors: SP of Wieting et al. (2019).

    EOS and unknown tokens are left out, as in the released code, whose sentences have no EOS. A sentence without other
    tokens is the zero vector; in the released code it is the vector of the unknown token.
    """

    def __init__(self, table: nn.Embedding, dropout: float = 0.0):
        super().__init__()
        self.width = table.embedding_dim
        self.table, self.dropout = table, Dropout(dropout)

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, H)."""
        layout = layout or PackedLayout.of(side)
        ids = layout.pack(side.ids)  # (N,)
        return mean_of_words(self.dropout(lookup(self.table, ids)), ids, layout)


def mean_of_words(vectors: Tensor, ids: Tensor, layout: PackedLayout) -> Tensor:
    """The mean over the tokens of each sentence that are neither EOS nor unknown, zero if there are none: vectors (N,
    H) of token ids (N,) -> (B, H)."""
    counts = (ids != EOS) & (ids != UNK)
    total = layout.sum(vectors * counts[:, None])  # (B, H)
    return total / layout.sum(counts).clamp(min=1)[:, None]


class SIFPooling(nn.Module):
    """The mean of the tokens' directions, each weighted by how rare the token is: a / (a + p).

    The weights are those of Arora et al. (2017, SIF), from the tokenizer's own unigram probabilities. They are fixed
    unless `trained`: a margin loss learns good directions, but weights that are worse for similarity; a teacher can
    improve them. EOS is left out: its share of the mean, one in T, would reveal the length.
    """

    rarity: Tensor

    def __init__(self, probabilities: Tensor, width: int, smooth: float = 5e-4, trained: bool = False):
        super().__init__()
        self.width = width
        self.table = make_embedding(len(probabilities), width)
        rarity = smooth / (smooth + probabilities)  # (V,)
        if trained:
            self.rarity = nn.Parameter(rarity.float())
        else:
            self.register_buffer("rarity", rarity, persistent=False)

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, H)."""
        layout = layout or PackedLayout.of(side)
        return self.pool(*self.words(side, layout), layout)

    def words(self, side: Tokens, layout: PackedLayout) -> tuple[Tensor, Tensor]:
        """The direction and weight of each token: Tokens (B, T) -> (N, H), (N,); the weight of EOS is 0."""
        ids = layout.pack(side.ids)  # (N,)
        weights = self.rarity[ids] * (ids != EOS) * math.sqrt(self.width)  # a unit of the mean is about N(0, 1)
        return F.normalize(lookup(self.table, ids)), weights

    def pool(self, vectors: Tensor, weights: Tensor, layout: PackedLayout) -> Tensor:
        """The mean of weighted vectors (N, H) -> (B, H)."""
        return layout.sum(vectors * weights[:, None]) / layout.sum(weights > 0).clamp(min=1)[:, None]


class ResidualPooling(nn.Module):
    """An average plus a correction by a Transformer: average + W body, with W = 0 at the start.

    An average is a good encoder from the start, a Transformer only after many updates: this begins as the average and
    learns the correction.
    """

    def __init__(self, average: SIFPooling, body: nn.Module):
        super().__init__()
        self.width = average.width
        self.average, self.body = average, body
        self.correction = Linear(body.width, average.width, bias=False)  # type: ignore[arg-type]
        nn.init.zeros_(self.correction.weight)

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, H)."""
        layout = layout or PackedLayout.of(side)
        return self.average(side, layout) + self.correction(self.body(side, layout))


class BoundPooling(nn.Module):
    """The direction of an average beside those of two parts that are composed: `bound` and `roles`.

    The bound part keeps the order of tokens: a sum of the Transformer's states, each bound to its position
    (`nets.binding`). A decoder can read each state back (`nets.memory`), where from a mean it has to guess the order.
    The Transformer may move each state by a learned number of positions, so that translations can put the same word in
    the same place. The bound vector is a linear map of the token's own vector, plus one of its state, which starts at
    zero: the states of an untrained Transformer are nearly equal for all tokens, and would encode little more than the
    length.

    The bound part is good for copying, but two wordings of one fact have few words in the same places. The roles tell
    who does what to whom in any wording (`nets.roles`).

    The cosine of two such vectors is the sum of the three parts' cosines, weighted by their shares.

    Args:
        average: The averaged part.
        body: The Transformer under the bound part.
        roles: The part that tells roles, from the average's token vectors.
        bound: Units of the bound part, an even number.
        bound_share, roles_share: Their shares of the cosine, above 0 and together below 1.

    Raises:
        UsageError: Shares out of range, or an odd `bound`.
    """

    def __init__(
        self,
        average: SIFPooling,
        body: Transformer,
        roles: RolePooling,
        bound: int,
        bound_share: float,
        roles_share: float,
    ):
        super().__init__()
        if min(bound_share, roles_share) <= 0 or bound_share + roles_share >= 1:
            raise UsageError(f"bound_share {bound_share} and roles_share {roles_share}: above 0, and together below 1")
        self.width = average.width + bound + roles.width
        self.average, self.body, self.relate = average, body, roles
        self.shares = 1 - bound_share - roles_share, bound_share, roles_share
        self.lexical, self.compose = Linear(body.width, bound, bias=False), Linear(body.width, bound, bias=False)
        self.shift = Linear(body.width, 1, bias=False)
        for added in (self.compose, self.shift):
            nn.init.zeros_(added.weight)
        self.binding = Binding(bound)

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, H); a unit is about N(0, 1) over sentences, of the whole."""
        layout = layout or PackedLayout.of(side)
        states = self.body.states(side, layout)  # (N, H)
        words = self.average.words(side, layout)
        bound, roles = self.bound(side, layout, states), self.relate(side, layout, words)
        parts = self.average.pool(*words, layout), bound, roles
        units = [F.normalize(exact(part)) for part in parts]
        scaled = [unit * math.sqrt(share * self.width) for unit, share in zip(units, self.shares, strict=True)]
        return torch.cat(scaled, dim=1)

    def bound(self, side: Tokens, layout: PackedLayout, states: Tensor) -> Tensor:
        """The sum over tokens of R(position) (V vector + W state): Tokens (B, T), states (N, H) -> (B, K)."""
        words = lookup(self.body.words.table, layout.pack(side.ids)) * math.sqrt(self.body.width)
        positions = layout.columns + exact(self.shift(states))[:, 0]
        return layout.sum(self.binding.bind(exact(self.lexical(words) + self.compose(states)), positions))
