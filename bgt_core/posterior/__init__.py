"""Posteriors q(z | sentence) over latent vectors z. One object contains the posteriors of B sentences.

To add a family of posteriors, write a dataclass with the same methods. The training code works with every family.
"""

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
    """The posterior N(mean, diag(exp(log_variance))), with the prior N(0, I) (BGT paper, sec. 2)."""

    mean: Tensor  # (B, L)
    log_variance: Tensor  # (B, L)
    has_density: ClassVar[bool] = True

    @property
    def standardised_mean(self) -> Tensor:
        """The mean, (B, L). It needs no scaling, because the prior has variance 1 in each unit."""
        return self.mean

    def rsample(self, generator: torch.Generator | None = None) -> Tensor:
        """Return mean + sigma * noise, (B, L). The default generator is torch's global one. The training loop seeds it
        from the run's seed, the step and the index of the micro-batch."""
        return self.mean + torch.exp(0.5 * self.log_variance) * torch.randn_like(self.mean, generator=generator)

    def kl(self) -> Tensor:
        """Return KL(q || N(0, I)) in nats, summed over latent units, (B,)."""
        exact = torch.promote_types(self.mean.dtype, torch.float32)  # with 16 bits, small summands would be lost
        mean, log_variance = self.mean.to(exact), self.log_variance.to(exact)
        return 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(-1)

    def log_ratio(self, z: Tensor) -> Tensor:
        """Return log q(z | sentence) - log N(z; 0, I) in nats. Each sentence has one z: (B, L) -> (B,)."""
        exact = torch.promote_types(self.mean.dtype, torch.float32)
        z, mean, log_variance = z.to(exact), self.mean.to(exact), self.log_variance.to(exact)
        return 0.5 * (z.square() - (z - mean).square() * torch.exp(-log_variance) - log_variance).sum(-1)

    def log_density(self, z: Tensor) -> Tensor:
        """Return log q(z_i | sentence_j) + L/2 log(2 pi) in nats for M vectors z and B sentences: (M, L) -> (M, B). The
        square (z - mean)^2 is expanded, so that it can be computed by matrix products."""
        precision = torch.exp(-self.log_variance)
        own = (self.mean.square() * precision + self.log_variance).sum(1)  # (B,): the summands that do not depend on z
        return -0.5 * (z.square() @ precision.T - 2 * z @ (self.mean * precision).T + own)


@dataclass(frozen=True, eq=False)
class Point:
    """The posterior of a model without a prior: a single point, `mean`."""

    mean: Tensor  # (B, L)
    has_density: ClassVar[bool] = False

    @property
    def standardised_mean(self) -> Tensor:
        """The mean, (B, L). It is not scaled, because there is no prior."""
        return self.mean

    def rsample(self, generator: torch.Generator | None = None) -> Tensor:
        """Return the mean, (B, L)."""
        return self.mean

    def kl(self) -> Tensor:
        """Return zeros, (B,), because there is no prior."""
        return self.mean.new_zeros(len(self.mean))

    def log_ratio(self, z: Tensor) -> Tensor:
        """Return zeros, (B,), because there is no prior."""
        return self.kl()

    def log_density(self, z: Tensor) -> Tensor:
        """Raise UsageError, because a point has no density."""
        raise UsageError("This model's posteriors are points, which have no density.")


def joined(parts: Sequence[Posterior]) -> Posterior:
    """Concatenate the posteriors of several batches, in float64. All must be of the same family."""
    first: Any = parts[0]
    names = [field.name for field in fields(first)]
    return replace(first, **{name: torch.cat([getattr(part, name) for part in parts]).double() for name in names})


def sample(posterior: Posterior) -> Tensor:
    """Return a sample, (B, L). In the BGT paper, the ELBO is computed from samples."""
    return posterior.rsample()


def mean(posterior: Posterior) -> Tensor:
    """Return the mean, (B, L). The code of the BGT paper trains with means instead of samples."""
    return posterior.mean


READOUTS: Mapping[str, Readout] = {"sample": sample, "mean": mean}  # no lambdas, because they can't be pickled


def readout_named(name: str) -> Readout:
    """Return the function `sample` or `mean` by its name; UsageError for other names."""
    check_choice(READOUTS, readout=name)
    return READOUTS[name]
