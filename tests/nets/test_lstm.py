"""LSTM encoders equal torch's LSTM on packed sequences; LSTM decoders equal loops over time steps."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from bgt_core.contracts import EOS, Tokens
from bgt_core.errors import BgtError
from bgt_core.nets.layers import make_embedding
from bgt_core.nets.lstm import BiLSTM, FinalStates, FirstCellDecoder, LastState, TwoLatentDecoder
from bgt_core.nets.output import PerceptronOutput, PlainOutput
from tests.close import assert_close

V, H = 19, 8
LENGTHS = [3, 11, 1, 6]


def torchs(forward: Sequence[nn.LSTM], backward: Sequence[nn.LSTM]) -> nn.LSTM:
    """Return torch's bidirectional LSTM with the weights of our forward and backward layers."""
    lstm = nn.LSTM(H, forward[0].hidden_size, len(forward), batch_first=True, bidirectional=True).double()
    with torch.no_grad():
        for suffix, layers in (("", forward), ("_reverse", backward)):
            for number, layer in enumerate(layers):
                for name, value in layer.named_parameters():
                    getattr(lstm, name.replace("l0", f"l{number}{suffix}")).copy_(value)
    return lstm


def packed(body: nn.Module, side: Tokens) -> PackedSequence:
    """Look up token vectors in the model's table; return them as torch's `PackedSequence`."""
    return pack_padded_sequence(body.table(side.ids), side.mask.sum(1), batch_first=True, enforce_sorted=False)


@pytest.mark.parametrize("layers", [1, 2])
def test_it_is_the_mean_of_torchs_states(layers: int, random_tokens: Callable[..., Tokens]) -> None:
    ours, side = BiLSTM(make_embedding(V, H), layers, 0.0).double(), random_tokens(LENGTHS, V)
    lstm = torchs([*ours.forward_layers], [*ours.backward_layers])
    states, _ = pad_packed_sequence(lstm(packed(ours, side))[0], batch_first=True)  # padding has states of 0
    expected = states.sum(1) / torch.tensor(LENGTHS)[:, None]
    assert_close(ours(side), expected)


def test_an_encoder_without_layers_is_refused() -> None:
    with pytest.raises(BgtError, match="encoder_layers 0"):
        BiLSTM(make_embedding(V, H), 0, 0.0)


def test_the_last_state_is_torchs_on_packed_sequences(random_tokens: Callable[..., Tokens]) -> None:
    torch.manual_seed(0)
    ours = LastState(make_embedding(V, H)).double()
    side = random_tokens([5, 1, 9, 2], V)
    theirs = ours.lstm(packed(ours, side))[1][0][0]
    assert_close(ours(side), theirs)


def test_final_states_are_torchs_on_packed_sentences(random_tokens: Callable[..., Tokens]) -> None:
    torch.manual_seed(0)
    ours, side = FinalStates(make_embedding(V, H), 5).double(), random_tokens(LENGTHS, V)
    _, (hidden, _) = torchs([ours.forward_lstm], [ours.backward_lstm])(packed(ours, side))  # (2, B, 5)
    assert_close(ours(side), torch.cat([hidden[0], hidden[1]], 1))
    assert ours.width == 10


def first_cell() -> FirstCellDecoder:
    torch.manual_seed(0)
    made = FirstCellDecoder(make_embedding(V, H), PlainOutput.untied(V, L), L, 0.0, word_dropout=0.4).double()
    with torch.no_grad():  # as these parameters are initially 0, errors in their use would not be noticed
        made.first_hidden.normal_(), made.hidden_word.normal_()  # type: ignore[union-attr]
    return made


def test_a_decoder_is_torchs_lstm_from_that_cell(random_tokens: Callable[..., Tokens]) -> None:
    ours, side = first_cell().eval(), random_tokens(LENGTHS, V)
    z = torch.randn(len(LENGTHS), L, dtype=torch.float64)
    prediction = ours("reconstruct", "en", z, side)
    lstm = nn.LSTMCell(H, L).double()
    lstm.load_state_dict({name.removesuffix("_l0"): value for name, value in ours.lstm.state_dict().items()})
    states = []
    for row, length in enumerate(LENGTHS):
        hidden, cell = ours.first_hidden, z[row]
        for token in [EOS, *side.ids[row, : length - 1].tolist()]:
            hidden, cell = lstm(ours.table.weight[token], (hidden, cell))
            states.append(hidden)
    assert_close(prediction.features, torch.stack(states))


def test_word_dropout_hides_that_share_of_pieces_but_never_the_start() -> None:
    ours = first_cell().train()
    ids = torch.randint(4, V, (400, 50))
    ids[:, 0] = EOS
    torch.manual_seed(1)
    hidden = (ours.inputs(ids, torch.zeros(400, L)) == ours.hidden_word).all(-1)  # (400, 50)
    assert not hidden[:, 0].any()
    assert hidden[:, 1:].double().mean().item() == pytest.approx(0.4, abs=0.02)
    assert hidden[:, 1:].double().mean(1).std() > 0.03  # sentences differ in their share of hidden tokens
    assert not (ours.eval().inputs(ids, torch.zeros(400, L)) == ours.hidden_word).all(-1).any()


SYNTACTIC, SEMANTIC, L = 3, 4, 5


@pytest.fixture
def side(random_tokens: Callable[..., Tokens]) -> Tokens:
    return random_tokens([6, 4, 1], V)  # the last sentence has no token but EOS


@pytest.fixture
def latent() -> torch.Tensor:
    return torch.randn(3, SYNTACTIC + SEMANTIC, generator=torch.Generator().manual_seed(0))


def two_latents(words: bool) -> TwoLatentDecoder:
    torch.manual_seed(2)
    layer = PerceptronOutput(V, 8, SEMANTIC, 8, 3)
    return TwoLatentDecoder(nn.Embedding(V, 5) if words else None, layer, SYNTACTIC, 8, 0.0)


@pytest.mark.parametrize("words", [True, False])
def test_a_step_at_a_time_the_scores_are_those_of_the_whole_sentence(
    side: Tokens, latent: torch.Tensor, words: bool
) -> None:
    model = two_latents(words)
    prediction = model("reconstruct", "a", latent, side)
    logits, nats = prediction.logits(), prediction.nll()[1]
    state, stepped = model.start(latent), []
    for previous in [torch.full((3,), EOS), *side.ids.T[:-1]]:
        stepped.append(model.step(previous[:, None], state)[:, 0])
    packed = torch.stack(stepped, 1).flatten(0, 1)[side.flat_index]
    assert_close(packed, logits)
    cost = nn.functional.cross_entropy(logits, side.ids.flatten()[side.flat_index], reduction="none")
    expected = [part.sum().item() for part in cost.split(side.mask.sum(1).tolist())]
    assert nats.tolist() == pytest.approx(expected, rel=1e-5)


def test_the_first_latent_enters_the_lstm_and_the_second_the_output(side: Tokens, latent: torch.Tensor) -> None:
    model = two_latents(words=True)
    syntactic, semantic = (latent + torch.eye(7)[unit] for unit in (0, 6))
    plain, *changed = (model("reconstruct", "a", each, side) for each in (latent, syntactic, semantic))
    features = [not torch.equal(each.features, plain.features) for each in changed]
    biases = [
        not torch.equal(model.layer.scorer(each).latent_bias, model.layer.scorer(latent).latent_bias)
        for each in (syntactic, semantic)
    ]
    assert features == [True, False] and biases == [False, True]
