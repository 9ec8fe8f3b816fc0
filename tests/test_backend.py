"""Products by oneDNN and in 8 bits, against float64."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from bgt_core.backend import Linear, linear_add_, onednn, product, single
from bgt_core.nets.quantised import Int8Linear


def relative(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found - exact).norm() / exact.norm())


@pytest.mark.parametrize("shape", [(7, 5), (2, 3, 5), (1, 5), (0, 5)])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_linear(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    layer = Linear(5, 4, bias=bias)
    x = torch.randn(shape, requires_grad=True)
    assert single(x) == (len(x) > 0)
    found = product(x, layer.weight, layer.bias)
    slope = torch.randn(found.shape)
    gradients = torch.autograd.grad(found, [x, *layer.parameters()], slope)
    copies = [t.detach().double().requires_grad_() for t in (x, *layer.parameters())]
    exact = F.linear(*copies)
    assert found.shape == exact.shape
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-6)
    for one, other in zip(gradients, torch.autograd.grad(exact, copies, slope.double()), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        torch.testing.assert_close(product(x, layer.weight, layer.bias), found)


def test_large_products_are_exact_to_rounding() -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(300, 700), torch.randn(200, 700)
    exact = x.double() @ weight.double().T
    assert relative(onednn(x, weight), exact) < 2e-6
    assert relative(linear_add_(torch.ones(300, 200), x, weight), exact + 1) < 2e-6
    assert relative(onednn(exact.float(), weight.T), exact @ weight.double()) < 2e-6  # weights as they lie in a view


def test_autocast_and_other_precisions_are_torchs() -> None:
    x, layer = torch.randn(3, 8), Linear(8, 2)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))
        assert layer(x).dtype == torch.bfloat16
    assert torch.equal(layer.double()(x.double()), F.linear(x.double(), layer.weight, layer.bias))


def test_eight_bits_round_by_about_a_hundredth() -> None:
    torch.manual_seed(0)
    layer = Linear(256, 100)
    x = torch.randn(40, 256)
    with torch.no_grad():
        layer.weight[3] = 0
        layer.bias[3] = 0.5
        found, exact = Int8Linear(layer)(x), layer(x)
        assert torch.equal(Int8Linear(layer)(0 * x), layer.bias.expand(40, -1))
    assert 1e-3 < relative(found, exact) < 2e-2
    assert torch.equal(found[:, 3], torch.full((40,), 0.5))
