"""Encoders: a body that reads a sentence and a head that makes a posterior of what it read."""

from __future__ import annotations

from torch import Tensor, nn

from bgt_core.contracts import Tokens
from bgt_core.nets.average import Average
from bgt_core.posterior import Gaussian


class GaussianHead(nn.Module):
    """Mean and log-variance, each a bias-free linear map of the body's vector (reference: released code)."""

    def __init__(self, width: int, latent: int):
        super().__init__()
        self.mean = nn.Linear(width, latent, bias=False)
        self.log_variance = nn.Linear(width, latent, bias=False)

    def forward(self, features: Tensor) -> Gaussian:
        """(B, H) -> posterior over (B, L)."""
        return Gaussian(self.mean(features), self.log_variance(features))


class Encoder(nn.Module):
    """q(z | sentence) = head(body(sentence))."""

    def __init__(self, body: nn.Module, head: nn.Module):
        super().__init__()
        self.body, self.head = body, head

    def forward(self, side: Tokens) -> Gaussian:
        return self.head(self.body(side))


class AveragePath(nn.Module):
    """An encoder whose posterior mean starts as the average of the sentence's own piece vectors.

    The wrapped encoder's mean, zero at the start, is added to it. Averages are strong sentence
    embeddings after minutes of training, Transformers after days (paper, table 2: SP 71.9, BGT 73.1).
    """

    def __init__(self, average: Average, encoder: Encoder):
        super().__init__()
        self.average, self.encoder = average, encoder
        nn.init.zeros_(encoder.head.mean.weight)

    def forward(self, side: Tokens) -> Gaussian:
        posterior = self.encoder(side)
        return Gaussian(posterior.mean + self.average(side), posterior.log_variance)
