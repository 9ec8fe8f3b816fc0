"""Encoders: a body that reads a sentence and a head that makes a posterior of what it read."""

from __future__ import annotations

from torch import Tensor, nn

from bgt_core.contracts import Tokens
from bgt_core.nets.average import Average
from bgt_core.posterior import Gaussian


class GaussianHead(nn.Module):
    """Mean and log-variance, each a bias-free linear map of the body's vector (reference: released code).

    `log_variance` is where the log-variance starts: at 0 the posterior starts as wide as the prior, and
    a decoder sees mostly noise until it has narrowed.
    """

    def __init__(self, width: int, latent: int, log_variance: float = 0.0):
        super().__init__()
        self.mean = nn.Linear(width, latent, bias=False)
        self.log_variance = nn.Linear(width, latent, bias=False)
        self.start = log_variance

    def forward(self, features: Tensor) -> Gaussian:
        """(B, H) -> posterior over (B, L)."""
        return Gaussian(self.mean(features), self.log_variance(features) + self.start)


class Encoder(nn.Module):
    """q(z | sentence) = head(body(sentence))."""

    def __init__(self, body: nn.Module, head: nn.Module):
        super().__init__()
        self.body, self.head = body, head

    def forward(self, side: Tokens) -> Gaussian:
        return self.head(self.body(side))


class AveragePath(nn.Module):
    """An encoder whose posterior mean is the average of the sentence's own piece vectors, corrected.

    The wrapped encoder's mean, zero at the start and scaled by `share`, is added to it. Averages are strong
    sentence embeddings after minutes of training, Transformers after days (paper, table 2: SP 71.9, BGT
    73.1). Unscaled, Adam grows the correction into one large vector common to all sentences within ten
    steps, since every weight moves at once, and the average drowns.
    """

    def __init__(self, average: Average, encoder: Encoder, share: float):
        super().__init__()
        self.average, self.encoder, self.share = average, encoder, share
        nn.init.zeros_(encoder.head.mean.weight)

    def forward(self, side: Tokens) -> Gaussian:
        posterior = self.encoder(side)
        return Gaussian(self.average(side) + self.share * posterior.mean, posterior.log_variance)
