"""Posteriors over a latent vector: q(z | sentence) of B sentences at once.

A posterior of another family is one more dataclass with these methods; no other code depends on the family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from bgt_core.contracts import Posterior, Readout
from bgt_core.errors import UsageError, check_choice
from bgt_core.posterior.vmf import VonMisesFisher

__all__ = ["READOUTS", "Gaussian", "Point", "VonMisesFisher", "joined", "mean", "readout_named", "sample"]


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(mean, diag(exp(log_variance))) with the prior N(0, I) (paper, sec. 2)."""

    mean: Tensor  # (B, L)
    log_variance: Tensor  # (B, L)
    has_density: ClassVar[bool] = True

    @property
    def standardised_mean(self) -> Tensor:
        """The mean, scaled so that the prior has variance 1 in each unit, (B, L): here the mean itself."""
        return self.mean

    def rsample(self, generator: torch.Generator | None = None) -> Tensor:
        """mean + sigma * noise, (B, L); by default from torch's global generator, which the training loop seeds from
        the seed, the step and the number of the micro-batch."""
        return self.mean + torch.exp(0.5 * self.log_variance) * torch.randn_like(self.mean, generator=generator)

    def kl(self) -> Tensor:
        """KL(q || N(0, I)) in closed form: nats summed over latent units, (B,)."""
        exact = torch.promote_types(self.mean.dtype, torch.float32)  # half precision would lose small terms
        mean, log_variance = self.mean.to(exact), self.log_variance.to(exact)
        return 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(-1)

    def log_ratio(self, z: Tensor) -> Tensor:
        """log q(z | sentence) - log N(z; 0, I) of one z per sentence: (B, L) -> (B,) nats; `kl` is its mean."""
        exact = torch.promote_types(self.mean.dtype, torch.float32)
        z, mean, log_variance = z.to(exact), self.mean.to(exact), self.log_variance.to(exact)
        return 0.5 * (z.square() - (z - mean).square() * torch.exp(-log_variance) - log_variance).sum(-1)

    def log_density(self, z: Tensor) -> Tensor:
        """log q(z_i | sentence_j) of every z under every sentence's posterior: (M, L) -> (M, B) nats, without the
        constant L/2 log(2 pi). The square is expanded, which gives two matrix products."""
        precision = torch.exp(-self.log_variance)
        own = (self.mean.square() * precision + self.log_variance).sum(1)  # (B,): the terms without z
        return -0.5 * (z.square() @ precision.T - 2 * z @ (self.mean * precision).T + own)


@dataclass(frozen=True, eq=False)
class Point:
    """A point at the mean, without a prior."""

    mean: Tensor  # (B, L)
    has_density: ClassVar[bool] = False

    @property
    def standardised_mean(self) -> Tensor:
        """The mean, (B, L), unscaled, because there is no prior."""
        return self.mean

    def rsample(self, generator: torch.Generator | None = None) -> Tensor:
        """The mean itself, (B, L)."""
        return self.mean

    def kl(self) -> Tensor:
        """Zero for each sentence, (B,): there is no prior."""
        return self.mean.new_zeros(len(self.mean))

    def log_ratio(self, z: Tensor) -> Tensor:
        """Zero for each sentence, (B,), as `kl`."""
        return self.kl()

    def log_density(self, z: Tensor) -> Tensor:
        """UsageError: a point has no density."""
        raise UsageError("This model's posteriors are points, which have no density.")


def joined(parts: Sequence[Posterior]) -> Posterior:
    """Concatenate the posteriors of several batches, all of one family: (N, L), in float64."""
    first: Any = parts[0]
    names = [field.name for field in fields(first)]
    return replace(first, **{name: torch.cat([getattr(part, name) for part in parts]).double() for name in names})


def sample(posterior: Posterior) -> Tensor:
    """A draw, (B, L), as in the paper's ELBO."""
    return posterior.rsample()


def mean(posterior: Posterior) -> Tensor:
    """The mean, (B, L), as in the released code."""
    return posterior.mean


READOUTS: Mapping[str, Readout] = {"sample": sample, "mean": mean}  # functions, because models must be picklable


def readout_named(name: str) -> Readout:
    """Return the function that takes latents from posteriors, "sample" or "mean"; UsageError for another name."""
    check_choice(READOUTS, readout=name)
    return READOUTS[name]
