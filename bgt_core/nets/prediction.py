"""Predictions of a model for a batch, and their cost (`contracts.Prediction`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from bgt_core.contracts import Role, Tokens


@dataclass(eq=False)
class Scorer:
    """The output layer for B sentences, with all that their tokens share computed once."""

    latent_bias: Tensor  # (B, any): the latent's part of the scores
    score: Callable[[Tensor, Tensor], Tensor]  # features (..., H) and the bias of each row, (..., any) -> (..., V)

    def __call__(self, features: Tensor) -> Tensor:
        """Scores of the next token of n hypotheses of each sentence: (B, n, H) -> (B, n, V)."""
        return self.score(features, self.latent_bias[:, None])

    def select(self, rows: Tensor) -> None:
        """Keep only these sentences."""
        self.latent_bias = self.latent_bias.index_select(0, rows)


class OutputLayer(Protocol):
    """The last layer of a decoder: features and latent to scores of the next token."""

    def scorer(self, latent: Tensor) -> Scorer:
        """For the sentences of these latents, (B, L)."""
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
        scorer = self.layer.scorer(self.latent)
        return scorer.score(self.features, scorer.latent_bias[rows])

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
