"""Bags of words, against sums written out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from bgt_core.contracts import EOS, Tokens
from bgt_core.errors import UsageError
from bgt_core.nets.mlp_output import BagOfWords, Perceptron

V, SYNTACTIC, SEMANTIC = 30, 3, 4


@pytest.fixture
def side(random_tokens: Callable[..., Tokens]) -> Tokens:
    return random_tokens([6, 4, 1], V)  # the last is EOS alone


@pytest.fixture
def latent() -> torch.Tensor:
    return torch.randn(3, SYNTACTIC + SEMANTIC, generator=torch.Generator().manual_seed(0))


def test_a_bag_pays_for_each_of_its_words_whatever_their_order(side: Tokens, latent: torch.Tensor) -> None:
    torch.manual_seed(1)
    bag = BagOfWords(V, SYNTACTIC + SEMANTIC, hidden=8, layers=3)
    prediction = bag("reconstruct", "a", latent, side)
    loss, nats = prediction.nll()
    log_p = bag.matrix(bag.perceptron(latent)).log_softmax(-1)
    log_p = log_p.tolist()
    expected = [-sum(log_p[row][token] for token in side.ids[row].tolist() if token > EOS) for row in range(3)]
    assert nats.tolist() == pytest.approx(expected, rel=1e-5)
    assert loss.item() == pytest.approx(sum(expected), rel=1e-5) and nats[2] == 0
    mixed = Tokens.pad([[*side.ids[0, [3, 1, 0, 4, 2]].tolist(), EOS]], "en")
    assert bag("reconstruct", "a", latent[:1], mixed).nll()[1].item() == pytest.approx(nats[0].item(), rel=1e-6)
    assert prediction.logits().shape == (11, V)


def test_a_perceptron_has_as_many_layers_as_it_says() -> None:
    assert sum(isinstance(part, nn.Linear) for part in Perceptron(5, 8, 3).modules()) == 3
    for width, layers in ((0, 3), (8, 0)):
        with pytest.raises(UsageError, match=r"hidden_(dim|layers) 0 must be at least 1"):
            Perceptron(5, width, layers)
