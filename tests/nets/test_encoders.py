"""Averages of token vectors are those computed by hand, and GRAN equals a loop over its paper's equations."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.special import expit as sigmoid

from bgt_core.contracts import EOS, UNK, Tokens
from bgt_core.nets.bound import BoundPooling, RolePooling
from bgt_core.nets.encoders import GRAN, MeanPooling, ResidualPooling, SharedVarianceHead, SIFPooling
from bgt_core.nets.layers import EncoderLayer, Transformer, make_embedding
from bgt_core.nets.operations import PackedLayout, PaddedLayout
from tests.close import assert_close


def test_rare_pieces_count_more_and_the_end_counts_nothing() -> None:
    probabilities = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.5, 0.0005, 0.1])
    average = SIFPooling(probabilities, 3, smooth=5e-4)
    table = average.table.weight.detach().double().numpy()
    direction = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    weight = 5e-4 / (5e-4 + probabilities.double().numpy())
    assert weight[5] == pytest.approx(0.5)
    pooled = average(Tokens.pad([[4, 5, 5, EOS], [6, EOS], [EOS]], "en"))
    two = (weight[4] * direction[4] + 2 * weight[5] * direction[5]) / 3
    expected = 3**0.5 * np.stack([two, weight[6] * direction[6], np.zeros(3)])  # sqrt(3): vectors have 3 units
    assert_close(pooled, expected)


def test_a_plain_mean_leaves_out_the_end_and_what_is_unknown() -> None:
    mean = MeanPooling(torch.nn.Embedding(7, 3))
    table = mean.table.weight.detach()
    pooled = mean(Tokens.pad([[4, 5, UNK, 5, EOS], [6, EOS], [EOS], [UNK, EOS]], "en"))
    expected = torch.stack([(table[4] + 2 * table[5]) / 3, table[6], torch.zeros(3), torch.zeros(3)])
    assert_close(pooled, expected)


def test_trained_weights_begin_as_sif_and_only_those_of_words_in_the_text_change() -> None:
    torch.manual_seed(0)
    probabilities = torch.rand(9)
    fixed, trained = SIFPooling(probabilities, 4), SIFPooling(probabilities, 4, trained=True)
    trained.load_state_dict(fixed.state_dict(), strict=False)
    side = Tokens.pad([[4, 5, 5, EOS], [6, EOS]], "en")
    torch.testing.assert_close(trained(side), fixed(side), rtol=0, atol=0)

    trained(side).square().sum().backward()
    assert trained.rarity.grad.nonzero().flatten().tolist() == [4, 5, 6]  # type: ignore[union-attr]


def test_a_corrected_average_begins_as_the_average(random_tokens: Callable[..., Tokens]) -> None:
    average = SIFPooling(torch.rand(30), 6)
    both = ResidualPooling(average, Transformer(make_embedding(30, 8), 2, 8, 2, 0.0))
    side = random_tokens([2, 9, 1, 5], 30)
    assert_close(both(side), average(side))
    with torch.no_grad():
        both.correction.weight.normal_()
    assert_close(both(side), average(side) + both.body(side) @ both.correction.weight.T)


@pytest.mark.parametrize("kind", ["mean", "average", "residual", "bound"])
def test_only_the_tokens_of_a_given_layout_are_read(
    kind: str, random_tokens: Callable[..., Tokens], stirred: Callable[[torch.nn.Module], torch.nn.Module]
) -> None:
    """A layout that omits the last three tokens of each sentence gives the same vectors as the shortened sentences."""
    torch.manual_seed(0)
    average, body = SIFPooling(torch.rand(30), 6), Transformer(make_embedding(30, 8), 1, 8, 2, 0.0)
    make: dict[str, Callable[[], torch.nn.Module]] = {
        "mean": lambda: MeanPooling(torch.nn.Embedding(30, 8)),
        "average": lambda: average,
        "residual": lambda: ResidualPooling(average, body),
        "bound": lambda: BoundPooling(average, body, RolePooling([EncoderLayer(8, 8, 2, 0.0)], 6, 16), 10, 0.2, 0.3),
    }
    pooling, side = stirred(make[kind]()).double(), random_tokens([8, 6], 30)
    shown = side.mask & (torch.arange(8) < side.mask.sum(1, keepdim=True) - 3)
    layout = PackedLayout((2, 8), shown.flatten().nonzero()[:, 0], shown)
    short = Tokens.pad([side.ids[0, :5].tolist(), side.ids[1, :3].tolist()], "en")
    assert_close(pooling(side, layout), pooling(short))
    assert (pooling(side, layout) - pooling(side)).abs().max() > 1e-3


V, H = 19, 5
LENGTHS = [30, 9, 1, 14, 2]


def by_hand(ours: GRAN, tokens: list[int]) -> np.ndarray:
    """Encode a sentence by the paper's equations, token by token."""
    weights = {name: value.numpy() for name, value in ours.state_dict().items()}
    of_input, of_state, bias = (
        dict(zip("iofc", np.split(weights[f"lstm.{name}"], 4), strict=True))
        for name in ("inputs.weight", "recurrence", "inputs.bias")
    )
    peephole = dict(zip("iof", weights["lstm.peepholes"], strict=True))
    hidden = cell = np.zeros(H)
    gated = []
    for token in tokens:
        x = weights["table.weight"][token]
        z = {gate: of_input[gate] @ x + of_state[gate] @ hidden + bias[gate] for gate in "iofc"}
        entering = sigmoid(z["i"] + peephole["i"] * cell)
        staying = sigmoid(z["f"] + peephole["f"] * cell)
        cell = staying * cell + entering * np.tanh(z["c"])
        hidden = sigmoid(z["o"] + peephole["o"] * cell) * np.tanh(cell)
        gate = sigmoid(
            weights["gate_words.weight"] @ x + weights["gate_states.weight"] @ hidden + weights["gate_words.bias"]
        )
        if token not in (EOS, UNK):
            gated.append(x * gate)
    return np.mean(gated, axis=0) if gated else np.zeros(H)


def test_the_gated_average_is_the_paper_s(
    random_tokens: Callable[..., Tokens], stirred: Callable[[torch.nn.Module], torch.nn.Module]
) -> None:
    """The gated average equals a loop, even if lengths differ so much that a packed layout has several blocks."""
    ours, side = stirred(GRAN(make_embedding(V, H))).double(), random_tokens(LENGTHS, V)
    side.ids[0, 3] = side.ids[1, 0] = UNK
    expected = [by_hand(ours, ids[mask].tolist()) for ids, mask in zip(side.ids, side.mask, strict=True)]
    assert len(PackedLayout.of(side).length_blocks) > 1
    for layout in (PackedLayout.of(side), PaddedLayout.of_mask(side.mask)):
        assert_close(ours(side, layout), np.stack(expected))


def test_a_spread_head_keeps_the_mean_and_has_one_variance_for_all() -> None:
    head = SharedVarianceHead(6, log_variance=-3.0)
    x = torch.randn(2, 6)
    posterior = head(x)
    assert torch.equal(posterior.mean, x)
    assert (posterior.log_variance == -3).all() and posterior.log_variance.shape == (2, 6)
    posterior.kl().sum().backward()
    expected = (math.exp(-3) - 1) / 2 * 2  # two sentences times dKL/dv = (exp(v) - 1) / 2; v is the log-variance
    assert_close(head.log_variance.grad, torch.full((6,), expected))
