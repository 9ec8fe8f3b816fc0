"""The Bilingual Generative Transformer."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from bgt_core.contracts import SEMANTIC, Batch, Outputs, Read
from bgt_core.errors import UsageError

READS: dict[str, Read] = {
    "sample": lambda posterior: posterior.rsample(),  # the ELBO of the paper
    "mean": lambda posterior: posterior.mean,  # what the released code trains
}


class BGT(nn.Module):
    """One semantic latent for all languages and one latent a language (paper, sec. 2-3).

    `encoders` holds q(z | sentence) under "semantic" and each language, `decoders` p(sentence |
    z_lang, z_semantic) and `translators` p(sentence | semantic mean of its translation) under each
    language. `read` says what reconstruction decodes: a "sample" of the posteriors or their "mean";
    a `read` given with a batch takes its place.
    """

    def __init__(
        self,
        encoders: Mapping[str, nn.Module],
        decoders: Mapping[str, nn.Module],
        translators: Mapping[str, nn.Module],
        read: str = "sample",
    ):
        super().__init__()
        if read not in READS:
            raise UsageError(f"read '{read}' is none of {', '.join(READS)}")
        self.encoders = nn.ModuleDict(encoders)
        self.decoders = nn.ModuleDict(decoders)
        self.translators = nn.ModuleDict(translators)
        self.read = READS[read]

    def forward(self, batch: Batch, read: Read | None = None) -> Outputs:
        read = read or self.read
        meaning = {lang: self.encoders[SEMANTIC](side) for lang, side in batch.sides.items()}
        own = {lang: self.encoders[lang](side) for lang, side in batch.sides.items()}
        shared = read(meaning[batch.anchor])  # (B, L): one draw explains every side
        predictions = []
        for lang, side in batch.sides.items():
            latent = self.join(read(own[lang]), shared)
            predictions.append(self.decoders[lang](f"reconstruct/{lang}", latent, side))
        for lang, side in batch.sides.items():
            source = meaning[batch.other(lang)].mean  # (B, L)
            predictions.append(self.translators[lang](f"translate/{lang}", source, side))
        return Outputs(meaning, {SEMANTIC: meaning[batch.anchor], **own}, predictions)

    @staticmethod
    def join(language: Tensor, semantic: Tensor) -> Tensor:
        """What a reconstruction decoder reads: [language ; semantic], (B, L_lang + L)."""
        return torch.cat([language, semantic], dim=-1)
