"""The fused loss equals the cross-entropy of all logits. Losses of bags of words and of positions equal loops."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.contracts import BOS, EOS, PAD, UNK, Tokens
from bgt_core.errors import UsageError
from bgt_core.nets import operations, output
from bgt_core.nets.layers import make_embedding
from bgt_core.nets.output import BagOfWords, OutputLayer, Perceptron, PositionPredictor, TiedOutput, UntiedOutput
from tests.close import assert_close

V, H, L = 23, 6, 5
LENGTHS = [[1], [3, 7, 1, 5], [150, 90, 170], [300] * 5]  # batch 3 has over CHUNK tokens, batch 4 over BLOCK


def layers() -> dict[str, OutputLayer]:
    torch.manual_seed(1)
    tied = TiedOutput(make_embedding(V, H), L)
    with torch.no_grad():
        tied.table.weight[0] = torch.randn(H)  # the vector of PAD must not be zero
    return {"untied": UntiedOutput(V, H, L).double(), "tied": tied.double()}


def naive(layer: OutputLayer, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple:
    """Compute the label-smoothed cross-entropy from the logits (R, V) of all real tokens, as fairseq does."""
    lengths = target.mask.sum(1)
    copied = latent.repeat_interleave(lengths, dim=0)  # (R, L)
    if isinstance(layer, UntiedOutput):
        matrix = torch.cat([layer.hidden.weight, layer.latent.weight], dim=1)
        scores = torch.cat([features, copied], dim=-1) @ matrix.T
    else:
        scores = (features + copied @ layer.project.weight.T) @ layer.table.weight.T
    nll = F.cross_entropy(scores, target.ids[target.mask], reduction="none")  # (R,)
    spread = -scores.log_softmax(-1).mean(-1)
    nats = torch.stack([part.sum() for part in nll.split(lengths.tolist())])  # (B,)
    return ((1 - smoothing) * nll + smoothing * spread).sum(), nats, scores


@pytest.mark.parametrize("kind", ["untied", "tied"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("lengths", LENGTHS, ids=["one token", "padded", "over a chunk", "over a block"])
def test_loss_nats_and_gradients_are_those_of_full_scores(
    kind: str, smoothing: float, lengths: list[int], random_tokens: Callable[..., Tokens]
) -> None:
    layer, target = layers()[kind], random_tokens(lengths, V)
    assert isinstance(layer, nn.Module)
    if len(lengths) in (3, 5):
        assert sum(lengths) > (operations.CHUNK if len(lengths) == 3 else operations.BLOCK)
    features = torch.randn(sum(lengths), H, dtype=torch.float64, requires_grad=True)
    latent = torch.randn(len(lengths), L, dtype=torch.float64, requires_grad=True)
    wanted = [features, latent, *layer.parameters()]

    expected, expected_nats, scores = naive(layer, features, latent, target, smoothing)
    expected_gradients = torch.autograd.grad(3 * expected, wanted)
    loss, nats = layer.nll(features, latent, target, smoothing)
    gradients = torch.autograd.grad(3 * loss, wanted)

    logits = output.SentencePrediction("reconstruct", "en", features, latent, layer, target).logits()
    assert_close(logits, scores)
    assert_close(loss, expected)
    assert_close(nats, expected_nats)
    assert not nats.requires_grad
    for gradient, reference in zip(gradients, expected_gradients, strict=True):
        assert reference.abs().max() > 0
        assert_close(gradient, reference)


def test_a_language_scores_its_own_pieces_alone(random_tokens: Callable[..., Tokens]) -> None:
    """The loss and gradients equal those from all logits, if the logits of tokens that do not occur in the language are
    set to -inf. In the target, the unknown token replaces such tokens."""
    tied = layers()["tied"]
    assert isinstance(tied, TiedOutput)
    own, layer, target = torch.arange(V) % 3 > 0, output.LanguageOutput(tied, "en"), random_tokens([4, 9], V)
    own[[UNK, EOS]], own[[PAD, BOS]] = True, False
    features = torch.randn(4 + 9, H, dtype=torch.float64, requires_grad=True)
    latent = torch.randn(2, L, dtype=torch.float64, requires_grad=True)
    wanted = [features, latent, *tied.parameters()]
    before, _ = layer.nll(features, latent, target, 0.0)
    assert_close(before, naive(tied, features, latent, target, 0.0)[0])  # without `restrict`, all tokens have logits
    layer.restrict(torch.arange(V) % 3 > 0)

    seen = replace(target, ids=torch.where(own[target.ids], target.ids, UNK))
    assert (seen.ids != target.ids).any()
    scores = naive(tied, features, latent, target, 0.0)[2].masked_fill(~own, -torch.inf)
    expected = F.cross_entropy(scores, seen.ids[seen.mask], reduction="sum")
    expected_gradients = torch.autograd.grad(expected, wanted)
    loss, nats = layer.nll(features, latent, target, 0.0)
    logits = output.SentencePrediction("reconstruct", "en", features, latent, layer, target).logits()
    assert_close(logits, scores)
    assert_close(loss, expected)
    assert_close(nats.sum(), expected)
    for gradient, reference in zip(torch.autograd.grad(loss, wanted), expected_gradients, strict=True):
        assert_close(gradient, reference)
    smoothed, _ = layer.nll(features, latent, target, 0.1)
    spread = -scores[:, own].log_softmax(-1).mean(-1).sum()
    assert_close(smoothed, 0.9 * expected + 0.1 * spread)


@pytest.mark.parametrize("sentences", [2, 57])  # 57 have more than 2 * BLOCK tokens, one block in bf16
def test_in_bf16_loss_and_gradients_stay_near_and_in_float32(
    sentences: int, random_tokens: Callable[..., Tokens]
) -> None:
    layer, target = layers()["untied"], random_tokens([37] * sentences, V)
    assert isinstance(layer, nn.Module)
    layer = layer.float()
    features, latent = torch.randn(37 * sentences, H, requires_grad=True), torch.randn(sentences, L)
    wanted = [features, *layer.parameters()]
    exact, _ = layer.nll(features, latent, target, 0.1)
    expected = torch.autograd.grad(exact, wanted)
    with torch.autocast("cpu", torch.bfloat16):
        rough, nats = layer.nll(features, latent, target, 0.1)
    assert rough.dtype == nats.dtype == torch.float32
    torch.testing.assert_close(rough, exact, rtol=5e-3, atol=0)
    for gradient, reference in zip(torch.autograd.grad(rough, wanted), expected, strict=True):
        assert gradient.dtype == torch.float32
        assert (gradient - reference).norm() < 2e-2 * reference.norm()


WORDS, SYNTACTIC, SEMANTIC = 30, 3, 4


@pytest.fixture
def side(random_tokens: Callable[..., Tokens]) -> Tokens:
    return random_tokens([6, 4, 1], WORDS)  # the last sentence has only EOS


@pytest.fixture
def latent() -> torch.Tensor:
    return torch.randn(3, SYNTACTIC + SEMANTIC, generator=torch.Generator().manual_seed(0))


def test_a_bag_pays_for_each_of_its_words_whatever_their_order(side: Tokens, latent: torch.Tensor) -> None:
    torch.manual_seed(1)
    bag = BagOfWords(WORDS, SYNTACTIC + SEMANTIC, hidden=8, layers=3)
    prediction = bag("reconstruct", "a", latent, side)
    loss, nats = prediction.nll()
    log_p = bag.matrix(bag.perceptron(latent)).log_softmax(-1)
    log_p = log_p.tolist()
    expected = [-sum(log_p[row][token] for token in side.ids[row].tolist() if token > EOS) for row in range(3)]
    assert nats.tolist() == pytest.approx(expected, rel=1e-5)
    assert loss.item() == pytest.approx(sum(expected), rel=1e-5) and nats[2] == 0
    mixed = Tokens.pad([[*side.ids[0, [3, 1, 0, 4, 2]].tolist(), EOS]], "en")
    assert bag("reconstruct", "a", latent[:1], mixed).nll()[1].item() == pytest.approx(nats[0].item(), rel=1e-6)
    assert prediction.logits().shape == (11, WORDS)


def test_a_perceptron_has_as_many_layers_as_it_says() -> None:
    assert sum(isinstance(part, nn.Linear) for part in Perceptron(5, 8, 3).modules()) == 3
    for width, layers in ((0, 3), (8, 0)):
        with pytest.raises(UsageError, match=r"hidden_(dim|layers) 0 must be at least 1"):
            Perceptron(5, width, layers)


def places(predictor: PositionPredictor, latent: torch.Tensor, words: list[int]) -> float:
    """Compute the loss of a sentence by a loop over its words."""
    total = 0.0
    for place, word in enumerate(words[: predictor.scores.out_features]):
        read = torch.cat([predictor.table.weight[word], latent])
        scores = predictor.scores(predictor.perceptron(read[None]))[0, : len(words)]  # only the sentence's positions
        total -= scores.log_softmax(-1)[place].item()
    return total


@pytest.mark.parametrize("positions", [32, 5, 3])
def test_a_word_pays_for_its_place_among_those_of_its_sentence(
    side: Tokens, latent: torch.Tensor, positions: int
) -> None:
    torch.manual_seed(1)
    predictor = PositionPredictor(nn.Embedding(WORDS, 5), SYNTACTIC, hidden=8, layers=3, positions=positions)
    z = latent[:, :SYNTACTIC]
    loss, nats = predictor("a", z, side).nll()
    words = [[token for token in row if token > EOS] for row in side.ids.tolist()]
    expected = [places(predictor, each, own) for each, own in zip(z, words, strict=True)]
    assert nats.tolist() == pytest.approx(expected, rel=1e-5)
    assert loss.item() == pytest.approx(sum(expected), rel=1e-5)
    loss.backward()
    assert torch.isfinite(predictor.table.weight.grad).all()
    with pytest.raises(UsageError, match="positions 0 must be at least 1"):
        PositionPredictor(nn.Embedding(WORDS, 5), SYNTACTIC, 8, 3, positions=0)
