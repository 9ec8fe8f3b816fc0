"""Siamese encoders: similarity is all they are trained for."""

from __future__ import annotations

from torch import nn

from bgt_core.contracts import SEMANTIC, Batch, Outputs, Read


class Siamese(nn.Module):
    """One encoder reads every language; nothing is decoded and no latent pays KL (paper, sec. 4: SP, BiLSTM).

    `read` says how a latent is taken from a posterior before it is decoded: here none is.
    """

    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.encoders = nn.ModuleDict({SEMANTIC: encoder})

    def forward(self, batch: Batch, read: Read | None = None) -> Outputs:
        meaning, negatives = (
            {lang: self.encoders[SEMANTIC](side) for lang, side in sides.items()}
            for sides in (batch.sides, batch.negatives)
        )
        return Outputs(meaning, posteriors={}, negatives=negatives)
