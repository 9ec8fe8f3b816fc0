"""Predictions of a model for a batch, and their cost (`contracts.Prediction`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from bgt_core.contracts import Role, Tokens


class OutputLayer(Protocol):
    """The last layer of a decoder: features and latent to scores of the next token."""

    def project_latent(self, latent: Tensor) -> Tensor:
        """The latent's part of the scores of all tokens of its sentence, computed once: (B, L) -> (B, any)."""
        ...

    def logits(self, features: Tensor, latent_bias: Tensor) -> Tensor:
        """(N, H) and the `project_latent` of each row's sentence -> (N, V)."""
        ...

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        """(N, H), (B, L) -> (loss, nats), as `Prediction.nll`."""
        ...


@dataclass(frozen=True, eq=False)
class SentencePrediction:
    """A decoder's prediction of the N real tokens of `target`.

    It keeps features, output layer and target together, so that logits always belong to the right side; full logits are
    computed on request only.
    """

    role: Role
    column: str  # the predicted column
    features: Tensor  # (N, H), in the order of target.ids[target.mask]
    latent: Tensor  # (B, L)
    layer: OutputLayer
    target: Tokens

    @property
    def name(self) -> str:
        """ "reconstruct/en", "translate/fr"."""
        return f"{self.role}/{self.column}"

    def logits(self) -> Tensor:
        """Scores of the whole vocabulary for each real token, (N, V)."""
        rows = self.target.flat_index // self.target.ids.shape[1]
        return self.layer.logits(self.features, self.layer.project_latent(self.latent)[rows])

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """(loss, nats): see `contracts.Prediction.nll`."""
        return self.layer.nll(self.features, self.latent, self.target, smoothing)

    def token_nll(self) -> Tensor:
        """The negative log-likelihood of each real token in nats, (N,); `nll` sums it over each sentence."""
        rows = self.target.flat_index // self.target.ids.shape[1]
        ids = self.target.ids[self.target.mask][:, None]
        each = Tokens.of(ids, torch.ones_like(ids, dtype=torch.bool), self.target.lang)
        return self.layer.nll(self.features, self.latent[rows], each, 0.0)[1]


@dataclass(frozen=True, eq=False)
class LabelPrediction:
    """A classifier's prediction of the class of each row."""

    logits: Tensor  # (B, K)
    labels: Tensor  # (B,) class numbers
    name: str = "label"
    role: Role = "auxiliary"

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Cross-entropy: (loss, nats), a scalar and (B,)."""
        labels = self.labels.long()
        loss = F.cross_entropy(self.logits, labels, reduction="sum", label_smoothing=smoothing)
        return loss, F.cross_entropy(self.logits.detach(), labels, reduction="none")
