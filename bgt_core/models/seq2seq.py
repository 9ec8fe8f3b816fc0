"""Translation and autoencoding through one vector."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from bgt_core.contracts import SEMANTIC, Batch, Outputs, Prediction, Readout, Role
from bgt_core.errors import UsageError
from bgt_core.models.latent import LatentModel
from bgt_core.posterior import readout_named


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
