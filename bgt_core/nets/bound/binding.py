"""Holographic binding: store many vectors in one, each under its position (Plate 1995).

A vector of K units is treated as K/2 complex numbers. To bind it to position p, number j is rotated by the angle p *
w_j, as in rotary embeddings (Su et al. 2021). Bound vectors are added up; rotating the sum back by p * w_j gives the
vector bound to p, plus the other vectors, rotated by different angles in each number, which look like noise.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.backend import Linear, matmul_dtype
from bgt_core.contracts import Role, Tokens
from bgt_core.errors import UsageError
from bgt_core.nets.bound.roles import RolePooling
from bgt_core.nets.decoder import KVCache, Memory, TransformerDecoder
from bgt_core.nets.layers import (
    Transformer,
    sinusoids,
    xavier_linear,
)
from bgt_core.nets.operations import exact, lookup
from bgt_core.nets.output import OutputLayer, SentencePrediction
from bgt_core.nets.packing import PackedLayout
from bgt_core.nets.pooling import SIFPooling


class Binding(nn.Module):
    """Binds vectors of `width` units to positions.

    The angles w_j are evenly spaced over the circle. Rotations by different integer positions are then orthogonal, up
    to width / 2 positions: the mean over j of exp(i (p - q) w_j) is 0 unless p = q. A position may be any real number.

    Args:
        width: Units of a bound vector, an even number.

    Raises:
        UsageError: The width is odd or below 2.
    """

    def __init__(self, width: int):
        super().__init__()
        if width < 2 or width % 2:
            raise UsageError(f"composed width {width} must be an even number from 2 on: units are rotated in pairs")
        self.width = width

    def angles(self, like: Tensor) -> Tensor:
        """The angle w_j of each number, (K/2,), on the device of a tensor, in its precision or single precision."""
        numbers = self.width // 2
        dtype = torch.promote_types(like.dtype, torch.float32)
        return math.pi * ((2 * torch.arange(numbers, dtype=dtype, device=like.device) + 1) / numbers - 1)

    def bind(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """Rotate each vector by its position.

        Args:
            vectors: (..., K).
            positions: Broadcastable to (...).

        Returns:
            (..., K), with the same norms.
        """
        turns = positions[..., None] * self.angles(vectors)
        cos, sin = turns.cos(), turns.sin()
        real, imaginary = vectors.chunk(2, dim=-1)
        return torch.cat([real * cos - imaginary * sin, real * sin + imaginary * cos], dim=-1)

    def unbind(self, memory: Tensor, positions: Tensor) -> Tensor:
        """Rotate a sum of bound vectors back: the vector bound to each position, plus noise.

        Args:
            memory: (..., K).
            positions: Broadcastable to (...).

        Returns:
            (..., K).
        """
        return self.bind(memory, -positions)


class BoundPooling(nn.Module):
    """The direction of an average beside those of two parts that are composed: `bound` and `roles`.

    The bound part keeps the order of tokens: a sum of the Transformer's states, each bound to its position
    (`Binding`). A decoder can read each state back (`MemoryReader`), where from a mean it has to guess the order.
    The Transformer may move each state by a learned number of positions, so that translations can put the same word in
    the same place. The bound vector is a linear map of the token's own vector, plus one of its state, which starts at
    zero: the states of an untrained Transformer are nearly equal for all tokens, and would encode little more than the
    length.

    The bound part is good for copying, but two wordings of one fact have few words in the same places. The roles tell
    who does what to whom in any wording (`nets.bound.roles`).

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


class MemoryReader(Memory):
    """Read the bound units of a latent at any position, or as slots for attention.

    Args:
        first: Index of the first bound unit in a decoder's latent.
        bound: Number of bound units.
        width: Width of the decoder, H.
        slots: Number of positions for attention, S: the memory unbound at 0, 1, ..., S - 1.
    """

    def __init__(self, first: int, bound: int, width: int, slots: int):
        super().__init__()
        self.units, self.slots = slice(first, first + bound), slots
        self.binding = Binding(bound)
        self.own, self.slot = xavier_linear(bound, width, bias=False), xavier_linear(bound, width, bias=False)

    def at(self, latent: Tensor, positions: Tensor, layout: PackedLayout) -> Tensor:
        """The memory's content for each token at its own position: (B, L), (N,) -> (N, H)."""
        unbound = self.binding.unbind(layout.repeat(latent[:, self.units]), positions)  # (N, K)
        return self.own(unbound.to(matmul_dtype(unbound)))

    def states(self, latent: Tensor) -> Tensor:
        """See `Memory.states`."""
        positions = torch.arange(self.slots, device=latent.device)
        unbound = self.binding.unbind(latent[:, None, self.units], positions)  # (B, S, K)
        states = self.slot(unbound.to(matmul_dtype(unbound)))
        return states + sinusoids(0, self.slots, states)


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
