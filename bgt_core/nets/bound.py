"""Our extension of the BGT paper: a semantic latent that encodes word order (its "bound part") and who does what to
whom (its "roles"), but not the language or closing marks such as "?". The rest of `nets` does not use this file.

Word order is encoded by holographic binding (Plate 1995), which stores the vectors of many positions in one vector. A
vector of K units is treated as K/2 complex numbers. To bind a vector to position p, its complex number j is rotated by
the angle p * w_j, as in rotary embeddings (Su et al. 2021). The bound vectors are added up. To read position p, the sum
is rotated back by p * w_j. The result is the vector of position p plus noise, because the vectors of all other
positions are still rotated by some angle.
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
    """Bind vectors of `width` units to positions p, any real numbers: rotate pair j of units by the angle p * w_j.

    The angles w_j are evenly spaced over the circle. So the rotations for up to width / 2 consecutive integer positions
    are orthogonal: for positions p and q, the mean over j of exp(i (p - q) w_j) is 0 unless p = q.
    """

    def __init__(self, width: int):
        super().__init__()
        if width < 2 or width % 2:
            raise UsageError(f"bound_dim must be even and at least 2 (got {width}), because units are rotated in pairs")
        self.width = width

    def angles(self, like: Tensor) -> Tensor:
        """Return the angles w_j, (K/2,), on the device of `like`: in float64 if `like` is float64, else in float32."""
        numbers = self.width // 2
        dtype = torch.promote_types(like.dtype, torch.float32)
        return math.pi * ((2 * torch.arange(numbers, dtype=dtype, device=like.device) + 1) / numbers - 1)

    def bind(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """Rotate vectors (..., K) by the angles of their positions, which are broadcast to (...): (..., K)."""
        turns = positions[..., None] * self.angles(vectors)
        cos, sin = turns.cos(), turns.sin()
        real, imaginary = vectors.chunk(2, dim=-1)
        return torch.cat([real * cos - imaginary * sin, real * sin + imaginary * cos], dim=-1)

    def unbind(self, memory: Tensor, positions: Tensor) -> Tensor:
        """Read the vector of each position, plus noise, from `memory`, a sum of bound vectors: (..., K) -> (..., K)."""
        return self.bind(memory, -positions)


class BoundPooling(nn.Module):
    """An encoder that concatenates three vectors: an average of token vectors, the "bound part", and the "roles".

    The bound part has `bound` units and encodes word order. Each token has a vector, which is bound to the token's
    position (`Binding`), and the bound part is the sum of these vectors. So a decoder can read the vector of each
    position (`MemoryReader`). The position of a token is its index plus an offset that a Transformer predicts, so that
    a word and its translation can get the same position. The vector of a token is a linear map of its embedding, plus
    a linear map of the Transformer's state. The second map is zero before training, because the states of an untrained
    Transformer are nearly equal for all tokens.

    Two wordings of one fact have few words at the same positions, so their bound parts differ. The roles encode who
    does what to whom, in any wording (`RolePooling`).

    The cosine of two sentence vectors is the weighted sum of the cosines of the three parts. The bound part has the
    weight `bound_share`, the roles have the weight `roles_share`, and the average has the remaining weight.
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
            raise UsageError(
                f"bound_share {bound_share} and roles_share {roles_share} must be above 0, and their sum below 1"
            )
        self.width, self.binding = average.width + bound + roles.width, Binding(bound)
        self.average, self.body, self.relate = average, body, roles
        self.shares = 1 - bound_share - roles_share, bound_share, roles_share
        self.lexical, self.compose = Linear(body.width, bound, bias=False), Linear(body.width, bound, bias=False)
        self.shift = Linear(body.width, 1, bias=False)
        for added in (self.compose, self.shift):
            nn.init.zeros_(added.weight)

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Encode sentences: Tokens (B, T) -> (B, H). Vectors have norm sqrt(H): the mean square of their units is 1."""
        layout = layout or PackedLayout.of(side)
        states = self.body.states(side, layout)  # (R, H)
        words = self.average.words(side, layout)
        bound, roles = self.bound(side, layout, states), self.relate(side, layout, words)
        parts = self.average.pool(*words, layout), bound, roles
        units = [F.normalize(exact(part)) for part in parts]
        scaled = [unit * math.sqrt(share * self.width) for unit, share in zip(units, self.shares, strict=True)]
        return torch.cat(scaled, dim=1)

    def bound(self, side: Tokens, layout: PackedLayout, states: Tensor) -> Tensor:
        """Compute the bound part, (B, K), from tokens (B, T) and the Transformer's states (R, H)."""
        words = self.body.words.table(layout.pack(side.ids)) * math.sqrt(self.body.width)
        positions = layout.columns + exact(self.shift(states))[:, 0]
        return layout.sum(self.binding.bind(exact(self.lexical(words) + self.compose(states)), positions))


class MemoryReader(Memory):
    """Give a decoder the vectors that `BoundPooling` bound to positions. The vector of position p is added to the
    decoder's input at position p. All tokens attend to the vectors of the first S positions, called slots. The bound
    part of the latent, which encodes word order, has `bound` units, K, and starts at unit `first`."""

    def __init__(self, first: int, bound: int, width: int, slots: int):
        super().__init__()
        self.units, self.slots = slice(first, first + bound), slots
        self.binding = Binding(bound)
        self.own, self.slot = xavier_linear(bound, width, bias=False), xavier_linear(bound, width, bias=False)

    def at(self, latent: Tensor, positions: Tensor, layout: PackedLayout) -> Tensor:
        unbound = self.binding.unbind(layout.repeat(latent[:, self.units]), positions)  # (R, K)
        return self.own(unbound.to(matmul_dtype(unbound)))

    def states(self, latent: Tensor) -> Tensor:
        positions = torch.arange(self.slots, device=latent.device)
        unbound = self.binding.unbind(latent[:, None, self.units], positions)  # (B, S, K)
        states = self.slot(unbound.to(matmul_dtype(unbound)))
        return states + sinusoids(0, self.slots, states)


class TaggedDecoder(nn.Module):
    """The decoder of one language. It wraps a decoder that several languages share.

    Only two things belong to the language: a trained vector of `width` units, which is appended to the latent, and the
    output layer `layer`. All other parameters are shared, so they learn from all languages.
    """

    def __init__(self, decoder: TransformerDecoder, layer: OutputLayer, width: int):
        super().__init__()
        self.decoder, self.layer = decoder, layer
        self.tag = nn.Parameter(nn.init.normal_(torch.empty(width)))

    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        """Predict the target sentences (B, T) from their latents (B, L), to which the language's vector is appended."""
        return replace(self.decoder(role, column, self.tagged(latent), target), layer=self.layer)

    def start(self, latent: Tensor) -> KVCache:
        state = self.decoder.start(latent := self.tagged(latent))
        return replace(state, scorer=self.layer.scorer(latent))

    def step(self, tokens: Tensor, state: KVCache) -> Tensor:
        return self.decoder.step(tokens, state)

    def tagged(self, latent: Tensor) -> Tensor:
        return torch.cat([latent, self.tag.to(latent.dtype).expand(len(latent), -1)], dim=-1)


SLOTS, RELATIONS, KEY_WIDTH = 8, 4, 32
ROUNDING = 1e-4  # a vector shorter than this is mostly rounding error, and is not scaled to length 1
SHARP = 3.0  # scale of the initial attention scores; with 1, each slot would attend to all tokens almost equally


class RolePooling(nn.Module):
    """Encode who does what to whom ("roles") by 8 attention-weighted sums over tokens ("slots"), and 4 such sums over
    pairs of tokens ("relations").

    Let c_t be the vector of token t minus the mean vector of the sentence. Without the mean, two related words of the
    sentence, such as "boy" and "girl", are less similar. Let U, V and W be trained matrices.

    - Slot r is the sum over tokens t of a_rt V c_t, where a_r is a softmax over the tokens. Slots can encode who acts
      and who is acted on, as role-filler bindings do (Smolensky 1990).
    - Relation p is the sum over tokens t of g_pt (U c_t) * (W sum_s A_pts c_s). Here * is the elementwise product of a
      token and the tokens to which it attends, and g_pt is a gate. Relations can encode that the cup is red and the
      plate blue.

    Transformer layers compute a, g and A from the token vectors. Words of similar meaning have similar vectors in all
    languages, so a word can get a role that it never had in training. The vector of all slots is scaled to length
    1 / sqrt(2), and so is the vector of all relations. A sentence with fewer than two different tokens gets a vector of
    zeros. Token vectors have `width` units, D, and the result has `roles` units, K.
    """

    def __init__(self, layers: Sequence[EncoderLayer], width: int, roles: int):
        super().__init__()
        if roles < 2 * SLOTS or roles % (2 * SLOTS):
            raise UsageError(f"roles_dim {roles} must be a multiple of {2 * SLOTS}, and at least {2 * SLOTS}")
        self.width, self.layers, inner = roles, nn.ModuleList(layers), layers[0].width
        self.enter, self.norm = Linear(width, inner), nn.LayerNorm(inner)
        self.slots, self.filler = Linear(inner, SLOTS), Linear(width, roles // 2 // SLOTS, bias=False)
        nn.init.normal_(self.slots.weight, std=SHARP / math.sqrt(inner))
        of_pair = roles // 2 // RELATIONS
        self.pairs, self.gate = Linear(inner, 2 * RELATIONS * KEY_WIDTH), Linear(inner, RELATIONS)
        self.head, self.dependent = Linear(width, of_pair, bias=False), Linear(width, of_pair, bias=False)

    def forward(self, side: Tokens, layout: PackedLayout, words: tuple[Tensor, Tensor]) -> Tensor:
        """Encode who does what to whom as one vector of norm 1 per sentence, (B, K); zeros if all its tokens are equal.
        `words` are token vectors (R, D) and their weights in the sentence's mean, (R,). Weight 0 excludes a token."""
        vectors, weights = words
        x = self.norm(self.enter(vectors * math.sqrt(vectors.shape[1])))
        x = x + sinusoids(0, layout.shape[1], x)[layout.columns]
        for layer in self.layers:
            x = layer(x, layout, layout.real)  # (R, H)
        mean = layout.sum(vectors * weights[:, None]) / layout.sum(weights).clamp(min=1e-6)[:, None]  # (B, D)
        centred = (vectors - layout.repeat(mean)) * (weights > 0)[:, None]  # (R, D)
        counted = (layout.unpack(weights[:, None]).squeeze(2) > 0) & layout.mask  # (B, T)
        halves = self.of_slots(x, centred, counted, layout), self.of_relations(x, centred, counted, layout)
        roles = torch.cat([F.normalize(half.flatten(1), eps=ROUNDING) for half in halves], dim=1) * math.sqrt(0.5)
        # If all tokens of a sentence are equal, return zeros: its centred vectors are only rounding errors.
        ids = layout.unpack(layout.pack(side.ids)[:, None]).squeeze(2)  # (B, T)
        first = ids.gather(1, counted.int().argmax(1, keepdim=True))
        return roles.where(((ids != first) & counted).any(1, keepdim=True), 0)

    def of_slots(self, states: Tensor, centred: Tensor, counted: Tensor, layout: PackedLayout) -> Tensor:
        """Compute the slots, attention-weighted sums over tokens: (B, slots, K / 2 / slots)."""
        scores = layout.unpack(exact(self.slots(states))).transpose(1, 2)  # (B, slots, T)
        return chosen(scores, counted[:, None]) @ layout.unpack(exact(self.filler(centred)))

    def of_relations(self, states: Tensor, centred: Tensor, counted: Tensor, layout: PackedLayout) -> Tensor:
        """Compute the relations, sums over pairs of tokens: (B, relations, K / 2 / relations)."""
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
    """Compute the softmax over the tokens (last dimension) where `counted` is True; 0 for all other tokens."""
    return scores.masked_fill(~counted, -1e4).softmax(-1) * counted


class WithoutLanguage(nn.Module):
    """An encoder whose vectors have the same mean in all languages, so that no linear probe can predict the language.

    The differences between the means of the M languages span a subspace of at most M - 1 dimensions. The vectors are
    projected onto the orthogonal complement of this subspace. If the means of all classes are equal, no linear
    predictor is better than the best constant (Belrose et al. 2023, LEACE, theorem 3.1). LEACE finds the smallest
    change that makes the means equal. The orthogonal projection changes the vectors more, but needs no covariances.

    The projection shortens vectors. If `parts`, the sizes of concatenated parts of a vector, are given, each part is
    scaled back to its previous norm, so that it keeps its weight in the cosine. This scaling moves the means slightly
    apart. So the model applies `WithoutLanguage` twice, the second time without `parts`.

    Each mean is a moving average over the last `memory` training sentences. The distance between the means of two
    languages is measured on translations only, because other texts also differ in topic. So only a micro-batch with
    several languages moves their means relative to each other; every micro-batch moves all means by one common vector.
    The means change at the end of an update (`settle`), after the sums of all processes have been added up. To encode
    a sentence after training, its language is not needed.
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
        self.register_buffer("read", torch.zeros(len(self.langs)))  # number of sentences in each mean, up to `memory`
        # `directions` is an orthonormal basis of the subspace to remove, or zero. `micro_batch` has, for each language,
        # the sum of its vectors in the current micro-batch, and their number.
        self.register_buffer("directions", torch.zeros(len(self.langs) - 1, self.width))
        self.register_buffer("micro_batch", torch.zeros(len(self.langs), self.width + 1), persistent=False)
        # `seen` has four sums for each language, over its sentences since the last optimiser step. Sum 1 is of vectors
        # minus the language's mean and the common shift (`compare_languages`), only in micro-batches with several
        # languages. Sum 2 is of common shifts, in all micro-batches. Sums 3 and 4 count the sentences in sums 1 and 2.
        self.register_buffer("seen", torch.zeros(len(self.langs), 2 * self.width + 2), persistent=False)

    def forward(self, side: Tokens, layout: PaddedLayout | None = None) -> Tensor:
        """Encode sentences as vectors: Tokens (B, T) -> (B, H)."""
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
        """Whether the encoder has parameters, but none of them is trained, so that its vectors do not change."""
        trained = [parameter.requires_grad for parameter in self.body.parameters()]
        return bool(trained) and not any(trained)

    @torch.no_grad()
    def compare_languages(self) -> None:
        """Add the micro-batch to `seen`. A language's vectors differ from the language's mean by a shift that all
        languages of the micro-batch share, and by a remainder. `seen` has separate sums of shifts and of remainders."""
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
        """Update the M languages' means and the subspace to remove, at the end of an optimiser step. The argument
        `seen`, (M, 2 H + 2), is the sum of `self.seen` over all processes."""
        apart, common, translated, count = seen.split([self.width, self.width, 1, 1], dim=1)
        translated = translated[:, 0]
        self.read.copy_(torch.minimum(self.read + translated, translated.clamp(min=self.memory)))
        self.means += apart / self.read.clamp(min=1)[:, None]
        self.means += common.sum(0) / count.sum().clamp(min=self.memory)
        all_read = self.read.min() > 0  # nothing is removed until every language has a mean
        between = torch.linalg.qr((self.means[1:] - self.means[:1]).T).Q.T  # (M - 1, H)
        self.directions.copy_(torch.where(all_read, between, self.directions))
        self.seen.zero_()


class ClosingMarks(nn.Module):
    """Remove closing marks such as "." and "?!" from sentences, or exchange them between sentences."""

    marks: Tensor  # (V,) bool, True for tokens that consist of closing marks (`Tokenizer.closing_marks`)

    def __init__(self, marks: Tensor):
        super().__init__()
        self.register_buffer("marks", marks, persistent=False)

    def closing(self, side: Tokens) -> Tensor:
        """Find closing marks, (B, T) bool: marks followed only by marks and EOS. The first token never counts."""
        inside = side.mask & (side.ids != EOS)
        others = inside & ~self.marks[side.ids]
        words_after = others.flip(1).cumsum(1).flip(1)  # number of words at or after each token
        at_end = inside & (words_after == 0)
        return torch.cat([torch.zeros_like(at_end[:, :1]), at_end[:, 1:]], dim=1)

    def remove(self, side: Tokens) -> Tokens:
        """Return the sentences without their closing marks, but with EOS. The shape stays (B, T)."""
        if side.ids.is_meta:  # on the meta device, tensors have no values
            return side
        closing = self.closing(side)
        dropped = closing.sum(1, keepdim=True)  # (B, 1)
        last = side.mask.sum(1, keepdim=True) - 1 - dropped  # the new position of EOS
        column = torch.arange(side.ids.shape[1], device=side.ids.device)
        ids = torch.where(column < last, side.ids, torch.where(column == last, EOS, PAD))
        return Tokens.of(ids, column <= last, side.lang)

    def exchange(self, side: Tokens, share: float) -> Tokens:
        """Return the sentences, each with the closing mark of another random sentence with probability `share`. Only
        sentences with exactly one closing mark give or get one."""
        single = self.closing(side).sum(1) == 1  # (B,)
        column = (side.mask.sum(1) - 2).clamp(min=0)[:, None]  # position of the last token before EOS
        mark, other = side.ids.gather(1, column), torch.randperm(len(side.ids), device=side.ids.device)
        takes = single & single[other] & (torch.rand(len(other), device=other.device) < share)
        ids = side.ids.scatter(1, column, torch.where(takes[:, None], mark[other], mark))
        return Tokens(ids, side.mask, side.lang, side.flat_index)


class WithoutClosingMarks(nn.Module):
    """An encoder that ignores the closing marks of sentences. The semantic encoder uses it, so that only the language
    latent can encode whether a sentence is a question or an exclamation."""

    def __init__(self, body: nn.Module, closing: ClosingMarks):
        super().__init__()
        self.width = body.width
        self.body, self.closing = body, closing

    def forward(self, side: Tokens, layout: PaddedLayout | None = None) -> Tensor:
        """Encode sentences as vectors: Tokens (B, T) -> (B, H)."""
        shorter = self.closing.remove(side)
        return self.body(shorter, None if layout is None else layout.of_mask(shorter.mask))
