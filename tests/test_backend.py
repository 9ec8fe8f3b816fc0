"""Matrix products in float32, bfloat16 and int8 equal exact products up to rounding, with and without oneDNN."""

import pytest
import torch
from torch.nn import functional as F

from bgt_core import backend
from bgt_core.backend import Int8Linear, Linear, linear, on_grid, uses_onednn
from tests.close import FLOAT32, assert_close


def switch_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USES_ONEDNN", "HAS_ONEDNN_INT8"):
        monkeypatch.setattr(backend, name, False)
    for name in ("_onednn", "multiply_int8", "prepack_int8"):
        monkeypatch.delattr(backend, name)


@pytest.fixture(params=[True, False], ids=["onednn", "plain"])
def has_onednn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run each test twice: with oneDNN's operators, and without them."""
    if not request.param:
        switch_off(monkeypatch)
    elif not (backend.HAS_ONEDNN and backend.HAS_ONEDNN_INT8):
        pytest.skip("this release of torch, or this CPU, has no oneDNN")
    else:
        monkeypatch.setattr(backend, "USES_ONEDNN", True)
    return request.param


both = pytest.mark.usefixtures("has_onednn")


def relative(result: torch.Tensor, exact: torch.Tensor) -> float:
    return float((result - exact).norm() / exact.norm())


@pytest.mark.parametrize("rows", [1, 16, 21, 33, 64])
def test_rows_added_for_16_bit_products_change_nothing(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding rows do not change products in bfloat16, which are exact here because all numbers are small integers."""
    torch.manual_seed(0)
    layer, x, slope = Linear(5, 4), torch.randint(-4, 5, (rows, 5)).float(), torch.randint(-4, 5, (rows, 4)).float()
    torch.nn.init.ones_(layer.weight), torch.nn.init.zeros_(layer.bias)
    x.requires_grad_()
    multiplied: list[int] = []
    plain = F.linear
    monkeypatch.setattr(F, "linear", lambda x, *rest: (multiplied.append(len(x)), plain(x, *rest))[1])
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(x)
    gradients = torch.autograd.grad(y, [x, *layer.parameters()], slope.bfloat16())
    expected = torch.autograd.grad(plain(x, *layer.parameters()), [x, *layer.parameters()], slope)
    assert multiplied == [on_grid(rows)]
    assert torch.equal(y.float(), plain(x, *layer.parameters()))
    for gradient, exact in zip(gradients, expected, strict=True):
        assert torch.equal(gradient, exact)


@pytest.mark.parametrize("shape", [(7, 5), (2, 3, 5), (1, 5), (0, 5)])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_linear(shape: tuple[int, ...], bias: bool, has_onednn: bool) -> None:
    torch.manual_seed(0)
    layer = Linear(5, 4, bias=bias)
    x = torch.randn(shape, requires_grad=True)
    assert uses_onednn(x) == (has_onednn and len(x) > 0)
    y = linear(x, layer.weight, layer.bias)
    slope = torch.randn(y.shape)
    gradients = torch.autograd.grad(y, [x, *layer.parameters()], slope)
    copies = [t.detach().double().requires_grad_() for t in (x, *layer.parameters())]
    exact = F.linear(*copies)
    assert y.shape == exact.shape
    assert_close(y.double(), exact, FLOAT32)
    for gradient, expected in zip(gradients, torch.autograd.grad(exact, copies, slope.double()), strict=True):
        assert_close(gradient.double(), expected, FLOAT32)
    with torch.no_grad():
        assert_close(linear(x, layer.weight, layer.bias), y)


@both
def test_autocast_and_other_precisions_are_torchs() -> None:
    x, layer = torch.randn(3, 8), Linear(8, 2)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))
        assert layer(x).dtype == torch.bfloat16
    assert torch.equal(layer.double()(x.double()), F.linear(x.double(), layer.weight, layer.bias))


@both
def test_eight_bits_round_by_about_a_hundredth() -> None:
    torch.manual_seed(0)
    layer = Linear(256, 100)
    x = torch.randn(40, 256)
    with torch.no_grad():
        layer.weight[3] = 0
        layer.bias[3] = 0.5
        rounded, exact = Int8Linear(layer)(x), layer(x)
        assert torch.equal(Int8Linear(layer)(0 * x), layer.bias.expand(40, -1))
        with torch.autocast("cpu", torch.bfloat16):
            assert Int8Linear(layer)(x).dtype == torch.bfloat16
    assert 1e-3 < relative(rounded, exact) < 2e-2
    assert torch.equal(rounded[:, 3], torch.full((40,), 0.5))


@pytest.mark.parametrize(("name", "flags"), [("_onednn", (False, True)), ("prepack_int8", (True, False))])
def test_an_operator_that_changed_is_not_used(
    name: str, flags: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> torch.Tensor:
        raise AttributeError("'_OpNamespace' 'mkldnn' object has no attribute '_linear_pointwise'")

    if backend._probe() != (True, True):
        pytest.skip("this release of torch, or this CPU, has no oneDNN")
    monkeypatch.setattr(backend, name, gone)
    assert backend._probe() == flags
    monkeypatch.setattr(backend, name, lambda *_: torch.zeros(1, 1))  # returns a wrong result
    assert backend._probe() == flags
