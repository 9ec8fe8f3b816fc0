"""The vMF-Gaussian variational autoencoder of paraphrases: meaning in one latent, syntax in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from bgt_core.capabilities import Decoder
from bgt_core.contracts import SEMANTIC, SYNTACTIC, Batch, Outputs, Prediction, Readout
from bgt_core.errors import UsageError
from bgt_core.models.latent import WritingModel
from bgt_core.nets.output import BagOfWords
from bgt_core.posterior import readout_named


class VGVAE(WritingModel):
    """A semantic and a syntactic latent for each sentence (Chen et al. 2019).

    `encoders` holds q(y | sentence) under "semantic" and q(z | sentence) under "syntactic" (`NoLatent` for a model with
    one latent), each for all languages; `decoders` p(sentence | z, y) under each language. From one draw of each latent
    a sentence is reconstructed, and generated once more with the meaning of its paraphrase, `Batch.source`, in place of
    its own; `position`, if given, predicts the positions of its words.
    """

    def __init__(
        self,
        langs: Sequence[str],
        encoders: Mapping[str, nn.Module],
        decoders: Mapping[str, nn.Module],
        position: nn.Module | None,
        readout: str = "sample",
    ):
        super().__init__(langs, encoders)
        self.decoders = nn.ModuleDict(decoders)
        self.position = position
        self.readout = readout_named(readout)

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        readout = readout or self.readout
        semantic, negatives = (
            {column: self.encoders[SEMANTIC](side) for column, side in sides.items()}
            for sides in (batch.sides, batch.negatives)
        )
        syntactic = {column: self.encoders[SYNTACTIC](side) for column, side in batch.sides.items()}
        y = {column: readout(posterior) for column, posterior in semantic.items()}  # (B, L), one draw per sentence
        z = {column: readout(posterior) for column, posterior in syntactic.items()}
        predictions: list[Prediction] = []
        for column, side in batch.sides.items():
            decoder, source = self.decoders[side.lang], batch.source(column)
            own = self.join({SYNTACTIC: z[column], SEMANTIC: y[column]})
            predictions.append(decoder("reconstruct", column, own, side))
            if source != column:
                swapped = self.join({SYNTACTIC: z[column], SEMANTIC: y[source]})
                predictions.append(decoder("paraphrase", column, swapped, side))
            if self.position is not None:
                predictions.append(self.position(column, z[column], side))
        posteriors = {
            latent: {f"{latent}/{column}": posterior for column, posterior in of.items()}
            for latent, of in ((SEMANTIC, semantic), (SYNTACTIC, syntactic))
        }
        return Outputs(semantic, posteriors, predictions, negatives)

    @property
    def writes(self) -> tuple[str, ...]:
        """The languages that it generates; empty if its decoders are bags of words, without word order."""
        return () if any(isinstance(decoder, BagOfWords) for decoder in self.decoders.values()) else self.langs

    def decoder(self, lang: str) -> Decoder:
        """The decoder of that language, p(sentence | z, y); UsageError for a bag of words, which can't generate."""
        if not self.writes:
            raise UsageError(
                "This model's decoder is a bag of words, without word order, so "
                "it can't generate sentences; train one with model.decoder=lstm."
            )
        return super().decoder(lang)

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """The input of a decoder: [syntactic ; semantic], (B, L_syntactic + L)."""
        return torch.cat([latents[latent] for latent in (SYNTACTIC, SEMANTIC) if latent in latents], dim=-1)
