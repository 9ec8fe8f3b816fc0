"""Posteriors against sampling and against torch.distributions."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from bgt_core.errors import UsageError
from bgt_core.posterior import READOUTS, Gaussian, Point, joined, mean, readout_named, sample
from tests.close import FLOAT32, FLOAT64, assert_close

DRAWS = 100_000


@pytest.fixture
def posterior() -> Gaussian:
    """Three sentences, four units: wide, narrow, and the prior itself in the last row."""
    mean = torch.tensor([[0.5, -1.0, 2.0, 0.0], [0.1, 0.0, -0.2, 0.3], [0.0] * 4], dtype=torch.float64)
    log_variance = torch.tensor([[0.5, -1.0, 0.2, 1.1], [-3.0, -4.0, -2.0, -5.0], [0.0] * 4], dtype=torch.float64)
    return Gaussian(mean, log_variance)


def draws(posterior: Gaussian) -> torch.Tensor:
    torch.manual_seed(0)
    copies = Gaussian(posterior.mean.expand(DRAWS, -1, -1), posterior.log_variance.expand(DRAWS, -1, -1))
    return copies.rsample()


def test_kl_is_the_mean_log_ratio_of_draws(posterior: Gaussian) -> None:
    z = draws(posterior)  # (draws, 3, 4)
    q = Normal(posterior.mean, posterior.log_variance.exp().sqrt())
    ratios = (q.log_prob(z) - Normal(0.0, 1.0).log_prob(z)).sum(-1)  # (draws, 3)
    error = ratios.std(0) / DRAWS**0.5
    assert ((ratios.mean(0) - posterior.kl()).abs() <= 4 * error + FLOAT64).all()
    assert posterior.kl()[:2].min() > 1
    assert posterior.kl()[2] == 0


def test_kl_is_that_of_torch(posterior: Gaussian) -> None:
    q = Normal(posterior.mean, posterior.log_variance.exp().sqrt())
    expected = kl_divergence(q, Normal(torch.zeros_like(q.mean), torch.ones_like(q.mean))).sum(-1)
    assert_close(posterior.kl(), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_loses_no_more_than_its_numbers_have_lost(dtype: torch.dtype) -> None:
    mean, log_variance, z = torch.linspace(-0.7, 0.9, 300).view(3, 4, 25).to(dtype)
    half, double = Gaussian(mean, log_variance), Gaussian(mean.double(), log_variance.double())
    for given, expected in ((half.kl(), double.kl()), (half.log_ratio(z), double.log_ratio(z.double()))):
        assert given.dtype == torch.float32
        assert_close(given.double(), expected, FLOAT32)


def test_draws_have_the_moments_they_should(posterior: Gaussian) -> None:
    z, variance = draws(posterior), posterior.log_variance.exp()
    assert ((z.mean(0) - posterior.mean).abs() < 4 * (variance / DRAWS).sqrt()).all()
    assert ((z.var(0) / variance - 1).abs() < 4 * (2 / DRAWS) ** 0.5).all()
    units = (z - posterior.mean).flatten(1).T  # (12, draws): independent of each other
    correlations = torch.corrcoef(units) - torch.eye(12, dtype=torch.float64)
    assert correlations.abs().max() < 5 / DRAWS**0.5


def test_a_draw_is_the_mean_and_the_generator_s_noise(posterior: Gaussian) -> None:
    noise = torch.randn(3, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    expected = posterior.mean + posterior.log_variance.exp().sqrt() * noise
    assert_close(posterior.rsample(torch.Generator().manual_seed(5)), expected)


def test_the_log_ratio_of_a_draw_is_that_of_torch_s_densities(posterior: Gaussian) -> None:
    z = posterior.rsample(torch.Generator().manual_seed(1))
    q, prior = Normal(posterior.mean, posterior.log_variance.exp().sqrt()), Normal(0.0, 1.0)
    assert_close(posterior.log_ratio(z), (q.log_prob(z) - prior.log_prob(z)).sum(-1))
    assert torch.equal(Point(posterior.mean).log_ratio(z), torch.zeros(3, dtype=torch.float64))


def test_the_log_density_is_that_of_torch_but_for_one_constant(posterior: Gaussian) -> None:
    z = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    q = Normal(posterior.mean, posterior.log_variance.exp().sqrt())
    expected = q.log_prob(z[:, None]).sum(-1)  # (5 draws, 3 posteriors)
    constant = 4 / 2 * math.log(2 * math.pi)
    assert_close(posterior.log_density(z) - constant, expected)
    assert Gaussian.has_density and not Point.has_density
    with pytest.raises(UsageError, match="points, which have no density"):
        Point(posterior.mean).log_density(z)


def test_posteriors_of_batches_join_in_their_order_in_float64(posterior: Gaussian) -> None:
    cuts, mean, log_variance = (slice(0, 1), slice(1, 3)), posterior.mean.float(), posterior.log_variance.float()
    whole = joined([Gaussian(mean[rows], log_variance[rows]) for rows in cuts])
    assert torch.equal(whole.mean, mean.double()) and torch.equal(whole.log_variance, log_variance.double())
    points = joined([Point(mean[rows]) for rows in cuts])
    assert type(points) is Point and torch.equal(points.mean, mean.double())


def test_a_latent_is_drawn_or_read_at_the_mean(posterior: Gaussian) -> None:
    assert torch.equal(READOUTS["mean"](posterior), posterior.mean)
    torch.manual_seed(3)
    drawn = READOUTS["sample"](posterior)
    torch.manual_seed(3)
    assert torch.equal(drawn, posterior.rsample())


def test_a_readout_has_a_name() -> None:
    assert readout_named("sample") is sample and readout_named("mean") is mean
    with pytest.raises(UsageError, match=r"^readout 'median': choose from sample, mean\."):
        readout_named("median")
