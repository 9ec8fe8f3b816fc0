"""Posteriors over a latent vector: q(z | sentence) of B sentences at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bgt_core.contracts import Readout
from bgt_core.errors import UsageError


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(mean, diag(exp(log_variance))) beside the prior N(0, I) (paper, sec. 2)."""

    mean: Tensor  # (B, L)
    log_variance: Tensor  # (B, L)

    @classmethod
    def join(cls, parts: Sequence[Gaussian]) -> Gaussian:
        """Those of several batches as one, (N, L)."""
        return cls(torch.cat([part.mean for part in parts]), torch.cat([part.log_variance for part in parts]))

    def rsample(self, generator: torch.Generator | None = None) -> Tensor:
        """mean + sigma * noise, (B, L); without a generator from torch's global one, which the training
        loop seeds from (seed, step)."""
        return self.mean + torch.exp(0.5 * self.log_variance) * torch.randn_like(self.mean, generator=generator)

    def kl(self) -> Tensor:
        """KL(q || N(0, I)) in closed form: nats summed over latent units, (B,)."""
        exact = torch.promote_types(self.mean.dtype, torch.float32)  # half precision would lose small terms
        mean, log_variance = self.mean.to(exact), self.log_variance.to(exact)
        return 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(-1)

    def log_ratio(self, z: Tensor) -> Tensor:
        """log q(z | sentence) - log N(z; 0, I) of one z a sentence: (B, L) -> (B,) nats; `kl` is its mean."""
        exact = torch.promote_types(self.mean.dtype, torch.float32)
        z, mean, log_variance = z.to(exact), self.mean.to(exact), self.log_variance.to(exact)
        return 0.5 * (z.square() - (z - mean).square() * torch.exp(-log_variance) - log_variance).sum(-1)


@dataclass(frozen=True, eq=False)
class Point:
    """All mass on the mean, no prior: what "without prior" means."""

    mean: Tensor  # (B, L)

    @classmethod
    def join(cls, parts: Sequence[Point]) -> Point:
        """Those of several batches as one, (N, L)."""
        return cls(torch.cat([part.mean for part in parts]))

    def rsample(self, generator: torch.Generator | None = None) -> Tensor:
        """The mean itself, (B, L)."""
        return self.mean

    def kl(self) -> Tensor:
        """Zero for each sentence, (B,): a model without a prior pays none."""
        return self.mean.new_zeros(len(self.mean))

    def log_ratio(self, z: Tensor) -> Tensor:
        """Zero for each sentence, (B,), as `kl`."""
        return self.kl()


READOUTS: dict[str, Readout] = {
    "sample": lambda posterior: posterior.rsample(),  # the ELBO of the paper
    "mean": lambda posterior: posterior.mean,  # what the released code trains
}


def readout_named(name: str) -> Readout:
    """How latents are taken from posteriors: "sample" or "mean"; UsageError for anything else."""
    if name not in READOUTS:
        raise UsageError(f"readout '{name}' is none of {', '.join(READOUTS)}")
    return READOUTS[name]
