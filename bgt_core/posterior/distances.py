"""Distances between two Gaussian posteriors (Deudon 2018, sec. 4). The distances measure how similar two sentences are,
and serve as features for a classifier of sentence pairs.

Covariances are diagonal, so each measure is a sum over latent units. The *terms* of a measure are the summands, one per
unit. A similarity is computed from the sum; it is high for sentences with the same meaning. All dimensions but the
last one are broadcast: posteriors of shapes (N, 1, L) and (M, L) give measures (N, M).
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from bgt_core.errors import UsageError, did_you_mean
from bgt_core.posterior import Gaussian

TINY = 1e-12  # lower bound of the length of a mean, so that nothing is divided by 0


def w2_terms(left: Gaussian, right: Gaussian) -> Tensor:
    """Return (mu1 - mu2)^2 + (sigma1 - sigma2)^2, (..., L). The sum is the squared 2-Wasserstein distance."""
    spread = torch.exp(0.5 * left.log_variance) - torch.exp(0.5 * right.log_variance)
    return (left.mean - right.mean).square() + spread.square()


def mahalanobis_terms(left: Gaussian, right: Gaussian) -> Tensor:
    """Return 1/2 (1 / sigma1^2 + 1 / sigma2^2) (mu1 - mu2)^2, (..., L)."""
    precision = torch.exp(-left.log_variance) + torch.exp(-right.log_variance)
    return 0.5 * precision * (left.mean - right.mean).square()


def jensen_shannon_terms(left: Gaussian, right: Gaussian) -> Tensor:
    """Return KL(p1 || m) / 2 + KL(p2 || m) / 2 in nats, (..., L), where m is the Gaussian with the mean and variance of
    the mixture (p1 + p2) / 2.

    In the Jensen-Shannon divergence, m is the mixture itself, and there is no closed form. With this Gaussian m, the
    value is an upper bound of the divergence, and with any other Gaussian it would be larger. The value equals log(s) -
    (log(sigma1) + log(sigma2)) / 2 with s^2 = (sigma1^2 + sigma2^2) / 2 + (mu1 - mu2)^2 / 4. Deudon names the
    divergence, but gives no formula.
    """
    variance = 0.5 * (left.log_variance.exp() + right.log_variance.exp())
    mixed = variance + 0.25 * (left.mean - right.mean).square()
    return 0.5 * mixed.log() - 0.25 * (left.log_variance + right.log_variance)


def euclidean_terms(left: Gaussian, right: Gaussian) -> Tensor:
    """Return (mu1 - mu2)^2, (..., L). The sum is the squared Euclidean distance of the means."""
    return (left.mean - right.mean).square()


def cosine_terms(left: Gaussian, right: Gaussian) -> Tensor:
    """Return mu1 mu2 / (|mu1| |mu2|), (..., L), or 0 if a mean is 0. The sum is the cosine of the means."""
    lengths = [posterior.mean.norm(dim=-1, keepdim=True).clamp(min=TINY) for posterior in (left, right)]
    return (left.mean / lengths[0]) * (right.mean / lengths[1])


def hadamard_terms(left: Gaussian, right: Gaussian) -> Tensor:
    """Return the elementwise product mu1 mu2, (..., L)."""
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
    """Return the similarity, (...), by the measure `name` of `DISTANCES`; UsageError for an unknown name.

    For "cosine", it is the sum over latent units; for "jensen-shannon", the negative sum; for all other measures, the
    negative square root of the sum.
    """
    total = terms_named(name, DISTANCES)(left, right).sum(-1)
    if name == "cosine":
        return total
    return -total if name == "jensen-shannon" else -total.clamp(min=0).sqrt()


def features(names: Sequence[str], left: Gaussian, right: Gaussian) -> Tensor:
    """Concatenate the L summands of each of K distances, (..., K L); UsageError if `FEATURES` lacks a name."""
    return torch.cat([terms_named(name, FEATURES)(left, right) for name in names], dim=-1)


def terms_named(name: str, known: Mapping[str, Terms]) -> Terms:
    """Return the function with this name in `known`; UsageError for an unknown name."""
    if name not in known:
        raise UsageError(
            f"'{name}' is not a measure of two posteriors.{did_you_mean(name, known)} Choose from {', '.join(known)}."
        )
    return known[name]
