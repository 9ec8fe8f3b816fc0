"""The Bilingual Generative Transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.contracts import LANGUAGE, SEMANTIC, Batch, Decoder, Outputs, Posterior, Prediction, Readout
from bgt_core.models.latent import LatentModel
from bgt_core.posterior import readout_named


class BGT(LatentModel):
    """One semantic latent for all languages and one latent per language (paper, sec. 2-3).

    `encoders` holds q(z | sentence) under "semantic" and each language (`NoLatent` where it has none of its own);
    `decoders` p(sentence | z_lang, z_semantic) and `translators` p(sentence | semantic mean of its translation) under
    each language. `readout` says what reconstruction decodes: a "sample" of the posteriors or their "mean"; a
    readout given with a batch takes its place. `teacher` maps a semantic mean to where another encoder's vector of the
    sentence should be, (B, L) -> (B, D); it is trained by batches with targets, and nothing else reads it.
    """

    def __init__(
        self,
        encoders: Mapping[str, nn.Module],
        decoders: Mapping[str, nn.Module],
        translators: Mapping[str, nn.Module],
        readout: str = "sample",
        teacher: nn.Module | None = None,
    ):
        super().__init__(tuple(decoders), encoders)
        self.decoders = nn.ModuleDict(decoders)
        self.translators = nn.ModuleDict(translators)
        self.readout = readout_named(readout)
        self.teacher = teacher

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        readout = readout or self.readout
        meaning = {column: self.encoders[SEMANTIC](side) for column, side in batch.sides.items()}
        own = {column: self.encoders[side.lang](side) for column, side in batch.sides.items()}
        shared = readout(meaning[batch.anchor])  # (B, L): one draw explains every side
        predictions: list[Prediction] = []
        for column, side in batch.sides.items():
            latent = self.join({LANGUAGE: readout(own[column]), SEMANTIC: shared})
            predictions.append(self.decoders[side.lang]("reconstruct", column, latent, side))
        if len(batch.sides) > 1:
            for column, side in batch.sides.items():
                source = meaning[batch.source(column)].mean  # (B, L)
                predictions.append(self.translators[side.lang]("translate", column, source, side))
        posteriors = {SEMANTIC: {SEMANTIC: meaning[batch.anchor]}, LANGUAGE: own}
        return Outputs(meaning, posteriors, predictions, agreement=self.agreement(meaning, batch.targets))

    def agreement(self, meaning: Mapping[str, Posterior], targets: Tensor | None) -> dict[str, Tensor]:
        """Cosine of each column's semantic mean, mapped, with the targets (B, D): (B,); none of a batch without."""
        if self.teacher is None or targets is None:
            return {}
        return {
            column: F.cosine_similarity(self.teacher(posterior.mean).float(), targets, dim=-1)
            for column, posterior in meaning.items()
        }

    def decoder(self, lang: str) -> Decoder:
        """p(sentence | z_lang, z_semantic) of that language."""
        return cast(Decoder, self.decoders[lang])

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """What a reconstruction decoder reads: [language ; semantic], (B, L_lang + L)."""
        return torch.cat([latents[latent] for latent in (LANGUAGE, SEMANTIC) if latent in latents], dim=-1)
