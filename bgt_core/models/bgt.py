"""The Bilingual Generative Transformer."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from bgt_core.contracts import LANGUAGE, SEMANTIC, Batch, Outputs, Posterior, Prediction, Readout
from bgt_core.models.latent import WritingModel, cosine_to_targets
from bgt_core.posterior import sample


class BGT(WritingModel):
    """One semantic latent for all languages and one latent per language (paper, sec. 2-3).

    Args:
        encoders: q(z | sentence), under "semantic" and under each language (`NoLatent` for one without a latent).
        decoders: p(sentence | z_lang, z_semantic), by language.
        translators: p(sentence | semantic mean of its translation), by language.
        readout: Takes the input of reconstruction from a posterior, `sample` or `mean`; `forward` may override it.
        teacher: Maps a semantic mean to another encoder's vector, (B, L) -> (B, D), for batches with targets.
        train_decoders: If false, there are no predictions: only the semantic encoder learns, in a fraction of the time.
    """

    def __init__(
        self,
        encoders: Mapping[str, nn.Module],
        decoders: Mapping[str, nn.Module],
        translators: Mapping[str, nn.Module],
        readout: Readout = sample,
        teacher: nn.Module | None = None,
        train_decoders: bool = True,
    ):
        super().__init__(tuple(decoders), encoders)
        self.decoders = nn.ModuleDict(decoders)
        self.translators = nn.ModuleDict(translators)
        self.readout = readout
        self.teacher = teacher
        self.train_decoders = train_decoders

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        readout = readout or self.readout
        semantic = {column: self.encoders[SEMANTIC](side) for column, side in batch.sides.items()}
        agreement = self.agreement(semantic, batch.targets)
        posteriors = {SEMANTIC: {SEMANTIC: semantic[batch.anchor]}}
        if not self.train_decoders:
            return Outputs(semantic, posteriors, [], agreement=agreement)
        own = {column: self.encoders[side.lang](side) for column, side in batch.sides.items()}
        shared = readout(semantic[batch.anchor])  # (B, L): one draw for all sides
        predictions: list[Prediction] = []
        for column, side in batch.sides.items():
            latent = self.join({LANGUAGE: readout(own[column]), SEMANTIC: shared})
            predictions.append(self.decoders[side.lang]("reconstruct", column, latent, side))
        if len(batch.sides) > 1:
            for column, side in batch.sides.items():
                source = semantic[batch.source(column)].mean  # (B, L)
                predictions.append(self.translators[side.lang]("translate", column, source, side))
        return Outputs(semantic, {**posteriors, LANGUAGE: own}, predictions, agreement=agreement)

    def agreement(self, semantic: Mapping[str, Posterior], targets: Tensor | None) -> dict[str, Tensor]:
        """Return the cosine of each column's mapped semantic mean and the targets (B, D), as (B,); empty for a batch
        without targets."""
        if self.teacher is None or targets is None:
            return {}
        return {
            column: cosine_to_targets(self.teacher(posterior.mean), targets) for column, posterior in semantic.items()
        }

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """Concatenate latents as the input of a reconstruction decoder: [language ; semantic], (B, L_lang + L)."""
        return torch.cat([latents[latent] for latent in (LANGUAGE, SEMANTIC) if latent in latents], dim=-1)
