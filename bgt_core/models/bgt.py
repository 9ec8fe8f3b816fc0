"""The Bilingual Generative Transformer."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from bgt_core.contracts import LANGUAGE, SEMANTIC, Batch, Outputs, Posterior, Prediction, Readout
from bgt_core.models.latent import WritingModel, cosine_to_targets
from bgt_core.posterior import sample


class BGT(WritingModel):
    """A model with one semantic latent for all languages and one latent per language (paper, sec. 2-3).

    Args:
        encoders: The encoders q(z | sentence). The keys are "semantic" and all languages. A language without a latent
            has the encoder `NoLatent`.
        decoders: The decoder p(sentence | z_language, z_semantic) of each language.
        translators: The decoder p(sentence | semantic mean of its translation) of each language.
        readout: `sample` or `mean`. It turns posteriors into the latents for reconstruction, unless a call passes
            another readout.
        teacher: Maps semantic means to vectors of another encoder, (B, L) -> (B, D). Used for batches with targets.
        train_decoders: If false, the model makes no predictions, so that only the semantic encoder is trained.
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
        shared = readout(semantic[batch.anchor])  # (B, L): one sample, from which all columns are reconstructed
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
        """For each column, map the semantic means by the teacher layer, and return their cosines with the targets
        (B, D): (B,) per column. Without targets, the result is empty."""
        if self.teacher is None or targets is None:
            return {}
        return {
            column: cosine_to_targets(self.teacher(posterior.mean), targets) for column, posterior in semantic.items()
        }

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """Concatenate the latents to the input of a decoder, [language ; semantic], (B, L_language + L)."""
        return torch.cat([latents[latent] for latent in (LANGUAGE, SEMANTIC) if latent in latents], dim=-1)
