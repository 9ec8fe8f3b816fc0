"""What the latents of a generative model hold, on held-out pairs: use, cost, information, and likelihood."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from bgt_core.contracts import Batch, Outputs, Posterior, Prediction, Readout
from bgt_core.errors import DataError
from bgt_core.posterior import Gaussian

ACTIVE = 0.01  # a unit is active when the variance of its posterior mean exceeds this (Burda et al. 2016)
ROWS = 1024  # draws whose densities under all posteriors exist at a time


class Generative(Protocol):
    """What is asked of a model here: predictions of a batch, made of latents that `read` takes from its posteriors."""

    def __call__(self, batch: Batch, read: Readout) -> Outputs: ...


@dataclass(frozen=True)
class Mean:
    """A mean over pairs, nats, and its standard error."""

    nats: float
    error: float

    @classmethod
    def of(cls, values: Tensor) -> Mean:
        """(N,), N at least 2."""
        return cls(values.mean().item(), values.std().item() / math.sqrt(len(values)))


@dataclass(frozen=True)
class Latent:
    """One posterior, q(z | sentence), over all pairs."""

    units: int
    active: int  # units whose posterior mean varies (Burda et al. 2016)
    kl: Mean  # to the prior; 0 where there is none
    information: Mean | None  # I(x; z), log(pairs) at most (see `information`); None for a posterior without width

    @property
    def aggregate(self) -> float | None:
        """KL of the aggregated posterior to the prior: what of `kl` is no information (Hoffman & Johnson 2016)."""
        return self.information and self.kl.nats - self.information.nats


@dataclass(frozen=True)
class Likelihood:
    """-log p(x) of what is reconstructed of a pair, its latents integrated out: two bounds, both above it."""

    bound: Mean  # -ELBO: NLL with latents drawn, and their KL
    weighted: Mean  # by importance of the draws, the nearer the more there are (Burda et al. 2016)
    effective: float  # how many of a pair's draws its weights spread over, on average: near 1, `weighted` is loose


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` finds."""

    pairs: int
    sentences: int  # reconstructed, of all pairs
    pieces: int  # of those, EOS included
    latents: dict[str, Latent]
    at_mean: Mean | None  # NLL with each latent at its posterior's mean; None where nothing is reconstructed
    evidence: Likelihood | None  # None there, and where a posterior has no width


@torch.inference_mode()
def diagnose(
    model: Generative, batches: Iterable[Batch], device: torch.device, samples: int = 20, seed: int = 0
) -> Diagnosis:
    """The latents of a model in evaluation mode on these pairs; `samples` draws a pair for its likelihood.

    Deterministic in `seed` and the batches. Every draw is a pass through the whole model. Raises BgtError for a model
    that has no posteriors.
    """
    generator = torch.Generator(device).manual_seed(seed)
    posteriors: dict[str, list[Posterior]] = defaultdict(list)
    kls: dict[str, list[Tensor]] = defaultdict(list)
    at_mean, bound, weighted, effective = [], [], [], []
    pairs = sentences = pieces = 0
    for batch in batches:
        batch = batch.to(device)
        pairs += len(batch)
        out = model(batch, lambda posterior: posterior.mean)
        held = {name: posterior for name, posterior in out.named_posteriors() if posterior.mean.shape[1]}
        for name, posterior in held.items():
            posteriors[name].append(posterior)
            kls[name].append(posterior.kl().double())
        if not reconstructions(out):
            continue
        sentences += len(reconstructions(out)) * len(batch)
        pieces += sum(len(prediction.target.flat_index) for prediction in reconstructions(out))
        at_mean.append(nats(out))
        if all(isinstance(posterior, Gaussian) for posterior in held.values()):
            drawn = [draw(model, batch, generator) for _ in range(samples)]
            log_weights = torch.stack([ratio - loss for loss, ratio in drawn])  # (K, B): log p(x, z) - log q(z | x)
            weighted.append(math.log(samples) - log_weights.logsumexp(0))
            effective.append(1 / log_weights.softmax(0).square().sum(0))
            paid = sum(parts[-1] for parts in kls.values())
            bound.append(torch.stack([loss for loss, _ in drawn]).mean(0) + paid)
    if not posteriors:
        raise DataError("This model has no latent beside a prior or a decoder: there is nothing to diagnose.")
    latents = {name: latent(parts, torch.cat(kls[name]), generator) for name, parts in posteriors.items()}
    plain = Mean.of(torch.cat(at_mean)) if at_mean else None
    evidence = None
    if bound:
        bounds = Mean.of(torch.cat(bound)), Mean.of(torch.cat(weighted))
        evidence = Likelihood(*bounds, torch.cat(effective).mean().item())
    return Diagnosis(pairs, sentences, pieces, latents, plain, evidence)


def reconstructions(out: Outputs) -> list[Prediction]:
    """The predictions that are the likelihood; translation is trained beside it."""
    return [prediction for prediction in out.predictions if prediction.name.startswith("reconstruct/")]


def nats(out: Outputs) -> Tensor:
    """-log p(x | z) of each pair, (B,) float64."""
    return sum(prediction.nll()[1].double() for prediction in reconstructions(out))


def draw(model: Generative, batch: Batch, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """-log p(x | z) and log p(z) - log q(z | x) of each pair, (B,) both, for one draw of all its latents."""
    ratios = []

    def read(posterior: Posterior) -> Tensor:
        z = posterior.rsample(generator)
        ratios.append(-posterior.log_ratio(z).double())
        return z

    return nats(model(batch, read)), sum(ratios)


def latent(parts: list[Posterior], kl: Tensor, generator: torch.Generator) -> Latent:
    """One posterior from those of each batch, and its KL of each pair, (N,)."""
    mean = torch.cat([part.mean for part in parts])  # (N, L)
    told = None
    if all(isinstance(part, Gaussian) for part in parts):
        told = Mean.of(information(Gaussian.join(parts), generator))
    return Latent(mean.shape[1], active_units(moments(mean), len(mean)), Mean.of(kl), told)


def moments(mean: Tensor) -> Tensor:
    """Posterior means (N, L) -> (2, L) float64: sums over sentences of each unit and of its square, to be added up."""
    exact = mean.double()
    return torch.stack([exact.sum(0), exact.square().sum(0)])


def active_units(sums: Tensor, sentences: float) -> int:
    """How many units vary with the sentence, from `moments` of that many sentences."""
    first, second = sums / sentences
    return int((second - first.square() > ACTIVE).sum())


def information(posterior: Gaussian, generator: torch.Generator | None = None) -> Tensor:
    """What a draw z from each sentence's posterior tells of the sentence, nats, (N,); the mean is I(x; z).

    I(x; z) = E KL(q(z|x) || p(z)) - KL(q(z) || p(z)) (Hoffman & Johnson 2016) with the aggregated posterior q(z)
    estimated as the mixture of these N posteriors (Dieng et al. 2019, He et al. 2019). The prior cancels: what is left
    is log q(z|x) - log q(z), here at the same z in both terms, so that most of its noise cancels too. Identical
    posteriors give 0; N that never overlap give log N, which no estimate from N sentences can exceed: where the truth
    is near log N or above, this is a lower bound.
    """
    q = Gaussian(posterior.mean.double(), posterior.log_variance.double())
    z, precision = q.rsample(generator), torch.exp(-q.log_variance)  # (N, L)
    own = (q.mean.square() * precision + q.log_variance).sum(1)  # (N,): of -2 log q(z|x), what z has no part in
    found = []
    for start in range(0, len(z), ROWS):
        rows = z[start : start + ROWS]
        # -2 log q(z_i | x_j) but for a constant, (rows, N); the square multiplied out makes two matrix products of it
        twice = rows.square() @ precision.T - 2 * rows @ (q.mean * precision).T + own
        mixture = torch.logsumexp(-0.5 * twice, dim=1) - math.log(len(z))
        found.append(-0.5 * twice.diagonal(start) - mixture)
    return torch.cat(found)
