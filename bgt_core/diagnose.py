"""Measure on held-out sentence pairs how a model uses its latents: active units, KL, mutual information, and NLL."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from bgt_core.contracts import Batch, Outputs, Posterior, Readout
from bgt_core.errors import DataError
from bgt_core.posterior import joined

ACTIVE = 0.01  # a unit is active if its posterior mean has a variance above this (Burda et al. 2016)
ROWS = 1024  # number of samples for which densities under all posteriors are computed at once, to limit memory

Generative = Callable[[Batch, Readout], Outputs]  # a model: (batch, which decoders run, and how) -> outputs


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over sentence pairs, in nats, with its standard error."""

    nats: float
    error: float

    @classmethod
    def of_pairs(cls, values: Sequence[Tensor]) -> MeanEstimate:
        """Average a quantity over all sentence pairs. Each tensor has the values of one batch of pairs, (B,)."""
        each = torch.cat(list(values))
        return cls(each.mean().item(), each.std().item() / math.sqrt(len(each)))


@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`. The keys of all mappings are the names of latents.

    `neg_elbo` and `iwae_nll` are upper bounds of -log p(x), where x are the sentences that the model reconstructs. Both
    are None if a posterior is a point.
    """

    pairs: int  # number of sentence pairs
    units: dict[str, int]  # number of units of each latent
    active: dict[str, int]  # number of units whose posterior mean varies between sentences (Burda et al. 2016)
    kl: dict[str, MeanEstimate]  # KL of the posterior to the prior; 0 if the latent has no prior
    information: dict[str, MeanEstimate]  # I(x; z), at most log(pairs) (see `information`); not for point posteriors
    at_mean: MeanEstimate | None  # NLL given the posterior means; None if the model does not reconstruct
    neg_elbo: MeanEstimate | None  # negative ELBO: NLL given samples of the latents, plus the KL
    iwae_nll: MeanEstimate | None  # importance-weighted bound of the NLL; lower with more samples


@torch.inference_mode()
def diagnose(
    model: Generative, batches: Iterable[Batch], device: torch.device, samples: int = 20, seed: int = 0
) -> Diagnosis:
    """Measure on sentence pairs how a model uses its latents.

    Args:
        model: The model, in evaluation mode.
        batches: Batches of pairs, with at least two pairs in total.
        device: The device of the model.
        samples: Number of samples per pair for the likelihood. Each sample needs a forward pass of the whole model.
        seed: Seed of the samples; the same seed and batches give the same result.

    Raises:
        DataError: The model has no posteriors.
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
    return Diagnosis(
        pairs,
        units={name: mean.shape[1] for name, mean in means.items()},
        active={name: active_units(moments(mean), len(mean)) for name, mean in means.items()},
        kl={name: MeanEstimate.of_pairs(values) for name, values in kls.items()},
        information={
            name: MeanEstimate.of_pairs([information(parts, generator)])
            for name, parts in posteriors.items()
            if parts[0].has_density
        },
        at_mean=MeanEstimate.of_pairs(at_mean) if at_mean else None,
        neg_elbo=MeanEstimate.of_pairs(neg_elbo) if neg_elbo else None,
        iwae_nll=MeanEstimate.of_pairs(iwae_nll) if iwae_nll else None,
    )


def nll(out: Outputs) -> Tensor:
    """Return -log p(x | z) of each sentence pair in nats, (B,) float64: the sum of the NLLs of its reconstructions."""
    reconstructed = (prediction for prediction in out.predictions if prediction.role == "reconstruct")
    return reduce(torch.add, (prediction.nll()[1].double() for prediction in reconstructed))


def draw(model: Generative, batch: Batch, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sample all latents z of B pairs x. Return -log p(x | z) and log p(z) - log q(z | x) in nats, (B,) each."""
    log_ratios = []

    def read(posterior: Posterior) -> Tensor:
        z = posterior.rsample(generator)
        log_ratios.append(-posterior.log_ratio(z).double())
        return z

    nats = nll(model(batch, read))  # the model calls `read`, which fills log_ratios
    return nats, reduce(torch.add, log_ratios)


def moments(mean: Tensor) -> Tensor:
    """Sum each latent unit and its square over sentences, given posterior means: (N, L) -> (2, L) float64."""
    exact = mean.double()
    return torch.stack([exact.sum(0), exact.square().sum(0)])


def active_units(sums: Tensor, sentences: float) -> int:
    """Count the latent units that vary between sentences, given `moments` (2, L) and the number of sentences."""
    first, second = sums / sentences
    return int((second - first.square() > ACTIVE).sum())


def information(parts: Sequence[Posterior], generator: torch.Generator | None = None) -> Tensor:
    """Estimate the mutual information I(x; z) of sentences x and latents z, in nats: the mean of the returned values.

    I(x; z) = E KL(q(z|x) || p(z)) - KL(q(z) || p(z)) (Hoffman & Johnson 2016), where the aggregated posterior q(z) is
    estimated by the mixture of these N posteriors (Dieng et al. 2019, He et al. 2019). The prior cancels. This leaves
    the mean of log q(z|x) - log q(z), with one sample z per sentence. Identical posteriors give 0, and N posteriors
    without overlap give log N. The estimate can't be above log N. So if I(x; z) is near log N or above it, the estimate
    is too low. `parts` has the posteriors of N sentences. Returns log q(z|x) - log q(z) of each sentence, (N,) float64.
    """
    q = joined(parts)
    z = q.rsample(generator)  # (N, L)
    gains = []
    for start in range(0, len(z), ROWS):
        densities = q.log_density(z[start : start + ROWS])  # (rows, N)
        mixture = torch.logsumexp(densities, dim=1) - math.log(len(z))
        gains.append(densities.diagonal(start) - mixture)
    return torch.cat(gains)
