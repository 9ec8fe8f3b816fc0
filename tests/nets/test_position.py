"""Word positions, against sums written out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from bgt_core.contracts import EOS, Tokens
from bgt_core.errors import UsageError
from bgt_core.nets.position import PositionPredictor

V, SYNTACTIC, SEMANTIC = 30, 3, 4


@pytest.fixture
def side(random_tokens: Callable[..., Tokens]) -> Tokens:
    return random_tokens([6, 4, 1], V)  # the last is EOS alone


@pytest.fixture
def latent() -> torch.Tensor:
    return torch.randn(3, SYNTACTIC + SEMANTIC, generator=torch.Generator().manual_seed(0))


def places(predictor: PositionPredictor, latent: torch.Tensor, words: list[int]) -> float:
    """The cost of one sentence's words, written out."""
    total = 0.0
    for place, word in enumerate(words[: predictor.scores.out_features]):
        read = torch.cat([predictor.table.weight[word], latent])
        scores = predictor.scores(predictor.perceptron(read[None]))[0, : len(words)]  # places of this sentence
        total -= scores.log_softmax(-1)[place].item()
    return total


@pytest.mark.parametrize("positions", [32, 5, 3])
def test_a_word_pays_for_its_place_among_those_of_its_sentence(
    side: Tokens, latent: torch.Tensor, positions: int
) -> None:
    torch.manual_seed(1)
    predictor = PositionPredictor(nn.Embedding(V, 5), SYNTACTIC, hidden=8, layers=3, positions=positions)
    z = latent[:, :SYNTACTIC]
    loss, nats = predictor("a", z, side).nll()
    words = [[token for token in row if token > EOS] for row in side.ids.tolist()]
    expected = [places(predictor, each, own) for each, own in zip(z, words, strict=True)]
    assert nats.tolist() == pytest.approx(expected, rel=1e-5)
    assert loss.item() == pytest.approx(sum(expected), rel=1e-5)
    loss.backward()
    assert torch.isfinite(predictor.table.weight.grad).all()
    with pytest.raises(UsageError, match="positions 0 must be at least 1"):
        PositionPredictor(nn.Embedding(V, 5), SYNTACTIC, 8, 3, positions=0)
