"""The fused loss: no gradient is computed where none is asked for."""

from __future__ import annotations

import pytest
import torch

from bgt_core.contracts import Tokens
from bgt_core.nets.fast import nll
from tests.close import assert_close


def test_without_gradients_there_is_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    products = []

    def counted(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        products.append(tuple(weight.shape))
        return x @ weight.T

    monkeypatch.setattr(nll, "linear", counted)
    torch.manual_seed(0)
    features, weight = torch.randn(5, 4), torch.randn(9, 4, requires_grad=True)
    target = Tokens.pad([[4, 5, 3], [6, 3]], "en")
    learning = nll.nll(features, weight, None, target, 0.1)
    assert products == [(9, 4), (4, 9)]
    products.clear()
    for off in (torch.no_grad(), torch.inference_mode()):
        with off:
            loss, nats = nll.nll(features, weight, None, target, 0.1)
        assert_close(loss, learning[0])
        assert_close(nats, learning[1])
    assert products == [(9, 4)] * 2
