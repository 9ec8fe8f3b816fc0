"""Posteriors over a latent vector: q(z | sentence) of B sentences at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Gaussian:
    """N(mean, diag(exp(log_variance))) beside the prior N(0, I) (paper, sec. 2)."""

    mean: Tensor  # (B, L)
    log_variance: Tensor  # (B, L)

    def rsample(self) -> Tensor:
        """mean + sigma * noise, (B, L); noise from torch's global generator, which the training
        loop seeds from (seed, step)."""
        return self.mean + torch.exp(0.5 * self.log_variance) * torch.randn_like(self.mean)

    def kl(self) -> Tensor:
        """KL(q || N(0, I)) in closed form: nats summed over latent units, (B,)."""
        return self.kl_of_units().sum(-1)

    def kl_of_units(self) -> Tensor:
        """The same before the sum, (B, L)."""
        exact = torch.promote_types(self.mean.dtype, torch.float32)  # half precision would lose small terms
        mean, log_variance = self.mean.to(exact), self.log_variance.to(exact)
        return 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance)


@dataclass(frozen=True)
class Point:
    """All mass on the mean, no prior: what "without prior" means."""

    mean: Tensor  # (B, L)

    def rsample(self) -> Tensor:
        """The mean itself, (B, L)."""
        return self.mean

    def kl(self) -> Tensor:
        """Zero for each sentence, (B,): a model without a prior pays none."""
        return self.mean.new_zeros(len(self.mean))

    def kl_of_units(self) -> Tensor:
        """Zero for each unit, (B, L)."""
        return torch.zeros_like(self.mean)
