"""Mutual information against its extremes, quadrature and torch.distributions; active units against what varies."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm
from torch.distributions import Normal

from bgt_core.diagnose import ROWS, active_units, information, moments
from bgt_core.posterior import Gaussian


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_posteriors_that_are_all_the_same_tell_nothing() -> None:
    nats = information(Gaussian(torch.full((50, 3), 2.0), torch.full((50, 3), -1.0)), seeded())
    torch.testing.assert_close(nats, torch.zeros(50, dtype=torch.float64), rtol=0, atol=1e-12)


def test_posteriors_far_apart_tell_the_sentence_and_no_more_than_log_n() -> None:
    far = Gaussian(100.0 * torch.arange(40.0)[:, None].expand(40, 2), torch.full((40, 2), -6.0))
    torch.testing.assert_close(information(far, seeded()).mean().item(), math.log(40))


def test_two_groups_far_apart_tell_one_bit() -> None:
    means = torch.tensor([-50.0, 50.0]).repeat(20)[:, None]
    assert information(Gaussian(means, torch.zeros(40, 1)), seeded()).mean().item() == pytest.approx(math.log(2))


def test_it_is_the_integral_over_the_mixture() -> None:
    """Five posteriors of one unit, each of 800 sentences: the mixture is theirs whatever the number."""
    means, deviations = [-1.5, -0.5, 0.0, 0.7, 2.0], [0.3, 1.0, 0.5, 0.2, 0.8]

    def mixture(z: float) -> float:
        return float(norm.pdf(z, means, deviations).mean())

    entropy = -quad(lambda z: mixture(z) * math.log(mixture(z)), -8, 8, limit=200)[0]
    within = float(norm(means, deviations).entropy().mean())
    to_prior = quad(lambda z: mixture(z) * (math.log(mixture(z)) - norm.logpdf(z)), -8, 8, limit=200)[0]
    posterior = Gaussian(torch.tensor(means)[:, None], 2 * torch.tensor(deviations).log()[:, None])
    many = Gaussian.join([posterior] * 800)
    assert len(many.mean) > ROWS
    nats = information(many, seeded())
    error = nats.std().item() / len(nats) ** 0.5
    assert error < 0.02
    assert nats.mean().item() == pytest.approx(entropy - within, abs=4 * error)
    # Hoffman & Johnson: the mean KL is the information and the KL of the aggregated posterior
    assert posterior.kl().mean().item() == pytest.approx(entropy - within + to_prior, rel=1e-5)


def test_it_is_what_torch_s_densities_say() -> None:
    draw = seeded(1)
    posterior = Gaussian(torch.randn(30, 7, generator=draw), torch.randn(30, 7, generator=draw) - 2)
    z = Gaussian(posterior.mean.double(), posterior.log_variance.double()).rsample(seeded(2))
    q = Normal(posterior.mean.double(), posterior.log_variance.double().exp().sqrt())
    density = q.log_prob(z[:, None]).sum(-1)  # (30 draws, 30 posteriors)
    expected = density.diagonal() - density.logsumexp(1) + math.log(30)
    torch.testing.assert_close(information(posterior, seeded(2)), expected, rtol=1e-9, atol=1e-9)


def test_active_units_are_those_whose_mean_varies() -> None:
    rank = torch.arange(8.0)
    mean = torch.stack(
        [rank, torch.full_like(rank, 1000.0), 0.01 * rank, 0.1 * rank], 1
    )  # variances 5.25, 0, 5e-4, 0.05
    assert active_units(moments(mean[:3]) + moments(mean[3:]), 8) == 2
