"""Bags of words, word positions and the decoder of two latents, against sums written out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from bgt_core.contracts import EOS, Tokens
from bgt_core.errors import UsageError
from bgt_core.nets.lstm_decoder import TwoLatentDecoder
from bgt_core.nets.mlp_output import BagOfWords, Perceptron, PerceptronOutput
from bgt_core.nets.position import PositionPredictor

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
    expected = [-sum(log_p[row][piece] for piece in side.ids[row].tolist() if piece > EOS) for row in range(3)]
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
    words = [[piece for piece in row if piece > EOS] for row in side.ids.tolist()]
    expected = [places(predictor, each, own) for each, own in zip(z, words, strict=True)]
    assert nats.tolist() == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert loss.item() == pytest.approx(sum(expected), rel=1e-5)
    loss.backward()
    assert torch.isfinite(predictor.table.weight.grad).all()
    with pytest.raises(UsageError, match="positions 0 must be at least 1"):
        PositionPredictor(nn.Embedding(V, 5), SYNTACTIC, 8, 3, positions=0)


def decoder(words: bool) -> TwoLatentDecoder:
    torch.manual_seed(2)
    layer = PerceptronOutput(V, 8, SEMANTIC, 8, 3)
    return TwoLatentDecoder(nn.Embedding(V, 5) if words else None, layer, SYNTACTIC, 8, 0.0)


@pytest.mark.parametrize("words", [True, False])
def test_a_step_at_a_time_the_scores_are_those_of_the_whole_sentence(
    side: Tokens, latent: torch.Tensor, words: bool
) -> None:
    model = decoder(words)
    prediction = model("reconstruct", "a", latent, side)
    logits, nats = prediction.logits(), prediction.nll()[1]
    state, stepped = model.start(latent), []
    for previous in [torch.full((3,), EOS), *side.ids.T[:-1]]:
        stepped.append(model.step(previous[:, None], state)[:, 0])
    packed = torch.stack(stepped, 1).flatten(0, 1)[side.flat_index]
    torch.testing.assert_close(packed, logits)
    cost = nn.functional.cross_entropy(logits, side.ids.flatten()[side.flat_index], reduction="none")
    expected = [part.sum().item() for part in cost.split(side.mask.sum(1).tolist())]
    assert nats.tolist() == pytest.approx(expected, rel=1e-5)


def test_the_first_latent_enters_the_lstm_and_the_second_the_output(side: Tokens, latent: torch.Tensor) -> None:
    model = decoder(words=True)
    syntactic, semantic = (latent + torch.eye(7)[unit] for unit in (0, 6))
    plain, *changed = (model("reconstruct", "a", each, side) for each in (latent, syntactic, semantic))
    features = [not torch.equal(each.features, plain.features) for each in changed]
    biases = [
        not torch.equal(model.layer.project_latent(each), model.layer.project_latent(latent))
        for each in (syntactic, semantic)
    ]
    assert features == [True, False] and biases == [False, True]


def test_without_the_previous_word_nothing_written_before_is_known(side: Tokens, latent: torch.Tensor) -> None:
    other = Tokens.pad([[9, 9, 9, 9, 9, EOS], [8, 8, 8, EOS], [EOS]], "en")
    for words, same in ((True, False), (False, True)):
        model = decoder(words)
        one, two = (model("reconstruct", "a", latent, each).logits() for each in (side, other))
        assert torch.equal(one, two) == same
    assert not any(isinstance(part, nn.Embedding) for part in decoder(False).modules())
