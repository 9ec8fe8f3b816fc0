"""The decoder whose first cell is the latent: against torch's LSTM, in search, and what word dropout hides."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from bgt_core.contracts import EOS, Tokens
from bgt_core.errors import UsageError
from bgt_core.nets.layers import make_embedding
from bgt_core.nets.lstm_decoder import FirstCellDecoder
from bgt_core.nets.output import PlainOutput

V, H, L = 23, 6, 5
LENGTHS = [4, 7, 1]


def decoder(word_dropout: float = 0.4) -> FirstCellDecoder:
    torch.manual_seed(0)
    made = FirstCellDecoder(make_embedding(V, H), PlainOutput.untied(V, L), L, 0.0, word_dropout).double()
    with torch.no_grad():  # away from where they start
        for parameter in (made.first_hidden, made.hidden_word):
            if parameter is not None:
                parameter.normal_()
    return made


def test_it_is_torchs_lstm_from_that_cell(random_tokens: Callable[..., Tokens]) -> None:
    ours, side = decoder().eval(), random_tokens(LENGTHS, V)
    z = torch.randn(len(LENGTHS), L, dtype=torch.float64)
    prediction = ours("reconstruct", "en", z, side)
    rows = []
    for row, length in enumerate(LENGTHS):
        hidden, cell = ours.first_hidden, z[row]
        for piece in [EOS, *side.ids[row, : length - 1].tolist()]:
            gates = ours.lstm.weight_ih_l0 @ ours.table.weight[piece] + ours.lstm.bias_ih_l0
            gates = gates + ours.lstm.weight_hh_l0 @ hidden + ours.lstm.bias_hh_l0
            enter, forget, new, leave = gates.chunk(4)
            cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
            hidden = leave.sigmoid() * cell.tanh()
            rows.append(hidden)
    torch.testing.assert_close(prediction.features, torch.stack(rows), rtol=1e-10, atol=1e-12)


def test_search_says_what_training_says(random_tokens: Callable[..., Tokens]) -> None:
    ours, side = decoder().eval(), random_tokens([6, 6], V)
    z = torch.randn(2, L, dtype=torch.float64)
    at_once = ours("reconstruct", "en", z, side).logits().view(2, 6, V)
    state, piece = ours.start(z), torch.full((2, 1), EOS)
    for position in range(6):
        torch.testing.assert_close(ours.step(piece, state)[:, 0], at_once[:, position])
        piece = side.ids[:, position : position + 1]


def test_word_dropout_hides_that_share_of_pieces_but_never_the_start() -> None:
    ours = decoder(0.4).train()
    ids = torch.randint(4, V, (400, 50))
    ids[:, 0] = EOS
    torch.manual_seed(1)
    hidden = (ours.inputs(ids, torch.zeros(400, L)) == ours.hidden_word).all(-1)  # (400, 50)
    assert not hidden[:, 0].any()
    assert hidden[:, 1:].double().mean().item() == pytest.approx(0.4, abs=0.02)
    assert hidden[:, 1:].double().mean(1).std() > 0.03  # each piece is drawn by itself, not each step for all
    assert not (ours.eval().inputs(ids, torch.zeros(400, L)) == ours.hidden_word).all(-1).any()


def test_the_latent_enters_by_the_first_cell_alone(random_tokens: Callable[..., Tokens]) -> None:
    ours, side = decoder().eval(), random_tokens(LENGTHS, V)
    with torch.no_grad():
        ours.lstm.bias_ih_l0[L : 2 * L] = -1e4  # the forget gate is shut
        scores = [ours("reconstruct", "en", torch.randn(3, L).double(), side).logits() for _ in range(2)]
    torch.testing.assert_close(*scores)


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_is_from_0_to_below_1(share: float) -> None:
    with pytest.raises(UsageError, match="word_dropout"):
        FirstCellDecoder(nn.Embedding(V, H), PlainOutput.untied(V, L), L, 0.0, share)
