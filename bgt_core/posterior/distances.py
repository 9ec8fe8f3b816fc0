"""Distances of two Gaussian posteriors in closed form: similarities of a pair of sentences, and features of a
classifier of pairs (Deudon 2018, sec. 4).

Each measure is a sum over latent units, because covariances are diagonal. Its *terms* are the summands, one number per
unit; its similarity is computed from the sum, and is high for sentences that mean the same.
Posteriors may have any leading dimensions that broadcast: (N, 1, L) and (M, L) give (N, M).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from bgt_core.errors import UsageError, did_you_mean
from bgt_core.posterior import Gaussian

TINY = 1e-12  # below the length of any mean other than zero


def w2_terms(left: Gaussian, right: Gaussian) -> Tensor:
    """(mu1 - mu2)^2 + (sigma1 - sigma2)^2: their sum is the squared Wasserstein distance, (..., L)."""
    spread = torch.exp(0.5 * left.log_variance) - torch.exp(0.5 * right.log_variance)
    return (left.mean - right.mean).square() + spread.square()


def mahalanobis_terms(left: Gaussian, right: Gaussian) -> Tensor:
    """1/2 (1 / sigma1^2 + 1 / sigma2^2) (mu1 - mu2)^2, (..., L)."""
    precision = torch.exp(-left.log_variance) + torch.exp(-right.log_variance)
    return 0.5 * precision * (left.mean - right.mean).square()


def jensen_shannon_terms(left: Gaussian, right: Gaussian) -> Tensor:
    """KL(p1 || m) / 2 + KL(p2 || m) / 2 in nats, (..., L), m the Gaussian with the mixture's mean and variance.

    With m the mixture itself this is the Jensen-Shannon divergence, which has no closed form between Gaussians; of all
    Gaussians this m comes nearest to it, from above. The sum is log(s) - (log(sigma1) + log(sigma2)) / 2 with
    s^2 = (sigma1^2 + sigma2^2) / 2 + (mu1 - mu2)^2 / 4. The paper names the divergence and gives no formula.
    """
    variance = 0.5 * (left.log_variance.exp() + right.log_variance.exp())
    mixed = variance + 0.25 * (left.mean - right.mean).square()
    return 0.5 * mixed.log() - 0.25 * (left.log_variance + right.log_variance)


def euclidean_terms(left: Gaussian, right: Gaussian) -> Tensor:
    """(mu1 - mu2)^2, (..., L)."""
    return (left.mean - right.mean).square()


def cosine_terms(left: Gaussian, right: Gaussian) -> Tensor:
    """mu1 mu2 / (|mu1| |mu2|), (..., L): their sum is the cosine; 0 if a mean is 0."""
    lengths = [posterior.mean.norm(dim=-1, keepdim=True).clamp(min=TINY) for posterior in (left, right)]
    return (left.mean / lengths[0]) * (right.mean / lengths[1])


def hadamard_terms(left: Gaussian, right: Gaussian) -> Tensor:
    """mu1 mu2, (..., L): the elementwise product."""
    return left.mean * right.mean


Terms = Callable[[Gaussian, Gaussian], Tensor]

DISTANCES: Mapping[str, Terms] = {
    "w2": w2_terms,
    "mahalanobis": mahalanobis_terms,
    "jensen-shannon": jensen_shannon_terms,
    "euclidean": euclidean_terms,
    "cosine": cosine_terms,
}
FEATURES: Mapping[str, Terms] = {**DISTANCES, "hadamard": hadamard_terms}


def similarity(name: str, left: Gaussian, right: Gaussian) -> Tensor:
    """Return the similarity by one of `DISTANCES`, (...): the cosine, minus the Jensen-Shannon divergence, or minus the
    distance, which is the root of the sum.

    Raises UsageError for an unknown name.
    """
    total = terms_named(name, DISTANCES)(left, right).sum(-1)
    if name == "cosine":
        return total
    return -total if name == "jensen-shannon" else -total.clamp(min=0).sqrt()


def features(names: Sequence[str], left: Gaussian, right: Gaussian) -> Tensor:
    """The terms of these `FEATURES`, concatenated, (..., K L); UsageError for an unknown name."""
    return torch.cat([terms_named(name, FEATURES)(left, right) for name in names], dim=-1)


def terms_named(name: str, known: Mapping[str, Terms]) -> Terms:
    """Look up a name; UsageError if it is unknown."""
    if name not in known:
        raise UsageError(
            f"'{name}' is not a measure of two posteriors.{did_you_mean(name, known)} Choose from {', '.join(known)}."
        )
    return known[name]
