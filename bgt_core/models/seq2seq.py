"""Translation and autoencoding through one vector."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from bgt_core.contracts import SEMANTIC, Batch, Outputs, Read
from bgt_core.errors import UsageError
from bgt_core.models.bgt import READS


class Seq2Seq(nn.Module):
    """One semantic encoder; each decoder writes its sentence from that vector of another, or of the sentence itself.

    `sources` says from which language each prediction is made: {"translate/fr": "en"} is EnglishTrans,
    {"reconstruct/en": "en"} an autoencoder; `decoders` holds the decoder of each. Sides that nothing is made from are
    not encoded. `read` says what is decoded: a "sample" of the posterior or its "mean"; a `read` given with a batch
    takes its place.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoders: Mapping[str, nn.Module],
        sources: Mapping[str, str],
        read: str = "sample",
    ):
        super().__init__()
        if read not in READS:
            raise UsageError(f"read '{read}' is none of {', '.join(READS)}")
        self.encoders = nn.ModuleDict({SEMANTIC: encoder})
        self.decoders = nn.ModuleDict(decoders)
        self.sources = dict(sources)
        self.read = READS[read]

    def forward(self, batch: Batch, read: Read | None = None) -> Outputs:
        wanted, read = set(self.sources.values()), read or self.read
        meaning = {lang: self.encoders[SEMANTIC](side) for lang, side in batch.sides.items() if lang in wanted}
        drawn = {lang: read(posterior) for lang, posterior in meaning.items()}  # (B, L), one draw a sentence
        predictions = []
        for name, source in self.sources.items():
            target = batch.sides[name.split("/")[1]]
            predictions.append(self.decoders[name](name, drawn[source], target))
        pays = batch.anchor if batch.anchor in meaning else next(iter(meaning))
        return Outputs(meaning, {SEMANTIC: meaning[pays]}, predictions)
