"""Write text from a vector: a memory of linear maps, and a decoder that reads a draft beside the latent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from bgt_core.contracts import Role, Tokens
from bgt_core.nets.decoder import KVCache, Memory, TransformerDecoder
from bgt_core.nets.layers import CrossAttention, Transformer, xavier_linear
from bgt_core.nets.operations import PackedLayout
from bgt_core.nets.output import SentencePrediction


class LinearMemory(Memory):
    """Read a latent by linear maps: one for each slot, and one that every token gets.

    Args:
        latent: Units of a decoder's latent, L.
        width: Width of the decoder, H.
        slots: Number of slots for attention, S.
    """

    def __init__(self, latent: int, width: int, slots: int):
        super().__init__()
        self.own, self.slot = xavier_linear(latent, width), xavier_linear(latent, slots * width)
        # a hidden latent and a dropped word are both 0; the gradients of a layer norm of 0 explode
        nn.init.normal_(self.own.bias, std=width**-0.5)
        self.width = width

    def at(self, latent: Tensor, positions: Tensor, layout: PackedLayout) -> Tensor:
        """See `Memory.at`: the same at every position."""
        return layout.repeat(self.own(latent))

    def states(self, latent: Tensor) -> Tensor:
        """See `Memory.states`."""
        return self.slot(latent).unflatten(-1, (-1, self.width))


@dataclass(frozen=True, eq=False)
class Drafted:
    """The input of a `CorrectingDecoder` for B sentences: latents, and the states of a draft of each."""

    latent: Tensor  # (B, L)
    states: Tensor  # (N, H), for the N tokens of the drafts
    drafts: Tokens  # (B, T)

    def __len__(self) -> int:
        return len(self.latent)

    @property
    def device(self) -> torch.device:
        """Their device."""
        return self.latent.device


class DraftReader(nn.Module):
    """Read drafts: a Transformer over their tokens, to each of which a linear map of what the draft lacks is added.

    Args:
        body: The Transformer.
        units: Units of the difference of the vector asked for and the draft's.
    """

    def __init__(self, body: Transformer, units: int):
        super().__init__()
        self.body, self.lacking = body, xavier_linear(units, body.width, bias=False)

    def forward(self, latent: Tensor, drafts: Tokens, lacking: Tensor) -> Drafted:
        """Latents (B, L), drafts (B, T), differences (B, D) -> the input of a decoder."""
        layout = PackedLayout.of(drafts)
        return Drafted(latent, self.body.states(drafts, layout) + layout.repeat(self.lacking(lacking)), drafts)


class CorrectingDecoder(TransformerDecoder):
    """p(sentence | latent, draft): its layers attend to a draft's tokens beside the slots of the latent.

    Given a latent alone, it is a `TransformerDecoder` with the same parameters.
    """

    def forward(self, role: Role, column: str, context: Tensor | Drafted, target: Tokens) -> SentencePrediction:
        """Predict `target` (B, T) from latents (B, L), or from drafts as well."""
        latent, attended, real = self.given(context)
        return self.predict(role, column, latent, target, attended, real)

    def start(self, context: Tensor | Drafted) -> KVCache:
        """The initial state of a search for each latent, or draft."""
        latent, attended, real = self.given(context)
        return self.begin(latent, latent, attended, real)

    def given(self, context: Tensor | Drafted) -> tuple[Tensor, list[Tensor | None], Tensor | None]:
        """Latents (B, L), each layer's keys and values (2, B, heads, S, H/heads), and a mask of the real ones."""
        if isinstance(context, Tensor):
            return context, self.slots(context), None
        layout = PackedLayout.of(context.drafts)
        slots = cast(list[Tensor], self.slots(context.latent))
        drafts = [cast(CrossAttention, layer.cross).keys_values(context.states, layout) for layer in self.layers]
        always = layout.mask.new_ones(len(context), slots[0].shape[3])
        real = torch.cat([always, layout.mask], dim=1)[:, None, None]  # (B, 1, 1, S)
        return context.latent, [torch.cat(pair, dim=3) for pair in zip(slots, drafts, strict=True)], real
