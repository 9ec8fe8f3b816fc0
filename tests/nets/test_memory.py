"""A memory as a decoder reads it, by hand; and what a semantic encoder binds in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bgt_core.contracts import EOS, Tokens
from bgt_core.errors import BgtError
from bgt_core.nets.binding import Binding
from bgt_core.nets.decoder import TransformerDecoder
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.layers import CrossAttention, make_embedding, shift_right, sinusoids
from bgt_core.nets.memory import LinearMemory, MemoryReader
from bgt_core.nets.output import TiedOutput
from bgt_core.nets.pooling import BoundPooling, SIFPooling
from bgt_core.nets.roles import RolePooling
from bgt_core.nets.transformer import EncoderLayer, Transformer
from tests.close import assert_close

Stir = Callable[[nn.Module], nn.Module]


def pooling() -> BoundPooling:
    torch.manual_seed(0)
    average, body = SIFPooling(torch.rand(30), 6), Transformer(make_embedding(30, 8), 1, 8, 2, 0.0)
    return BoundPooling(average, body, RolePooling([EncoderLayer(8, 8, 2, 0.0)], 6, 16), 10, 0.2, 0.3)


def test_the_bound_part_is_the_sum_of_states_turned_by_their_positions(
    random_tokens: Callable[..., Tokens], stirred: Stir
) -> None:
    reader, side = stirred(pooling()).double(), random_tokens([4, 2, 6], 30)
    layout = PackedLayout.of(side)
    bound = reader.bound(side, layout, reader.body.states(side, layout))
    for row, (ids, mask) in enumerate(zip(side.ids, side.mask, strict=True)):
        alone = Tokens.pad([ids[mask].tolist()], "en")
        states = reader.body.states(alone, PackedLayout.of(alone))
        total = torch.zeros(5, dtype=torch.complex128)
        for place, (token, state) in enumerate(zip(alone.ids[0], states, strict=True)):
            position = place + (reader.shift.weight @ state).item()
            vector = reader.lexical.weight @ reader.body.words.table.weight[token] * 8**0.5
            vector = vector + reader.compose.weight @ state
            total += torch.complex(vector[:5], vector[5:]) * torch.exp(1j * position * reader.binding.angles(vector))
        assert_close(bound[row], torch.cat([total.real, total.imag]))


def test_the_cosine_is_the_sum_of_the_parts_cosines_by_their_shares(random_tokens: Callable[..., Tokens]) -> None:
    vectors = pooling().double()(random_tokens([4, 6], 30))
    parts = [F.cosine_similarity(*vectors[:, units], dim=0) for units in (slice(6), slice(6, 16), slice(16, 32))]
    cosine = sum(share * part for share, part in zip((0.5, 0.2, 0.3), parts, strict=True))
    assert_close(F.cosine_similarity(*vectors, dim=0), cosine)
    assert_close(vectors.square().mean(1), torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize(("bound", "roles"), [(0.0, 0.3), (0.2, -0.1), (0.5, 0.5)])
def test_shares_that_leave_a_part_without_any_are_refused(bound: float, roles: float) -> None:
    average, body = SIFPooling(torch.rand(30), 6), Transformer(make_embedding(30, 8), 1, 8, 2, 0.0)
    with pytest.raises(BgtError, match=f"bound_share {bound} and roles_share {roles}: above 0, and together below 1"):
        BoundPooling(average, body, RolePooling([EncoderLayer(8, 8, 2, 0.0)], 6, 16), 10, bound, roles)


def test_the_same_words_in_another_order_are_another_sentence_for_the_composed_parts_alone() -> None:
    reader = pooling().eval()
    first, second = reader(Tokens.pad([[5, 6, 7, EOS], [7, 6, 5, EOS]], "en"))
    assert_close(first[:6], second[:6])
    assert (first[6:] - second[6:]).abs().max() > 0.1


def test_a_reader_unbinds_its_own_units_at_each_token_and_slot() -> None:
    torch.manual_seed(0)
    reader, cross = MemoryReader(first=3, bound=8, width=6, slots=5), CrossAttention(6, 2)
    latent, side = torch.randn(2, 12), Tokens.pad([[4, 5, EOS], [4, EOS]], "en")
    binding, memory = Binding(8), latent[:, 3:11]
    expected = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]  # row and position of each token
    own = torch.stack([binding.unbind(memory[row], torch.tensor(at)) for row, at in expected]) @ reader.own.weight.T
    layout = PackedLayout.of(side)
    assert_close(reader.at(latent, layout.columns, layout), own)
    (keys_values,) = reader.keys_values(latent, [cross])
    slots = torch.stack([binding.unbind(memory, torch.tensor(at)) for at in range(5)], dim=1) @ reader.slot.weight.T
    plain = cross.kv(slots + sinusoids(0, 5, slots))  # (B, S, 2 * H)
    assert keys_values.shape == (2, 2, 2, 5, 3)
    assert_close(keys_values.permute(1, 3, 0, 2, 4).flatten(2), plain)


def test_one_step_at_a_time_gives_the_scores_of_teacher_forcing(
    random_tokens: Callable[..., Tokens], stirred: Stir
) -> None:
    torch.manual_seed(0)
    table = make_embedding(20, 8)
    memory = MemoryReader(first=2, bound=6, width=8, slots=3)
    decoder = stirred(TransformerDecoder(table, TiedOutput(table, 9), 9, 2, 12, 2, 0.0, memory=memory)).double().eval()
    latent, side = torch.randn(3, 9, dtype=torch.float64), random_tokens([6, 6, 6], 20)
    whole = decoder("reconstruct", "en", latent, side).logits().view(3, 6, 20)
    state, read = decoder.start(latent), shift_right(side.ids)
    for place in range(3):
        assert_close(decoder.step(read[:, place : place + 1], state)[:, 0], whole[:, place])
    state.select(torch.tensor([2, 0]))
    for place in range(3, 6):
        assert_close(decoder.step(read[[2, 0], place : place + 1], state)[:, 0], whole[[2, 0], place])


def test_a_linear_memory_is_one_product_for_each_slot_and_one_for_all_tokens(stirred: Stir) -> None:
    memory, latent = stirred(LinearMemory(5, 8, 3)).double(), torch.randn(2, 5, dtype=torch.float64)
    slots = memory.states(latent)
    assert slots.shape == (2, 3, 8)
    for number in range(3):
        rows = slice(8 * number, 8 * number + 8)
        assert_close(slots[:, number], latent @ memory.slot.weight[rows].T + memory.slot.bias[rows])
    layout = PackedLayout.of(Tokens.pad([[4, 5, EOS], [6, EOS]], "en"))
    own = latent @ memory.own.weight.T + memory.own.bias
    assert_close(memory.at(latent, layout.columns, layout), own[[0, 0, 0, 1, 1]])


def test_a_decoder_with_a_linear_memory_writes_as_it_was_taught(stirred: Stir) -> None:
    """One step at a time gives the scores of teacher forcing; and gradients stay small where all is hidden."""
    table = make_embedding(20, 8)
    decoder = TransformerDecoder(table, TiedOutput(table, 5), 5, 2, 8, 2, 0.0, memory=LinearMemory(5, 8, 3))
    dropped = Tokens.pad([[4, 5, EOS]], "en")
    decoder.word_dropout = 1.0
    decoder("reconstruct", "en", torch.zeros(1, 5), dropped).nll()[0].backward()
    assert max(float(each.grad.abs().max()) for each in decoder.parameters() if each.grad is not None) < 1e3
    decoder, latent = stirred(decoder).double().eval(), torch.randn(1, 5, dtype=torch.float64)
    expected = decoder("reconstruct", "en", latent, dropped).logits()
    state = decoder.start(latent)
    steps = [decoder.step(torch.tensor([[token]]), state)[0, 0] for token in (EOS, 4, 5)]
    assert_close(torch.stack(steps), expected)
