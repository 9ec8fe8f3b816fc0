"""Translation and autoencoding: through one vector, or with attention to every state of the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from torch import nn

from bgt_core.capabilities import Decoder
from bgt_core.contracts import SEMANTIC, Batch, Outputs, Prediction, Readout, Role, Tokens
from bgt_core.errors import UsageError
from bgt_core.models.latent import LatentModel
from bgt_core.nets.decoder import AttentionDecoder, EncoderStates
from bgt_core.nets.layers import Transformer
from bgt_core.nets.operations import PackedLayout
from bgt_core.posterior import Point, readout_named


class Seq2Seq(LatentModel):
    """One semantic encoder; each decoder generates its sentence from the vector of another sentence, or of the sentence
    itself.

    `sources` are the columns that are encoded, with their languages, and `decoders` holds one decoder for each target
    language. With the role "reconstruct" each source is generated from itself (an autoencoder), with "translate" each
    column from its `Batch.source`, or if that is not encoded, from the first column that is. `readout` is the input of
    decoders: a "sample" of the posterior or its "mean"; a readout given with a batch overrides it.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoders: Mapping[str, nn.Module],
        sources: Mapping[str, str],
        role: Role,
        readout: str = "sample",
    ):
        super().__init__(tuple(dict.fromkeys(sources.values())), {SEMANTIC: encoder})
        self.decoders = nn.ModuleDict({f"{role}/{lang}": decoder for lang, decoder in decoders.items()})
        self.sources = tuple(sources)
        self.role = role
        self.readout = readout_named(readout)

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        readout = readout or self.readout
        encoder = self.encoders[SEMANTIC]
        semantic = {column: encoder(side) for column, side in batch.sides.items() if column in self.sources}
        if not semantic:
            columns, sources = ", ".join(batch.sides), ", ".join(self.sources)
            raise UsageError(f"{columns}: each corpus needs one of the source columns {sources}", parameter="columns")
        latents = {column: readout(each) for column, each in semantic.items()}  # (B, L), one draw per sentence
        predictions: list[Prediction] = []
        for column, side in batch.sides.items():
            source = self.source(batch, column)
            if source in latents:
                decoder = self.decoders[f"{self.role}/{side.lang}"]
                predictions.append(decoder(self.role, column, latents[source], side))
        pays = batch.anchor if batch.anchor in semantic else next(iter(semantic))
        return Outputs(semantic, {SEMANTIC: {SEMANTIC: semantic[pays]}}, predictions)

    def source(self, batch: Batch, column: str) -> str | None:
        """The column that `column` is generated from; None if it is not generated."""
        if self.role == "reconstruct":
            return column
        if (source := batch.source(column)) in self.sources:
            return source if source != column else None
        first = next(source for source in self.sources if source in batch.sides)
        return first if first != column else None


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
