"""Modified Bessel functions I_v for von Mises-Fisher densities, for any order and argument, on any device.

I_v itself leaves the range of float64 (order 511 at concentration 1: 1e-1320; order 1 at 1,000: 1e432), and so does a
scaled I_v at large orders. This module computes only quantities that stay in range: ratios of neighbours, and the
logarithm of

    F_b(k) = 0F1(; b; k^2 / 4) = Gamma(b) (2 / k)^(b - 1) I_(b-1)(k)    F_b(0) = 1

which is E exp(k u_1) over a uniform point u of the sphere in 2b dimensions. High orders use Debye's expansion (DLMF
10.41.3); lower ones follow from it by recurrence downward, where errors shrink: a continued fraction whose tail is
known.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from numpy.polynomial import Polynomial
from torch import Tensor

ORDER = 40  # from here on Debye's expansion is exact to 1e-13
TERMS = 8  # of it


@lru_cache
def debye_sum(order: float) -> Polynomial:
    """1 + sum over j of u_j(t) / order^j, the u_j of DLMF 10.41.9."""
    t = Polynomial([0.0, 1.0])
    term, total = Polynomial([1.0]), Polynomial([1.0])
    for j in range(1, TERMS + 1):
        term = 0.5 * t**2 * (1 - t**2) * term.deriv() + 0.125 * ((1 - 5 * t**2) * term).integ()
        total = total + term / order**j
    return total


def evaluate(polynomial: Polynomial, at: Tensor) -> Tensor:
    """Evaluate the polynomial at each number, any shape."""
    value = torch.zeros_like(at)
    for coefficient in polynomial.coef[::-1]:
        value = value * at + float(coefficient)
    return value


def debye(order: float, k: Tensor) -> tuple[Tensor, Tensor]:
    """log F_(order+1)(k) and its derivative I_(order+1)(k) / I_order(k), for an order of at least `ORDER`."""
    z = k / order
    root = torch.sqrt(1 + z.square())
    t, excess = 1 / root, z.square() / (1 + root)  # excess is root - 1
    total = debye_sum(order)
    at_t, slope = evaluate(total, t), evaluate(total.deriv(), t)
    at_1 = float(total(1.0))  # for k = 0, Stirling's series for Gamma
    below = evaluate((total - at_1) // Polynomial([-1.0, 1.0]), t) * -excess / root  # at_t - at_1, exact near t = 1
    log_f = order * (excess - torch.log1p(excess / 2)) - 0.25 * torch.log1p(z.square()) + torch.log1p(below / at_1)
    ratio = z / (1 + root) - (0.5 * z * t.square() + z * t**3 * slope / at_t) / order
    return log_f, ratio


def log_f_and_ratios(k: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """log F_(m/2)(k), I_(m/2)(k) / I_(m/2-1)(k) and I_(m/2+1)(k) / I_(m/2)(k) for m = size, k >= 0 in float64.

    Relative errors are below 1e-14 from k = 0.001 to 100,000 and m = 3 to 1,024.
    """
    steps = max(0, ORDER - size // 2) + 1
    order = size / 2 + steps - 1
    log_f, ratio = debye(order, k)
    following = ratio
    for step in range(steps):
        at = order - step
        log_f = log_f + torch.log1p(k * ratio / (2 * at))
        following, ratio = ratio, k / (2 * at + k * ratio)
    return log_f, ratio, following


class _LogFAndRatio(torch.autograd.Function):
    """log F and A = I_(m/2) / I_(m/2-1); their derivatives are A and A' = A (1/k + I_(m/2+1)/I_(m/2) - A).

    A' loses digits where k is large and m small: its relative error is 1e-6 at m = 3, k = 100,000, 1e-7 at m = 50.
    """

    @staticmethod
    def forward(ctx: Any, k: Tensor, size: int) -> tuple[Tensor, Tensor]:
        log_f, ratio, following = log_f_and_ratios(k, size)
        ctx.save_for_backward(k, ratio, following)
        return log_f, ratio

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_log_f: Tensor, grad_ratio: Tensor) -> tuple[Tensor, None]:
        k, ratio, following = ctx.saved_tensors
        return grad_log_f * ratio + grad_ratio * ratio * (1 / k + following - ratio), None


def log_f_and_ratio(k: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """log F_(m/2)(k) and A(k) = I_(m/2)(k) / I_(m/2-1)(k) for m = size, float64, differentiable in k > 0."""
    return _LogFAndRatio.apply(k.double(), size)
