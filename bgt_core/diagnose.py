"""Measure the latents of a generative model on held-out pairs: use, cost, information, and likelihood."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import torch
from torch import Tensor

from bgt_core.contracts import Batch, Outputs, Posterior, Readout
from bgt_core.errors import DataError
from bgt_core.posterior import joined

ACTIVE = 0.01  # a unit is active when the variance of its posterior mean exceeds this (Burda et al. 2016)
ROWS = 1024  # draws whose densities under all posteriors are in memory at once


class Generative(Protocol):
    """A model that predicts a batch from latents, which `read` takes from its posteriors."""

    def __call__(self, batch: Batch, read: Readout) -> Outputs: ...


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over pairs, in nats, with its standard error."""

    nats: float
    error: float

    @classmethod
    def of_pairs(cls, values: Sequence[Tensor]) -> MeanEstimate | None:
        """Average the (N,) values of all batches, N at least 2; None without any."""
        if not values:
            return None
        each = torch.cat(list(values))
        return cls(each.mean().item(), each.std().item() / math.sqrt(len(each)))


@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`. `neg_elbo` and `iwae_nll` are upper bounds on -log p(x) of the reconstructed sides of a
    pair, with the latents integrated out; they are None for point posteriors."""

    pairs: int
    units: dict[str, int]  # of each latent
    active: dict[str, int]  # units whose posterior mean varies (Burda et al. 2016)
    kl: dict[str, MeanEstimate]  # to the prior; 0 without a prior
    information: dict[str, MeanEstimate]  # I(x; z), at most log(pairs) (see `information`); absent for points
    at_mean: MeanEstimate | None  # NLL with each latent at its posterior's mean; None without a reconstruction
    neg_elbo: MeanEstimate | None  # NLL with latents drawn, plus their KL
    iwae_nll: MeanEstimate | None  # importance-weighted; tighter with more draws (Burda et al. 2016)


@torch.inference_mode()
def diagnose(
    model: Generative, batches: Iterable[Batch], device: torch.device, samples: int = 20, seed: int = 0
) -> Diagnosis:
    """Measure the latents of a model in evaluation mode on these pairs; the likelihood takes `samples` draws per pair.

    The result is deterministic, given `seed` and the batches. Every draw needs a pass through the whole model. Raises
    DataError for a model without posteriors.
    """
    generator = torch.Generator(device).manual_seed(seed)
    posteriors: dict[str, list[Posterior]] = defaultdict(list)
    kls: dict[str, list[Tensor]] = defaultdict(list)
    at_mean, neg_elbo, iwae_nll, pairs = [], [], [], 0
    for batch in batches:
        batch = batch.to(device)
        pairs += len(batch)
        out = model(batch, lambda posterior: posterior.mean)
        present = {name: posterior for name, posterior in out.named_posteriors() if posterior.mean.shape[1]}
        for name, posterior in present.items():
            posteriors[name].append(posterior)
            kls[name].append(posterior.kl().double())
        if not any(prediction.role == "reconstruct" for prediction in out.predictions):
            continue
        at_mean.append(nll(out))
        if all(posterior.has_density for posterior in present.values()):
            draws = [draw(model, batch, generator) for _ in range(samples)]
            log_weights = torch.stack([log_ratio - nats for nats, log_ratio in draws])  # (K, B): log p(x, z) / q(z | x)
            iwae_nll.append(math.log(samples) - log_weights.logsumexp(0))
            kl = reduce(torch.add, (kls[name][-1] for name in present))
            neg_elbo.append(torch.stack([nats for nats, _ in draws]).mean(0) + kl)
    if not posteriors:
        raise DataError("This model has neither a latent with a prior nor a decoder; diagnose a generative model.")
    means = {name: torch.cat([part.standardised_mean for part in parts]) for name, parts in posteriors.items()}
    gains = {
        name: [information(parts, generator)] if all(part.has_density for part in parts) else []
        for name, parts in posteriors.items()
    }
    return Diagnosis(
        pairs,
        units={name: mean.shape[1] for name, mean in means.items()},
        active={name: active_units(moments(mean), len(mean)) for name, mean in means.items()},
        kl={name: each for name, values in kls.items() if (each := MeanEstimate.of_pairs(values))},
        information={name: each for name, values in gains.items() if (each := MeanEstimate.of_pairs(values))},
        at_mean=MeanEstimate.of_pairs(at_mean),
        neg_elbo=MeanEstimate.of_pairs(neg_elbo),
        iwae_nll=MeanEstimate.of_pairs(iwae_nll),
    )


def nll(out: Outputs) -> Tensor:
    """Return -log p(x | z) of each pair's reconstructed sides, in nats, (B,) float64. Translations do not count."""
    reconstructed = (prediction for prediction in out.predictions if prediction.role == "reconstruct")
    return reduce(torch.add, (prediction.nll()[1].double() for prediction in reconstructed))


def draw(model: Generative, batch: Batch, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw all latents once; return -log p(x | z) and log p(z) - log q(z | x) of each pair, in nats, (B,) each."""
    log_ratios = []

    def read(posterior: Posterior) -> Tensor:
        z = posterior.rsample(generator)
        log_ratios.append(-posterior.log_ratio(z).double())
        return z

    nats = nll(model(batch, read))  # first, as it fills log_ratios
    return nats, reduce(torch.add, log_ratios)


def moments(mean: Tensor) -> Tensor:
    """Return each unit's sum and sum of squares, which add up over batches: means (N, L) -> (2, L) float64."""
    exact = mean.double()
    return torch.stack([exact.sum(0), exact.square().sum(0)])


def active_units(sums: Tensor, sentences: float) -> int:
    """Count the units that vary with the sentence, from `moments` of that many sentences."""
    first, second = sums / sentences
    return int((second - first.square() > ACTIVE).sum())


def information(parts: Sequence[Posterior], generator: torch.Generator | None = None) -> Tensor:
    """Estimate how much information a draw z from each sentence's posterior has about the sentence, in nats, (N,). The
    mean is I(x; z). `parts` are the posteriors of several batches.

    I(x; z) = E KL(q(z|x) || p(z)) - KL(q(z) || p(z)) (Hoffman & Johnson 2016) with the aggregated posterior q(z)
    estimated as the mixture of these N posteriors (Dieng et al. 2019, He et al. 2019). The prior cancels, which leaves
    log q(z|x) - log q(z); both terms use the same z, so that most of its noise cancels too. Identical posteriors give
    0; N posteriors without overlap give log N, which no estimate from N sentences can exceed. If the true value is near
    log N or above, this is a lower bound.
    """
    q = joined(parts)
    z = q.rsample(generator)  # (N, L)
    gains = []
    for start in range(0, len(z), ROWS):
        densities = q.log_density(z[start : start + ROWS])  # (rows, N)
        mixture = torch.logsumexp(densities, dim=1) - math.log(len(z))
        gains.append(densities.diagonal(start) - mixture)
    return torch.cat(gains)
