"""What the posteriors of N sentences say together: which units are in use, how much they tell of the sentence."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bgt_core.posterior import Gaussian

ACTIVE = 0.01  # a unit is active when the variance of its posterior mean exceeds this (Burda et al. 2016)
ROWS = 1024  # draws whose densities under all posteriors exist at a time


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
