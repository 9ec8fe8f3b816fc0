"""Siamese encoders, trained for similarity only."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from bgt_core.contracts import SEMANTIC, Batch, Outputs, Readout
from bgt_core.models.latent import LatentModel


class Siamese(LatentModel):
    """One encoder for every language; nothing is decoded and no latent has a KL term (paper, sec. 4: SP, BiLSTM)."""

    def __init__(self, langs: Sequence[str], encoder: nn.Module):
        super().__init__(langs, {SEMANTIC: encoder})

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        semantic, negatives = (
            {column: self.encoders[SEMANTIC](side) for column, side in sides.items()}
            for sides in (batch.sides, batch.negatives)
        )
        return Outputs(semantic, posteriors={}, negatives=negatives)
