"""LSTMs against torch's own on packed sequences, and what padding must not change."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bgt_core.contracts import Tokens
from bgt_core.errors import BgtError
from bgt_core.nets.layers import make_embedding
from bgt_core.nets.lstm import BiLSTM, FinalStates, LastState
from tests.close import assert_close

V, H = 19, 8
LENGTHS = [3, 11, 1, 6]


def body(layers: int = 1, dropout: float = 0.0) -> BiLSTM:
    torch.manual_seed(0)
    return BiLSTM(make_embedding(V, H), layers, dropout).double()


def torchs(ours: BiLSTM) -> nn.LSTM:
    """The same weights in torch's bidirectional LSTM."""
    lstm = nn.LSTM(H, H // 2, len(ours.forward_layers), batch_first=True, bidirectional=True).double()
    with torch.no_grad():
        for suffix, layers in (("", ours.forward_layers), ("_reverse", ours.backward_layers)):
            for number, layer in enumerate(layers):
                for name, value in layer.named_parameters():
                    getattr(lstm, name.replace("l0", f"l{number}{suffix}")).copy_(value)
    return lstm


@pytest.mark.parametrize("layers", [1, 2])
def test_it_is_the_mean_of_torchs_states_on_packed_sentences(layers: int, random_tokens: Callable[..., Tokens]) -> None:
    ours, side = body(layers), random_tokens(LENGTHS, V)
    packed = pack_padded_sequence(ours.table(side.ids), torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(torchs(ours)(packed)[0], batch_first=True)  # zero at padding
    expected = states.sum(1) / torch.tensor(LENGTHS)[:, None]
    assert_close(ours(side), expected)


def test_padding_changes_nothing(random_tokens: Callable[..., Tokens]) -> None:
    ours, side = body(2, dropout=0.3).eval(), random_tokens(LENGTHS, V)
    together = ours(side)
    for row, length in enumerate(LENGTHS):
        alone = ours(Tokens.of(side.ids[row : row + 1, :length], side.mask[row : row + 1, :length], "en"))
        assert_close(alone[0], together[row])


def test_it_reads_the_order_of_pieces_and_dropout_acts_in_training(random_tokens: Callable[..., Tokens]) -> None:
    ours, side = body(dropout=0.3).eval(), random_tokens([6], V)
    swapped = Tokens.of(side.ids[:, [1, 0, 2, 3, 4, 5]], side.mask, "en")
    assert not torch.equal(swapped.ids, side.ids)
    assert (ours(swapped) - ours(side)).abs().max() > 1e-4
    assert torch.equal(ours(side), ours(side))
    ours.train()
    assert not torch.equal(ours(side), ours(side))


def test_sizes_that_make_no_body_are_refused() -> None:
    with pytest.raises(BgtError, match="width 15 must be even"):
        BiLSTM(make_embedding(V, 15), 1, 0.0)
    with pytest.raises(BgtError, match="encoder_layers 0"):
        BiLSTM(make_embedding(V, H), 0, 0.0)


def test_the_last_state_is_torchs_on_packed_sequences(random_tokens: Callable[..., Tokens]) -> None:
    torch.manual_seed(0)
    ours = LastState(make_embedding(V, H)).double()
    side = random_tokens([5, 1, 9, 2], V)
    embedded = pack_padded_sequence(ours.table(side.ids), side.mask.sum(1), batch_first=True, enforce_sorted=False)
    theirs = ours.lstm(embedded)[1][0][0]
    assert_close(ours(side), theirs)
    alone = random_tokens([5, 1, 9, 2], V)
    longer = Tokens.pad([row[mask].tolist() for row, mask in zip(alone.ids, alone.mask, strict=True)], "en", 20)
    assert_close(ours(longer), theirs)


def test_final_states_are_torchs_on_packed_sentences(random_tokens: Callable[..., Tokens]) -> None:
    torch.manual_seed(0)
    ours, side = FinalStates(make_embedding(V, H), 5).double(), random_tokens(LENGTHS, V)
    lstm = nn.LSTM(H, 5, batch_first=True, bidirectional=True).double()
    with torch.no_grad():
        for suffix, layer in (("", ours.forward_lstm), ("_reverse", ours.backward_lstm)):
            for name, value in layer.named_parameters():
                getattr(lstm, name + suffix).copy_(value)
    packed = pack_padded_sequence(ours.table(side.ids), torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    _, (hidden, _) = lstm(packed)  # (2, B, 5)
    assert_close(ours(side), torch.cat([hidden[0], hidden[1]], 1))
    assert ours.width == 10
