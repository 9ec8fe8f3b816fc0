"""Our extension of the paper: the semantic latent encodes word order and roles, but not the language or closing marks.
The other files of `nets` can be read without this one.

Holographic binding stores many vectors in one, each under its position (Plate 1995).

A vector of K units is treated as K/2 complex numbers. To bind it to position p, number j is rotated by the angle p *
w_j, as in rotary embeddings (Su et al. 2021). Bound vectors are added up; rotating the sum back by p * w_j gives the
vector bound to p, plus the other vectors, rotated by different angles in each number, which look like noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.backend import Linear, matmul_dtype
from bgt_core.contracts import EOS, PAD, Role, Tokens
from bgt_core.errors import UsageError
from bgt_core.nets.decoder import KVCache, Memory, TransformerDecoder
from bgt_core.nets.encoders import SIFPooling
from bgt_core.nets.layers import EncoderLayer, Transformer, blocks_of, sinusoids, xavier_linear
from bgt_core.nets.operations import PackedLayout, PaddedLayout, exact
from bgt_core.nets.output import OutputLayer, SentencePrediction


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
            raise UsageError(
                f"composed width must be even and at least 2 (got {width}), because units are rotated in pairs"
            )
        self.width = width

    def angles(self, like: Tensor) -> Tensor:
        """The angle w_j of each number, (K/2,), on the device of a tensor, in its precision or single precision."""
        numbers = self.width // 2
        dtype = torch.promote_types(like.dtype, torch.float32)
        return math.pi * ((2 * torch.arange(numbers, dtype=dtype, device=like.device) + 1) / numbers - 1)

    def bind(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """Rotate each vector, (..., K), by its position, broadcastable to (...): (..., K), with the same norms."""
        turns = positions[..., None] * self.angles(vectors)
        cos, sin = turns.cos(), turns.sin()
        real, imaginary = vectors.chunk(2, dim=-1)
        return torch.cat([real * cos - imaginary * sin, real * sin + imaginary * cos], dim=-1)

    def unbind(self, memory: Tensor, positions: Tensor) -> Tensor:
        """Rotate a sum of bound vectors back, shaped as in `bind`: the vector bound to each position, plus noise."""
        return self.bind(memory, -positions)


class BoundPooling(nn.Module):
    """Three directions side by side: of an average of token vectors, and of two composed parts, `bound` and `roles`.

    The bound part keeps the order of tokens: a sum of the Transformer's states, each bound to its position
    (`Binding`). A decoder can read each state back (`MemoryReader`); from a mean it would have to guess the order.
    The Transformer may move each state by a learned number of positions, so that translations can put the same word in
    the same place. The bound vector is a linear map of the token's own vector, plus one of its state, which starts at
    zero: the states of an untrained Transformer are nearly equal for all tokens, and would encode little more than the
    length.

    The bound part is good for copying, but two wordings of one fact have few words in the same places. The roles tell
    who does what to whom in any wording (`RolePooling`).

    The cosine of two such vectors is the sum of the three parts' cosines, weighted by their shares.

    Args:
        average: The averaged part.
        body: The Transformer under the bound part.
        roles: The part that encodes roles, computed from the average's token vectors.
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
        """Tokens (B, T) -> (B, H). Vectors have length sqrt(H), so a unit is about N(0, 1) over sentences."""
        layout = layout or PackedLayout.of(side)
        states = self.body.states(side, layout)  # (N, H)
        words = self.average.words(side, layout)
        bound, roles = self.bound(side, layout, states), self.relate(side, layout, words)
        parts = self.average.pool(*words, layout), bound, roles
        units = [F.normalize(exact(part)) for part in parts]
        scaled = [unit * math.sqrt(share * self.width) for unit, share in zip(units, self.shares, strict=True)]
        return torch.cat(scaled, dim=1)

    def bound(self, side: Tokens, layout: PackedLayout, states: Tensor) -> Tensor:
        """Sum R(position) (V vector + W state) over the tokens: Tokens (B, T), states (N, H) -> (B, K)."""
        words = self.body.words.table(layout.pack(side.ids)) * math.sqrt(self.body.width)
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
        unbound = self.binding.unbind(layout.repeat(latent[:, self.units]), positions)  # (N, K)
        return self.own(unbound.to(matmul_dtype(unbound)))

    def states(self, latent: Tensor) -> Tensor:
        positions = torch.arange(self.slots, device=latent.device)
        unbound = self.binding.unbind(latent[:, None, self.units], positions)  # (B, S, K)
        states = self.slot(unbound.to(matmul_dtype(unbound)))
        return states + sinusoids(0, self.slots, states)


class TaggedDecoder(nn.Module):
    """A decoder shared by several languages, for one of them, marked by a learnt vector beside the latent.

    The shared parameters learn from all languages; each language adds only a vector. `layer` is that language's output
    layer, used in place of the decoder's.
    """

    def __init__(self, decoder: TransformerDecoder, layer: OutputLayer, width: int):
        super().__init__()
        self.decoder, self.layer = decoder, layer
        self.tag = nn.Parameter(torch.randn(width))

    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        """See `TransformerDecoder`; latent (B, L) is without the vector of the language."""
        return replace(self.decoder(role, column, self.tagged(latent), target), layer=self.layer)

    def start(self, latent: Tensor) -> KVCache:
        state = self.decoder.start(latent := self.tagged(latent))
        return replace(state, scorer=self.layer.scorer(latent))

    def step(self, tokens: Tensor, state: KVCache) -> Tensor:
        return self.decoder.step(tokens, state)

    def tagged(self, latent: Tensor) -> Tensor:
        return torch.cat([latent, self.tag.to(latent.dtype).expand(len(latent), -1)], dim=-1)


SLOTS, RELATIONS, KEY_WIDTH = 8, 4, 32
ROUNDING = 1e-4  # a half below this length is mostly rounding error, which must not be scaled to length 1
SHARP = 3.0  # factor on a slot's initial weights: slots that attend to all tokens equally would lose the order


class RolePooling(nn.Module):
    """Slots that each attend to a token, and relations that each attend to pairs of tokens.

    Transformer layers choose the tokens to attend to. The values are the tokens' own vectors, less their mean over the
    sentence, which removes what words such as "boy" and "girl" share. So a slot can hold the agent, whichever word it
    is. The layers read the same vectors, which are similar for words of the same meaning in all languages: a word that
    was never seen in a role is still found.

    - Slot r: the sum over tokens t of a_rt V c_t, where c_t is the centred vector and a_r a softmax over the tokens.
      It tells who acts and who is acted on.
    - Relation p: the sum over tokens t of g_pt (U c_t) * (W sum_s A_pts c_s), an elementwise product of a token with
      those that it attends to. It tells which word belongs to which: the red cup and the blue plate.

    Both halves are scaled to length 1 / sqrt(2). A sentence without two different words has no roles: its vector is 0.
    Slots go back to role-filler bindings (Smolensky 1990, tensor product representations).

    Args:
        layers: The layers that choose, of width H.
        width: Units D of the tokens' own vectors.
        roles: Units K of the result, a multiple of 16.

    Raises:
        UsageError: Another number of units.
    """

    def __init__(self, layers: Sequence[EncoderLayer], width: int, roles: int):
        super().__init__()
        if roles < 2 * SLOTS or roles % (2 * SLOTS):
            raise UsageError(f"roles_dim {roles} must be a multiple of {2 * SLOTS}, as half is {SLOTS} slots")
        self.width, self.layers, inner = roles, nn.ModuleList(layers), layers[0].width
        self.enter, self.norm = Linear(width, inner), nn.LayerNorm(inner)
        self.slots, self.filler = Linear(inner, SLOTS), Linear(width, roles // 2 // SLOTS, bias=False)
        nn.init.normal_(self.slots.weight, std=SHARP / math.sqrt(inner))
        of_pair = roles // 2 // RELATIONS
        self.pairs, self.gate = Linear(inner, 2 * RELATIONS * KEY_WIDTH), Linear(inner, RELATIONS)
        self.head, self.dependent = Linear(width, of_pair, bias=False), Linear(width, of_pair, bias=False)

    def forward(self, side: Tokens, layout: PackedLayout, words: tuple[Tensor, Tensor]) -> Tensor:
        """Pool tokens' own vectors.

        Args:
            side: B sentences.
            layout: The layout of their N tokens.
            words: The tokens' own vectors, (N, D), and the weight of each in the sentence's mean, (N,); nothing
                attends to a token of weight 0.

        Returns:
            (B, K), of length 1, or 0 for a sentence that repeats one word.
        """
        vectors, weights = words
        x = self.norm(self.enter(vectors * math.sqrt(vectors.shape[1])))
        x = x + sinusoids(0, layout.shape[1], x)[layout.columns]
        for layer in self.layers:
            x = layer(x, layout, layout.real)  # (N, H)
        mean = layout.sum(vectors * weights[:, None]) / layout.sum(weights).clamp(min=1e-6)[:, None]  # (B, D)
        centred = (vectors - layout.repeat(mean)) * (weights > 0)[:, None]  # (N, D)
        counted = (layout.unpack(weights[:, None]).squeeze(2) > 0) & layout.mask  # (B, T)
        halves = self.of_slots(x, centred, counted, layout), self.of_relations(x, centred, counted, layout)
        roles = torch.cat([F.normalize(half.flatten(1), eps=ROUNDING) for half in halves], dim=1) * math.sqrt(0.5)
        # centred vectors of one word, however often it is repeated, are rounding error
        ids = layout.unpack(layout.pack(side.ids)[:, None]).squeeze(2)  # (B, T)
        first = ids.gather(1, counted.int().argmax(1, keepdim=True))
        return roles.where(((ids != first) & counted).any(1, keepdim=True), 0)

    def of_slots(self, states: Tensor, centred: Tensor, counted: Tensor, layout: PackedLayout) -> Tensor:
        """The filler of each slot, (B, slots, K / 2 / slots)."""
        scores = layout.unpack(exact(self.slots(states))).transpose(1, 2)  # (B, slots, T)
        return chosen(scores, counted[:, None]) @ layout.unpack(exact(self.filler(centred)))

    def of_relations(self, states: Tensor, centred: Tensor, counted: Tensor, layout: PackedLayout) -> Tensor:
        """The product of each relation, (B, relations, K / 2 / relations)."""
        queries, keys = exact(layout.split(self.pairs(states), 2, RELATIONS))  # (B, relations, T, KEY_WIDTH) each
        dependents = layout.unpack(exact(self.dependent(centred)))[:, None]
        attended = [
            chosen(queries[:, :, block] @ keys.transpose(2, 3) / math.sqrt(KEY_WIDTH), counted[:, None, None])
            @ dependents
            for block in blocks_of(queries, keys)
        ]
        gates = layout.unpack(exact(self.gate(states))).sigmoid() * counted[:, :, None]  # (B, T, relations)
        heads = layout.unpack(exact(self.head(centred)))[:, None]  # (B, 1, T, K / 2 / relations)
        return (gates.transpose(1, 2)[..., None] * heads * torch.cat(attended, dim=2)).sum(2)


def chosen(scores: Tensor, counted: Tensor) -> Tensor:
    """Softmax over the last dimension, restricted to tokens that count; 0 for the others, even if no token counts."""
    return scores.masked_fill(~counted, -1e4).softmax(-1) * counted


class WithoutLanguage(nn.Module):
    """A body whose vectors have the same mean in every language, so that no linear probe can predict the language.

    The directions between the languages' means are removed from the vectors, at most K - 1 for K languages. If the
    means of all classes are equal, no linear predictor is better than the best constant (Belrose et al. 2023, LEACE,
    theorem 3.1). LEACE finds the smallest such change; this is the orthogonal one, which needs no covariance.

    Vectors get shorter, some more than others. If `parts` are given, each part is scaled back to its old length, and so
    keeps its share of the cosine. Scaling moves the means slightly apart again, so the model uses a second
    `WithoutLanguage` after the first.

    The means are tracked in training, over the last `memory` sentences of each language. Only translations tell how far
    apart two languages are, because other texts differ in topic. So a micro-batch in several languages moves each of
    their means relative to the others, and every micro-batch moves all means together. The means change at the end of
    an update (`settle`), from the micro-batches of all processes. The body needs the language in training only.

    Args:
        body: The body whose vectors are changed.
        langs: The languages to align.
        parts: Units of each part that keeps its length; without them, vectors get shorter.
        memory: Number of sentences over which a mean averages.
    """

    means: Tensor
    read: Tensor
    directions: Tensor
    micro_batch: Tensor
    seen: Tensor

    def __init__(self, body: nn.Module, langs: Sequence[str], parts: Sequence[int] = (), memory: int = 20_000):
        super().__init__()
        self.width: int = body.width  # type: ignore[assignment]
        self.body, self.langs, self.parts, self.memory = body, list(langs), list(parts), memory
        self.register_buffer("means", torch.zeros(len(self.langs), self.width))
        self.register_buffer("read", torch.zeros(len(self.langs)))  # number of sentences in the means, at most `memory`
        self.register_buffer("directions", torch.zeros(len(self.langs) - 1, self.width))  # orthonormal, or zero
        # of each language in the micro-batch: the sum of its vectors, and how many there are
        self.register_buffer("micro_batch", torch.zeros(len(self.langs), self.width + 1), persistent=False)
        # Sums over the sentences of each language since the last update: the distance to its mean, less the shift that
        # all languages share (from micro-batches with translations only); that shift; and both numbers of sentences.
        self.register_buffer("seen", torch.zeros(len(self.langs), 2 * self.width + 2), persistent=False)

    def forward(self, side: Tokens, layout: PaddedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, H)."""
        vectors = self.body(side, layout)
        if self.training and not self.frozen:
            total = vectors.detach().float().sum(0)
            self.micro_batch[self.langs.index(side.lang)] += torch.cat([total, total.new_tensor([len(vectors)])])
        away = vectors.float() - self.means.mean(0)
        erased = vectors - (away @ self.directions.T) @ self.directions
        if not self.parts:
            return erased
        parts = zip(vectors.split(self.parts, dim=1), erased.split(self.parts, dim=1), strict=True)
        return torch.cat([F.normalize(after) * before.norm(dim=1, keepdim=True) for before, after in parts], dim=1)

    @property
    def frozen(self) -> bool:
        """Whether the body has parameters and all of them are frozen, so that its vectors no longer change."""
        trained = [parameter.requires_grad for parameter in self.body.parameters()]
        return bool(trained) and not any(trained)

    @torch.no_grad()
    def compare_languages(self) -> None:
        """At the end of a micro-batch, add to `seen` how far its languages are from their means."""
        total, count = self.micro_batch.split([self.width, 1], dim=1)
        present = count > 0
        gaps = torch.where(present, total / count.clamp(min=1) - self.means, 0.0)
        weights = self.read[:, None] * present
        common = (weights * gaps).sum(0) / weights.sum().clamp(min=1)
        translated = count * (present.sum() > 1)
        self.seen += torch.cat([translated * (gaps - common), count * common, translated, count], dim=1)
        self.micro_batch.zero_()

    @torch.no_grad()
    def settle(self, seen: Tensor) -> None:
        """Move the means towards those of an update's sentences, and update the directions.

        Args:
            seen: (K, 2 H + 2), as `seen`, summed over all processes.
        """
        apart, common, translated, count = seen.split([self.width, self.width, 1, 1], dim=1)
        translated = translated[:, 0]
        self.read.copy_(torch.minimum(self.read + translated, translated.clamp(min=self.memory)))
        self.means += apart / self.read.clamp(min=1)[:, None]
        self.means += common.sum(0) / count.sum().clamp(min=self.memory)
        all_read = self.read.min() > 0  # before that, the directions are zero
        between = torch.linalg.qr((self.means[1:] - self.means[:1]).T).Q.T  # (K - 1, H)
        self.directions.copy_(torch.where(all_read, between, self.directions))
        self.seen.zero_()


class ClosingMarks(nn.Module):
    """Remove closing marks from sentences, or exchange them between sentences.

    Args:
        marks: (V,) bool, True for tokens that consist of marks (`Tokenizer.closing_marks`).
    """

    marks: Tensor

    def __init__(self, marks: Tensor):
        super().__init__()
        self.register_buffer("marks", marks, persistent=False)

    def closing(self, side: Tokens) -> Tensor:
        """Find closing marks, (B, T) bool: marks with only marks between them and EOS. The first token is never one."""
        inside = side.mask & (side.ids != EOS)
        others = inside & ~self.marks[side.ids]
        words_after = others.flip(1).cumsum(1).flip(1)  # from this token on
        at_end = inside & (words_after == 0)
        return torch.cat([torch.zeros_like(at_end[:, :1]), at_end[:, 1:]], dim=1)

    def remove(self, side: Tokens) -> Tokens:
        """Return the sentences without their closing marks, each still ending in EOS; (B, T) as before."""
        if side.ids.is_meta:  # on the meta device only shapes are needed
            return side
        closing = self.closing(side)
        dropped = closing.sum(1, keepdim=True)  # (B, 1)
        last = side.mask.sum(1, keepdim=True) - 1 - dropped  # the new position of EOS
        column = torch.arange(side.ids.shape[1], device=side.ids.device)
        ids = torch.where(column < last, side.ids, torch.where(column == last, EOS, PAD))
        return Tokens.of(ids, column <= last, side.lang)

    def single(self, side: Tokens) -> tuple[Tensor, Tensor]:
        """Whether each sentence ends in exactly one closing mark, (B,) bool, and its column, (B,)."""
        return self.closing(side).sum(1) == 1, side.mask.sum(1) - 2

    def exchange(self, side: Tokens, share: float) -> Tokens:
        """Return the sentences, about `share` of them with the closing mark of another sentence of the batch.

        Only sentences that end in exactly one mark give or take one. Random draws use torch's global generator.
        """
        single, column = self.single(side)
        column = column.clamp(min=0)[:, None]
        mark, other = side.ids.gather(1, column), torch.randperm(len(side.ids), device=side.ids.device)
        takes = single & single[other] & (torch.rand(len(other), device=other.device) < share)
        ids = side.ids.scatter(1, column, torch.where(takes[:, None], mark[other], mark))
        return Tokens(ids, side.mask, side.lang, side.flat_index)


class WithoutClosingMarks(nn.Module):
    """A body that does not see closing marks: whether a sentence is a question or exclamation is left to the language
    latents."""

    def __init__(self, body: nn.Module, closing: ClosingMarks):
        super().__init__()
        self.width = body.width
        self.body, self.closing = body, closing

    def forward(self, side: Tokens, layout: PaddedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, H)."""
        shorter = self.closing.remove(side)
        return self.body(shorter, None if layout is None else layout.of_mask(shorter.mask))
