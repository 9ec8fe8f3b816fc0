"""A classifier of sentence pairs on top of a trained model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bgt_core.contracts import SEMANTIC, Batch, Outputs, Readout
from bgt_core.errors import UsageError
from bgt_core.models.latent import LatentModel
from bgt_core.nets.prediction import LabelPrediction


class PairClassifier(LatentModel):
    """Says which of K classes the first two columns of a batch stand in, from their semantic means u and v.

    A linear map of [u ; v ; |u - v| ; u * v] (Conneau et al. 2017, sec. 3.1). The encoders are those of `base` and keep
    its names for parameters, so that they can be taken from its checkpoint; what `base` writes with is not kept.
    """

    def __init__(self, base: LatentModel, width: int, classes: int):
        super().__init__(base.langs, dict(base.encoders.items()))
        self.classifier = nn.Linear(4 * width, classes)

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        if batch.labels is None or len(batch.sides) < 2:
            raise UsageError("a pair classifier needs two columns and labels: columns a:en, b:en, gold:label")
        meaning = {column: self.encoder(SEMANTIC, side.lang)(side) for column, side in batch.sides.items()}
        left, right = [posterior.mean for posterior in meaning.values()][:2]  # (B, L)
        return Outputs(meaning, {}, [LabelPrediction(self.logits(left, right), batch.labels)])

    def logits(self, left: Tensor, right: Tensor) -> Tensor:
        """Semantic means (B, L), (B, L) -> scores (B, K)."""
        return self.classifier(torch.cat([left, right, (left - right).abs(), left * right], dim=-1))
