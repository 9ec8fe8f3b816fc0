"""Encode who does what to whom: a vector that changes if two words exchange places, and not with the wording."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.backend import Linear
from bgt_core.contracts import Tokens
from bgt_core.errors import UsageError
from bgt_core.nets.layers import EncoderLayer, blocks_of, sinusoids
from bgt_core.nets.operations import exact
from bgt_core.nets.packing import PackedLayout

SLOTS, RELATIONS, KEY_WIDTH = 8, 4, 32
ROUNDING = 1e-4  # a half below this length is mostly rounding error, which must not be scaled to length 1
SHARP = 3.0  # times the usual scale of a slot's initial weights: slots that attend to all tokens equally lose the order


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
    """A softmax over the tokens that count, the last dimension; 0 for all others, even if none counts."""
    return scores.masked_fill(~counted, -1e4).softmax(-1) * counted
