"""What a model says of a batch and how much that costs (`contracts.Prediction`)."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from bgt_core.contracts import OutputLayer, Role, Tokens


@dataclass(frozen=True, eq=False)
class SentencePrediction:
    """What a decoder says of the N real pieces of `target`.

    Features, output layer and target stay together, so that logits never meet the wrong side; full logits are made on
    request only.
    """

    role: Role
    column: str  # the column that is predicted
    features: Tensor  # (N, H), in the order of target.ids[target.mask]
    latent: Tensor  # (B, L)
    layer: OutputLayer
    target: Tokens

    @property
    def name(self) -> str:
        """ "reconstruct/en", "translate/fr"."""
        return f"{self.role}/{self.column}"

    def logits(self) -> Tensor:
        """Scores of the whole vocabulary for each real piece, (N, V)."""
        rows = self.target.flat_index // self.target.ids.shape[1]
        return self.layer.logits(self.features, self.layer.project_latent(self.latent)[rows])

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """(loss, nats): see `contracts.Prediction.nll`."""
        return self.layer.nll(self.features, self.latent, self.target, smoothing)


@dataclass(frozen=True, eq=False)
class LabelPrediction:
    """What a classifier says of the class of each row."""

    logits: Tensor  # (B, K)
    labels: Tensor  # (B,) class numbers
    name: str = "label"
    role: Role = "auxiliary"

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Cross-entropy: (loss, nats), a scalar and (B,)."""
        labels = self.labels.long()
        loss = F.cross_entropy(self.logits, labels, reduction="sum", label_smoothing=smoothing)
        return loss, F.cross_entropy(self.logits.detach(), labels, reduction="none")
