"""Translation with attention to every state of the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from torch import nn

from bgt_core.capabilities import Decoder
from bgt_core.contracts import SEMANTIC, Batch, Outputs, Readout, Tokens
from bgt_core.errors import UsageError
from bgt_core.models.latent import LatentModel
from bgt_core.nets.decoder import AttentionDecoder, EncoderStates
from bgt_core.nets.layers import Transformer
from bgt_core.nets.operations import PackedLayout
from bgt_core.posterior import Point


class Translator(LatentModel):
    """Translate one column into the others, with a decoder for each of their languages that attends to all states.

    There is no single vector between the two sentences. A sentence is embedded as the mean of its encoder states, which
    are not trained for that; it shows how much of the meaning a translator encodes (España-Bonet et al. 2017 compare
    sentences by their sum).
    """

    def __init__(self, encoder: nn.Module, decoders: Mapping[str, AttentionDecoder], source: str, lang: str):
        """`encoder` has a `Transformer` as its body; `source` is the source column, `lang` its language."""
        super().__init__((lang,), {SEMANTIC: encoder})
        self.decoders = nn.ModuleDict(decoders)
        self.source = source

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        if self.source not in batch.sides:
            columns = ", ".join(batch.sides)
            raise UsageError(f"{columns}: each corpus needs the source column {self.source}", parameter="columns")
        states = self.states(batch.sides[self.source])
        predictions = [
            self.decoders[side.lang]("translate", column, states, side)
            for column, side in batch.sides.items()
            if column != self.source
        ]
        semantic = Point(PackedLayout.of(states.side).mean(states.states).detach())
        return Outputs({self.source: semantic}, {}, predictions)

    @property
    def translates(self) -> tuple[str, ...]:
        """The languages that it translates into."""
        return tuple(self.decoders)

    def states(self, side: Tokens) -> EncoderStates:
        """Encode the sources, (B, T), for the decoders."""
        body = cast(Transformer, self.encoders[SEMANTIC].body)
        return EncoderStates(body.states(side, PackedLayout.of(side)), side)

    def decoder(self, lang: str) -> Decoder:
        """The decoder of that language, which reads `states`."""
        return cast(Decoder, self.decoders[lang])
