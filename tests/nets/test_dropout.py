"""Dropout from 16-bit draws, as a user of torch's would expect it."""

from __future__ import annotations

import pytest
import torch

from bgt_core.nets.dropout import Dropout

UNITS = 400_000


@pytest.mark.parametrize("probability", [0.05, 0.1, 0.5, 0.9])
def test_share_dropped_and_expectation(probability: float) -> None:
    torch.manual_seed(0)
    kept = Dropout(probability).train()(torch.ones(UNITS, dtype=torch.float64))
    error = (probability * (1 - probability) / UNITS) ** 0.5
    assert abs((kept == 0).double().mean().item() - probability) < 4 * error + 1 / 65536
    assert abs(kept.mean().item() - 1) < 4 * error / (1 - probability)
    survivors = kept[kept != 0]
    assert torch.equal(survivors, survivors[0].expand_as(survivors))
    assert survivors[0].item() == pytest.approx(1 / (1 - probability), rel=1 / 65536 / (1 - probability))


def test_units_are_dropped_independently() -> None:
    torch.manual_seed(0)
    dropped = (Dropout(0.5).train()(torch.ones(UNITS)) == 0).double()
    for distance in (1, 2, 3, 4, 5, 8):  # four draws share one random word
        together = (dropped[:-distance] * dropped[distance:]).mean().item()
        assert abs(together - 0.25) < 5 * (0.25 * 0.75 / UNITS) ** 0.5


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 5, 7), (0, 4)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    assert Dropout(0.5).train()(torch.ones(shape)).shape == shape


def test_it_does_nothing_in_evaluation_or_at_zero() -> None:
    x = torch.randn(50)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0).train()(x), x)


def test_the_same_seed_drops_the_same_units() -> None:
    x, dropout = torch.ones(1000), Dropout(0.3).train()
    torch.manual_seed(4)
    first = dropout(x)
    second = dropout(x)
    torch.manual_seed(4)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


def test_gradients_are_dropped_with_their_units() -> None:
    x = torch.ones(1000, requires_grad=True)
    kept = Dropout(0.3).train()(x)
    kept.sum().backward()
    assert torch.equal(x.grad, kept.detach())


@pytest.mark.parametrize("probability", [-0.1, 1.0, 1.5])
def test_an_impossible_share_is_refused(probability: float) -> None:
    with pytest.raises(ValueError, match=str(probability)):
        Dropout(probability)
