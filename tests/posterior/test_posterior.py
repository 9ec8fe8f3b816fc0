"""Gaussian posteriors have the densities and KLs of torch.distributions."""

import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from bgt_core.errors import UsageError
from bgt_core.posterior import Gaussian, Point, joined, readout_named
from tests.close import FLOAT32, assert_close


@pytest.fixture
def posterior() -> Gaussian:
    """Posteriors of three sentences with four units: a wide one, a narrow one, and the prior itself."""
    mean = torch.tensor([[0.5, -1.0, 2.0, 0.0], [0.1, 0.0, -0.2, 0.3], [0.0] * 4], dtype=torch.float64)
    log_variance = torch.tensor([[0.5, -1.0, 0.2, 1.1], [-3.0, -4.0, -2.0, -5.0], [0.0] * 4], dtype=torch.float64)
    return Gaussian(mean, log_variance)


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


def test_a_readout_is_a_sample_or_the_mean(posterior: Gaussian) -> None:
    assert torch.equal(readout_named("mean")(posterior), posterior.mean)
    torch.manual_seed(3)
    drawn = readout_named("sample")(posterior)
    torch.manual_seed(3)
    assert torch.equal(drawn, posterior.rsample())
    with pytest.raises(UsageError, match=r"^readout 'median': choose from sample, mean\."):
        readout_named("median")
