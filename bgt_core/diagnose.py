"""Measure the latents of a generative model on held-out pairs: use, cost, information, and likelihood."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import torch
from torch import Tensor

from bgt_core.contracts import Batch, Outputs, Posterior, Readout, Tokens
from bgt_core.errors import DataError
from bgt_core.nets.output import SentencePrediction, unknown
from bgt_core.posterior import joined

ACTIVE = 0.01  # a unit is active when the variance of its posterior mean exceeds this (Burda et al. 2016)
ROWS = 1024  # draws whose densities under all posteriors exist at a time


class Generative(Protocol):
    """A model that predicts a batch from latents, which `read` takes from its posteriors."""

    def __call__(self, batch: Batch, read: Readout) -> Outputs: ...


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over pairs, in nats, with its standard error."""

    nats: float
    error: float

    @classmethod
    def of_pairs(cls, values: Tensor) -> MeanEstimate:
        """Average (N,) values, N at least 2."""
        return cls(values.mean().item(), values.std().item() / math.sqrt(len(values)))


@dataclass(frozen=True)
class Latent:
    """One posterior, q(z | sentence), over all pairs."""

    units: int
    active: int  # units whose posterior mean varies (Burda et al. 2016)
    kl: MeanEstimate  # to the prior; 0 without a prior
    information: MeanEstimate | None  # I(x; z), log(pairs) at most (see `information`); None for a point posterior

    @property
    def aggregate(self) -> float | None:
        """KL of the aggregated posterior to the prior: the part of `kl` that is not information (Hoffman & Johnson
        2016)."""
        return self.kl.nats - self.information.nats if self.information else None


@dataclass(frozen=True)
class Likelihood:
    """Two estimates of -log p(x) of the reconstructed sides of a pair, with latents integrated out; both are upper
    bounds."""

    neg_elbo: MeanEstimate  # NLL with latents drawn, plus their KL
    iwae_nll: MeanEstimate  # importance-weighted; tighter with more draws (Burda et al. 2016)
    effective_samples: float  # 1 / sum of squared normalised weights, on average; near 1, `iwae_nll` is loose


@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`."""

    pairs: int
    sentences: int  # reconstructed sentences of all pairs
    tokens: int  # of those, EOS included
    unknown: int  # of those, tokens that cost what the unknown token costs (`nets.output.unknown`)
    latents: dict[str, Latent]
    at_mean: MeanEstimate | None  # NLL with each latent at its posterior's mean; None without a reconstruction
    unigram: MeanEstimate | None  # NLL of the same tokens by their frequencies on each side; a useful bound is lower
    likelihood: Likelihood | None  # None without a reconstruction, and for point posteriors


@torch.inference_mode()
def diagnose(
    model: Generative, batches: Iterable[Batch], device: torch.device, samples: int = 20, seed: int = 0
) -> Diagnosis:
    """Measure the latents of a model in evaluation mode on these pairs, with `samples` draws per pair for its
    likelihood.

    Deterministic for a `seed` and the batches. Every draw is a pass through the whole model. Raises DataError for a
    model without posteriors.
    """
    generator = torch.Generator(device).manual_seed(seed)
    posteriors: dict[str, list[Posterior]] = defaultdict(list)
    kls: dict[str, list[Tensor]] = defaultdict(list)
    at_mean, neg_elbo, iwae_nll, effective_samples = [], [], [], []
    targets: dict[str, list[Tokens]] = defaultdict(list)
    columns: list[list[str]] = []  # of each batch
    pairs = sentences = tokens = unseen = 0
    for batch in batches:
        batch = batch.to(device)
        pairs += len(batch)
        out = model(batch, lambda posterior: posterior.mean)
        present = {name: posterior for name, posterior in out.named_posteriors() if posterior.mean.shape[1]}
        for name, posterior in present.items():
            posteriors[name].append(posterior)
            kls[name].append(posterior.kl().double())
        reconstructed = reconstructions(out)
        if not reconstructed:
            continue
        sentences += len(reconstructed) * len(batch)
        tokens += sum(len(prediction.target.flat_index) for prediction in reconstructed)
        unseen += sum(
            int(unknown(prediction.layer, prediction.target.ids[prediction.target.mask]).sum())
            for prediction in reconstructed
        )
        at_mean.append(nll(out))
        columns.append([prediction.name for prediction in reconstructed])
        for prediction in reconstructed:
            targets[prediction.name].append(prediction.target)
        if all(posterior.has_density for posterior in present.values()):
            draws = [draw(model, batch, generator) for _ in range(samples)]
            log_weights = torch.stack([log_ratio - nats for nats, log_ratio in draws])  # (K, B): log p(x, z) / q(z | x)
            iwae_nll.append(math.log(samples) - log_weights.logsumexp(0))
            effective_samples.append(1 / log_weights.softmax(0).square().sum(0))
            kl = reduce(torch.add, (kls[name][-1] for name in present))
            neg_elbo.append(torch.stack([nats for nats, _ in draws]).mean(0) + kl)
    if not posteriors:
        raise DataError("This model has neither a latent with a prior nor a decoder; diagnose a generative model.")
    latents = {name: latent(parts, torch.cat(kls[name]), generator) for name, parts in posteriors.items()}
    plain = MeanEstimate.of_pairs(torch.cat(at_mean)) if at_mean else None
    likelihood = None
    if neg_elbo:
        bounds = MeanEstimate.of_pairs(torch.cat(neg_elbo)), MeanEstimate.of_pairs(torch.cat(iwae_nll))
        likelihood = Likelihood(*bounds, torch.cat(effective_samples).mean().item())
    unigram = MeanEstimate.of_pairs(unigram_nll_of_rows(targets, columns)) if targets else None
    return Diagnosis(pairs, sentences, tokens, unseen, latents, plain, unigram, likelihood)


def unigram_nll_of_rows(targets: Mapping[str, Sequence[Tokens]], columns: Sequence[Sequence[str]]) -> Tensor:
    """`unigram_nll` of each row, (N,): the sum of its columns. A column's sentences come in batches, and `columns` are
    those of each batch."""
    nats = {name: iter(unigram_nll(sides).split([len(side.ids) for side in sides])) for name, sides in targets.items()}
    return torch.cat([reduce(torch.add, (next(nats[name]) for name in names)) for names in columns])


def unigram_nll(sides: Sequence[Tokens]) -> Tensor:
    """-log p of each sentence, nats, (N,) float64, if each token is drawn by its frequency in these sides."""
    ids = torch.cat([side.ids[side.mask] for side in sides])  # tokens of all sentences, in order
    counts = ids.bincount()
    nats = (counts.sum().double() / counts[ids]).log()
    lengths = torch.cat([side.mask.sum(1) for side in sides])
    sentence = torch.arange(len(lengths), device=ids.device).repeat_interleave(lengths)
    return torch.zeros(len(lengths), dtype=nats.dtype, device=ids.device).index_add(0, sentence, nats)


def reconstructions(out: Outputs) -> list[SentencePrediction]:
    """The predictions that make up the likelihood; translation is trained beside it."""
    return [
        prediction
        for prediction in out.predictions
        if prediction.role == "reconstruct" and isinstance(prediction, SentencePrediction)
    ]


def nll(out: Outputs) -> Tensor:
    """-log p(x | z) of each pair, nats, (B,) float64."""
    return reduce(torch.add, (prediction.nll()[1].double() for prediction in reconstructions(out)))


def draw(model: Generative, batch: Batch, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """-log p(x | z) and log p(z) - log q(z | x) of each pair, nats, (B,) both, for one draw of all its latents."""
    log_ratios = []

    def read(posterior: Posterior) -> Tensor:
        z = posterior.rsample(generator)
        log_ratios.append(-posterior.log_ratio(z).double())
        return z

    nats = nll(model(batch, read))  # first, as it fills log_ratios
    return nats, reduce(torch.add, log_ratios)


def latent(parts: list[Posterior], kl: Tensor, generator: torch.Generator) -> Latent:
    """Join one posterior over all batches, and its KL of each pair, (N,)."""
    mean = torch.cat([part.standardised_mean for part in parts])  # (N, L)
    gain = None
    if all(part.has_density for part in parts):
        gain = MeanEstimate.of_pairs(information(parts, generator))
    return Latent(mean.shape[1], active_units(moments(mean), len(mean)), MeanEstimate.of_pairs(kl), gain)


def moments(mean: Tensor) -> Tensor:
    """Posterior means (N, L) -> (2, L) float64: each unit's sum and sum of squares, which add up over batches."""
    exact = mean.double()
    return torch.stack([exact.sum(0), exact.square().sum(0)])


def active_units(sums: Tensor, sentences: float) -> int:
    """Count the units that vary with the sentence, from `moments` of that many sentences."""
    first, second = sums / sentences
    return int((second - first.square() > ACTIVE).sum())


def information(parts: Sequence[Posterior], generator: torch.Generator | None = None) -> Tensor:
    """The information that a draw z from each sentence's posterior has about the sentence, nats, (N,); the mean is I(x;
    z). `parts` are the posteriors of several batches.

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
