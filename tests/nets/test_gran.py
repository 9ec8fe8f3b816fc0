"""The gated recurrent average against the paper's equations in a plain loop, and what padding must not change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from bgt_core.contracts import EOS, UNK, Tokens
from bgt_core.nets.fast.packing import PackedLayout, PaddedLayout
from bgt_core.nets.gran import GRAN, PeepholeLSTM
from bgt_core.nets.layers import make_embedding
from bgt_core.nets.pooling import MeanPooling
from tests.close import assert_close

V, H = 19, 5
LENGTHS = [30, 9, 1, 14, 2]


def body(dropout: float = 0.0) -> GRAN:
    torch.manual_seed(0)
    made = GRAN(make_embedding(V, H), dropout)
    with torch.no_grad():
        for parameter in made.parameters():  # away from the start, biases too
            parameter += 0.4 * torch.randn(parameter.shape)
    return made.double()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def by_hand(ours: GRAN, tokens: list[int]) -> np.ndarray:
    """One sentence, token by token, by the equations as they are printed."""
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


def test_it_is_the_paper_s(random_tokens: Callable[..., Tokens]) -> None:
    ours, side = body(), random_tokens(LENGTHS, V)
    side.ids[0, 3] = side.ids[1, 0] = UNK
    expected = [by_hand(ours, ids[mask].tolist()) for ids, mask in zip(side.ids, side.mask, strict=True)]
    assert_close(ours(side), np.stack(expected))


def test_the_peepholes_are_seen(random_tokens: Callable[..., Tokens]) -> None:
    """Each of the three moves the state: a plain LSTM would pass no test of the equations by chance."""
    ours, side = body(), random_tokens([6], V)
    before = ours(side)
    for number in range(3):
        other = body()
        with torch.no_grad():
            other.lstm.peepholes[number] = 0
        assert (other(side) - before).abs().max() > 1e-4


@pytest.mark.parametrize("layout", [PackedLayout.of, lambda side: PaddedLayout.of_mask(side.mask)])
def test_padding_changes_nothing(
    layout: Callable[[Tokens], PackedLayout], random_tokens: Callable[..., Tokens]
) -> None:
    """Sentences of very different lengths are computed in blocks, and one without padding as it stands."""
    ours, side = body(dropout=0.3).eval(), random_tokens(LENGTHS, V)
    assert len(PackedLayout.of(side).length_blocks) > 1
    together = ours(side, layout(side))
    for row, length in enumerate(LENGTHS):
        alone = Tokens.of(side.ids[row : row + 1, :length], side.mask[row : row + 1, :length], "en")
        assert_close(ours(alone, layout(alone))[0], together[row])


def test_gradients_are_those_of_sentences_alone(random_tokens: Callable[..., Tokens]) -> None:
    ours, side = body(), random_tokens(LENGTHS, V)
    target = torch.randn(len(LENGTHS), H, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    (ours(side) * target).sum().backward()
    together = {name: value.grad.clone() for name, value in ours.named_parameters()}
    ours.zero_grad()
    for row, length in enumerate(LENGTHS):
        alone = Tokens.of(side.ids[row : row + 1, :length], side.mask[row : row + 1, :length], "en")
        (ours(alone) * target[row]).sum().backward()
    for name, value in ours.named_parameters():
        assert_close(value.grad, together[name])


@pytest.mark.parametrize("training", [False, True])
def test_with_a_gate_of_1_it_is_the_plain_mean_exactly(training: bool, random_tokens: Callable[..., Tokens]) -> None:
    side = random_tokens(LENGTHS, V)
    gated = GRAN(torch.nn.Embedding(V, H), dropout=0.3).train(training)
    plain = MeanPooling(gated.table, dropout=0.3).train(training)
    with torch.no_grad():
        gated.gate_words.weight.zero_()
        gated.gate_states.weight.zero_()
        gated.gate_words.bias.fill_(100.0)  # the sigmoid of which is 1 in single precision
    vectors = []
    for each in (gated, plain):
        torch.manual_seed(1)
        vectors.append(each(side))
    assert torch.equal(*vectors)
    assert vectors[0][[0, 1, 3]].any(1).all()


def test_it_reads_the_order_of_pieces_and_dropout_acts_in_training(random_tokens: Callable[..., Tokens]) -> None:
    ours, side = body(dropout=0.3).eval(), random_tokens([6], V)
    swapped = Tokens.of(side.ids[:, [1, 0, 2, 3, 4, 5]], side.mask, "en")
    assert not torch.equal(swapped.ids, side.ids)
    assert (ours(swapped) - ours(side)).abs().max() > 1e-4
    assert torch.equal(ours(side), ours(side))
    ours.train()
    assert not torch.equal(ours(side), ours(side))


def test_weights_start_as_in_the_released_code() -> None:
    torch.manual_seed(0)
    lstm = PeepholeLSTM(60, 60)
    for weight in (lstm.inputs.weight, lstm.recurrence, lstm.peepholes):
        assert weight.std().item() == pytest.approx(0.1, rel=0.15)
        assert abs(weight.mean().item()) < 0.03
    assert not lstm.inputs.bias.any()
