"""The von Mises-Fisher posterior agrees with mpmath, with quadrature, and with a second implementation of sampling."""

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy.special import logsumexp

from bgt_core.posterior import VonMisesFisher
from bgt_core.posterior.vmf import ATTEMPTS, log_f_and_ratio, sample_cosine
from tests.close import ROUNDING, assert_close

SIZES = (5, 50, 300, 1024)
CONCENTRATIONS = (0.1, 1.7, 12.0, 100.0, 1e3, 1e4)
DRAWS = 10_000


def direction(rows: int, size: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(rows, size, dtype=torch.float64, generator=generator), dim=-1)


def posterior(concentration: float, size: int, rows: int = 1) -> VonMisesFisher:
    """Return the posteriors of `rows` sentences, which are all equal."""
    mean = direction(1, size).expand(rows, -1)
    return VonMisesFisher(mean, torch.full((rows,), concentration, dtype=torch.float64))


def exact(concentration: float, size: int) -> tuple[mpmath.mpf, mpmath.mpf, mpmath.mpf, mpmath.mpf]:
    """Compute log 0F1(; m/2; k^2/4), A(k), KL and dKL/dk with 60 digits, for the concentration k and the size m."""
    with mpmath.workdps(60):
        k, order = mpmath.mpf(concentration), mpmath.mpf(size) / 2 - 1
        first, second, third = (mpmath.besseli(order + more, k) for more in range(3))
        log_f = mpmath.log(first) + mpmath.loggamma(order + 1) - order * mpmath.log(k / 2)
        ratio = second / first
        return log_f, ratio, k * ratio - log_f, k * ratio * (1 / k + third / second - ratio)


@pytest.mark.parametrize("size", [3, *SIZES])
@pytest.mark.parametrize("concentration", [1e-3, *CONCENTRATIONS, 1e5])
def test_values_and_slopes_are_those_of_high_precision(size: int, concentration: float) -> None:
    k = torch.tensor([concentration], dtype=torch.float64, requires_grad=True)
    log_f, ratio = log_f_and_ratio(k, size)
    kl = VonMisesFisher(direction(1, size), k).kl()
    (slope,) = torch.autograd.grad(kl, k)
    given = [value.item() for value in (log_f, ratio, kl, slope)]
    for value, expected, allowed in zip(given, exact(concentration, size), (1e-13, 1e-14, 1e-11, 2e-6), strict=True):
        assert value == pytest.approx(float(expected), rel=allowed if concentration >= 1e3 else min(allowed, 1e-10))


def density(concentration: float, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a grid of w, the cosine of a sample with the mean, and log p(w); p(w) ~ (1-w^2)^((m-3)/2) exp(k w)."""
    angle = (np.arange(100_000) + 0.5) / 100_000 * np.pi
    log_q = (size - 2) * np.log(np.sin(angle)) + concentration * np.cos(angle)  # w = cos(angle), |dw| = sin(angle)
    return np.cos(angle), log_q - logsumexp(log_q)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_the_kl_is_that_of_quadrature(size: int, concentration: float) -> None:
    (_, log_q), (_, log_p) = (density(k, size) for k in (concentration, 0.0))
    expected = (np.exp(log_q) * (log_q - log_p)).sum()
    assert posterior(concentration, size).kl().item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("concentration", [1e-3, *CONCENTRATIONS, 1e5])
def test_draws_have_the_moments_of_quadrature(size: int, concentration: float) -> None:
    w, log_q = density(concentration, size)
    q = np.exp(log_q)
    mean = (q * w).sum()
    central = [(q * (w - mean) ** power).sum() for power in (2, 3, 4)]
    k = torch.full((DRAWS,), concentration, dtype=torch.float64)
    along, across = sample_cosine(k, size, torch.Generator().manual_seed(1))
    assert_close(along.square() + across.square(), torch.ones_like(k))
    assert abs(along.mean() - mean) < 4 * math.sqrt(central[0] / DRAWS)
    assert abs(along.var() - central[0]) < 4 * math.sqrt((central[2] - central[0] ** 2) / DRAWS)
    assert mean == pytest.approx(float(exact(concentration, size)[1]), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_draw_is_that_of_the_first_proposal_that_is_accepted(dtype: torch.dtype) -> None:
    """Samples equal a loop over Wood's rejection sampler and Householder's reflection, with the same random numbers."""
    size, k = 6, np.array([0.3, 4.0, 60.0] * 5)
    mean = direction(15, size, seed=12).to(dtype)
    drawn = VonMisesFisher(mean, torch.from_numpy(k).to(dtype)).rsample(torch.Generator().manual_seed(13))
    generator = torch.Generator().manual_seed(13)
    uniform = torch.rand(3, ATTEMPTS, 15, dtype=torch.float64, generator=generator).numpy()
    aside = torch.randn(15, size - 1, dtype=dtype, generator=generator).double().numpy()
    k = torch.from_numpy(k).to(dtype).double().numpy()
    attempts = []
    for row in range(15):
        b = (-2 * k[row] + np.sqrt(4 * k[row] ** 2 + (size - 1) ** 2)) / (size - 1)
        x0 = (1 - b) / (1 + b)
        c = k[row] * x0 + (size - 1) * np.log(1 - x0**2)
        for attempt in range(ATTEMPTS):
            first, second, third = uniform[:, attempt, row]
            beta = (1 + np.sqrt(1 - (1 - first) ** (2 / (size - 2))) * np.cos(2 * np.pi * second)) / 2
            w = (1 - (1 + b) * beta) / (1 - (1 - b) * beta)
            if k[row] * w + (size - 1) * np.log(1 - x0 * w) - c >= np.log(1 - third):
                break
        attempts.append(attempt)
        z = np.concatenate([[w], np.sqrt(1 - w**2) * aside[row] / np.linalg.norm(aside[row])])
        normal = np.eye(size)[0] - mean[row].double().numpy()
        z -= 2 * normal * (normal @ z) / (normal @ normal)
        assert_close(drawn[row], z)
    assert max(attempts) > 0  # some proposals were rejected


def test_the_density_integrates_to_one_and_its_log_is_that_of_each_pair() -> None:
    size, concentration = 5, 3.0
    z = direction(50_000, size, seed=5)  # samples from the prior
    ratios = posterior(concentration, size, len(z)).log_ratio(z).exp()
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / math.sqrt(len(z))
    some = VonMisesFisher(direction(3, size, seed=6), torch.tensor([0.3, 5.0, 40.0], dtype=torch.float64))
    pairs = torch.stack([some.log_ratio(row.expand(3, -1)) for row in z[:4]])
    assert_close(some.log_density(z[:4]), pairs)


def test_the_gradient_of_a_draw_is_that_of_finite_differences() -> None:
    # gradcheck changes the parameters a little; in one of a million cases, another proposal is then accepted
    raw = (direction(3, 6, seed=7) * 2).requires_grad_()
    k = torch.tensor([0.5, 4.0, 60.0], dtype=torch.float64, requires_grad=True)

    def draw(raw: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        mean = torch.nn.functional.normalize(raw, dim=-1)
        return VonMisesFisher(mean, k).rsample(torch.Generator().manual_seed(8))

    assert torch.autograd.gradcheck(draw, (raw, k))


@pytest.mark.parametrize(
    ("size", "concentration", "share"), [(5, 2.0, 0.866), (5, 3.0, 0.829), (50, 2.0, 0.9997), (50, 50.0, 0.9855)]
)
def test_the_pathwise_gradient_misses_what_is_documented(size: int, concentration: float, share: float) -> None:
    k = torch.full((DRAWS * 3,), concentration, dtype=torch.float64, requires_grad=True)
    along, _ = sample_cosine(k, size, torch.Generator().manual_seed(9))
    (slopes,) = torch.autograd.grad(along.sum(), k)
    true = float(exact(concentration, size)[3]) / concentration  # A', the derivative of the mean cosine A
    assert (slopes.mean() / true).item() == pytest.approx(share, abs=4 * float(slopes.std() / true) / len(k) ** 0.5)


def test_single_and_half_precision_stay_finite_and_on_the_sphere() -> None:
    k = torch.tensor([1e-3, 1.0, 1e5])
    for dtype in (torch.float32, torch.bfloat16):
        q = VonMisesFisher(direction(3, 50).to(dtype), k.to(dtype))
        z = q.rsample(torch.Generator().manual_seed(0))
        assert z.dtype == q.kl().dtype == torch.float32
        assert_close(z.norm(dim=-1), torch.ones(3), ROUNDING[dtype])
        assert (q.kl() > 0).all()
