"""Siamese encoders, trained for similarity, and classifiers of sentences and of pairs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bgt_core.contracts import SEMANTIC, Batch, Outputs, Readout
from bgt_core.errors import UsageError
from bgt_core.models.latent import LatentModel
from bgt_core.nets.output import LabelPrediction


class Siamese(LatentModel):
    """One encoder for every language; nothing is decoded and no latent has a KL term (paper, sec. 4: SP, BiLSTM)."""

    def __init__(self, langs: Sequence[str], encoder: nn.Module):
        super().__init__(langs, {SEMANTIC: encoder})

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        encode = self.encoders[SEMANTIC]
        semantic = {column: encode(side) for column, side in batch.sides.items()}
        negatives = {column: encode(side) for column, side in batch.negatives.items()}
        return Outputs(semantic, posteriors={}, negatives=negatives)


class PairClassifier(LatentModel):
    """Classify the first two columns of a batch into K classes, from their semantic means u and v.

    A linear map of [u ; v ; |u - v| ; u * v] (Conneau et al. 2017, sec. 3.1). The encoders are those of `base` and keep
    its parameter names, so that its checkpoint fits; the decoders of `base` are dropped.
    """

    def __init__(self, base: LatentModel, width: int, classes: int):
        super().__init__(base.langs, dict(base.encoders.items()))
        self.classifier = nn.Linear(4 * width, classes)

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        if batch.labels is None or len(batch.sides) < 2:
            raise UsageError("a pair classifier needs two columns and labels: columns a:en, b:en, gold:label")
        semantic = {column: self.encoder(SEMANTIC, side.lang)(side) for column, side in batch.sides.items()}
        left, right = [posterior.mean for posterior in semantic.values()][:2]  # (B, L)
        return Outputs(semantic, {}, [LabelPrediction(self.logits(left, right), batch.labels)])

    def logits(self, left: Tensor, right: Tensor) -> Tensor:
        """Semantic means (B, L), (B, L) -> scores (B, K)."""
        return self.classifier(torch.cat([left, right, (left - right).abs(), left * right], dim=-1))


class ReferenceClassifier(LatentModel):
    """Classify whether people wrote a sentence or a machine translated it (Wieting, Mallinson & Gimpel 2017, sec.
    5.6.1).

    Each row of two columns gives two examples: the first column's sentence is a reference, class 1, the second's a
    translation, class 0. A linear map of the sentence's vector, and softmax. Both are trained; in the released code the
    linear map keeps its random values.
    """

    def __init__(self, langs: Sequence[str], encoder: nn.Module, width: int):
        super().__init__(langs, {SEMANTIC: encoder})
        self.classifier = nn.Linear(width, 2)

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        if len(batch.sides) != 2:
            raise UsageError("a reference classifier needs two columns: columns reference:en, translation:en")
        semantic = {column: self.encoder(SEMANTIC, side.lang)(side) for column, side in batch.sides.items()}
        predictions = [
            LabelPrediction(logits := self.classifier(posterior.mean), logits.new_full((len(batch),), label), column)
            for label, (column, posterior) in zip((1, 0), semantic.items(), strict=True)
        ]
        return Outputs(semantic, {}, predictions)

    @torch.no_grad()
    def reference_probability(self, vectors: Tensor) -> Tensor:
        """The probability of being a reference, from the sentences' vectors (N, L): (N,) float64."""
        return self.classifier(vectors).double().softmax(-1)[:, 1]
