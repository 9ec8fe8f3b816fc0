"""Vectors bound to positions and read back, against closed forms; a decoder's memory and roles, by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bgt_core.contracts import EOS, Tokens
from bgt_core.errors import BgtError
from bgt_core.nets import layers
from bgt_core.nets.bound.binding import (
    KEY_WIDTH,
    RELATIONS,
    Binding,
    BoundPooling,
    MemoryReader,
    RolePooling,
    TaggedDecoder,
)
from bgt_core.nets.decoder import TransformerDecoder
from bgt_core.nets.encoders import SIFPooling
from bgt_core.nets.layers import CrossAttention, EncoderLayer, Transformer, make_embedding, sinusoids
from bgt_core.nets.operations import PackedLayout, PaddedLayout
from bgt_core.nets.output import TiedOutput
from tests.close import FLOAT32, assert_close


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("position", [0.0, 1.0, 7.5, -3.25, 1_000.0])
def test_one_vector_is_read_back_from_any_position(position: float) -> None:
    binding, vector = Binding(16).double(), random(16)
    bound = binding.bind(vector, torch.tensor(position))
    assert_close(binding.unbind(bound, torch.tensor(position)), vector)
    assert_close(bound.norm(), vector.norm())


def test_binding_multiplies_complex_numbers_of_length_one() -> None:
    binding, vectors, positions = Binding(10).double(), random(4, 10), torch.tensor([0.0, 1.0, 2.5, 40.0])
    turns = torch.exp(1j * positions[:, None] * binding.angles(vectors))
    expected = torch.complex(*vectors.chunk(2, dim=-1)) * turns
    bound = torch.complex(*binding.bind(vectors, positions).chunk(2, dim=-1))
    assert_close(bound, expected)


def test_whole_positions_are_orthogonal() -> None:
    binding = Binding(32).double()
    distance = torch.arange(1, 16)[:, None]
    assert_close(torch.exp(1j * distance * binding.angles(torch.zeros(()))).mean(1), 0, FLOAT32, scale=1)


@pytest.mark.parametrize(("width", "at_least"), [(64, 0.3), (512, 0.99)])
def test_among_many_vectors_the_bound_one_is_found_the_better_the_wider(width: int, at_least: float) -> None:
    """Ten of 1,000 vectors are bound. What is unbound has a cosine of about 1 / sqrt(10) with the right vector, and
    with a wrong one 0 give or take 1 / sqrt(width)."""
    binding, words = Binding(width).double(), torch.nn.functional.normalize(random(1_000, width), dim=-1)
    chosen = torch.arange(10) * 7
    unbound = binding.unbind(binding.bind(words[chosen], torch.arange(10)).sum(0), torch.arange(10))
    cosines = torch.nn.functional.normalize(unbound, dim=-1) @ words.T
    assert (cosines.argmax(1) == chosen).double().mean() >= at_least
    right = cosines[torch.arange(10), chosen]
    assert abs(right.mean() - 1 / math.sqrt(10)) < 4 / math.sqrt(10 * width)


@pytest.mark.parametrize("width", [0, 7])
def test_a_width_without_pairs_is_refused(width: int) -> None:
    with pytest.raises(BgtError, match=f"composed width {width} must be an even number"):
        Binding(width)


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


def test_a_tag_is_a_part_of_the_latent(stirred: Stir, random_tokens: Callable[..., Tokens]) -> None:
    table = make_embedding(20, 8)
    decoder = stirred(TransformerDecoder(table, TiedOutput(table, 5), 5, 2, 12, 2, dropout=0.0)).double().eval()
    one, other = (TaggedDecoder(decoder, decoder.layer, 2).double() for _ in range(2))
    target, z = random_tokens([9, 4], 20), torch.randn(2, 3, dtype=torch.float64)
    expected = decoder("reconstruct", "en", torch.cat([z, one.tag.expand(2, -1)], dim=1), target).logits()
    assert_close(one("reconstruct", "en", z, target).logits(), expected)
    assert not torch.allclose(other("reconstruct", "en", z, target).logits(), expected)
    assert_close(one.step(torch.full((2, 1), EOS), one.start(z))[:, 0], expected[[0, 9]])
    assert one.decoder is other.decoder


@pytest.fixture
def average() -> SIFPooling:
    torch.manual_seed(1)
    return SIFPooling(torch.rand(30), 6).double()


@pytest.fixture
def roles(stirred: Stir) -> RolePooling:
    torch.manual_seed(0)
    return stirred(RolePooling([EncoderLayer(8, 8, 2, 0.0)], 6, 32)).double()  # type: ignore[return-value]


def pooled(roles: RolePooling, average: SIFPooling, side: Tokens, layout: PackedLayout) -> torch.Tensor:
    return roles(side, layout, average.words(side, layout))


def test_slots_and_relations_are_what_the_formulas_say(
    roles: RolePooling, average: SIFPooling, random_tokens: Callable[..., Tokens]
) -> None:
    side = random_tokens([4, 3, 6], 30)
    given = pooled(roles, average, side, PackedLayout.of(side))
    for row, (ids, mask) in enumerate(zip(side.ids, side.mask, strict=True)):
        alone = Tokens.pad([ids[mask].tolist()], "en")
        vectors = average.table.weight[alone.ids[0]]
        vectors = vectors / vectors.norm(dim=1, keepdim=True)
        states = roles.norm(roles.enter(vectors * 6**0.5)) + sinusoids(0, len(vectors), torch.zeros(8).double())
        words = alone.ids[0] != EOS
        states, vectors = roles.layers[0](states, PackedLayout.of(alone), None)[words], vectors[words]
        weights = average.rarity[alone.ids[0][words]]
        centred = vectors - (weights[:, None] * vectors).sum(0) / weights.sum()
        attention = roles.slots(states).softmax(0)  # (T, slots)
        slots = torch.stack(
            [sum(a * roles.filler(c) for a, c in zip(slot, centred, strict=True)) for slot in attention.T]
        )
        relations = []
        queries, keys = roles.pairs(states).view(-1, 2, RELATIONS, KEY_WIDTH).unbind(1)  # (T, relations, KEY_WIDTH)
        for p in range(RELATIONS):
            total = torch.zeros(4, dtype=torch.float64)
            for t in range(len(states)):
                share = (keys[:, p] @ queries[t, p] / KEY_WIDTH**0.5).softmax(0)
                gate = roles.gate(states[t])[p].sigmoid()
                total += gate * roles.head(centred[t]) * roles.dependent(share @ centred)
            relations.append(total)
        halves = [slots.flatten(), torch.cat(relations)]
        assert_close(given[row], torch.cat([half / half.norm() / 2**0.5 for half in halves]))


def test_padding_and_packing_change_nothing(
    roles: RolePooling, average: SIFPooling, random_tokens: Callable[..., Tokens]
) -> None:
    side = random_tokens([4, 2, 6], 30)
    padded = PaddedLayout.of_mask(side.mask)
    assert_close(pooled(roles, average, side, padded), pooled(roles, average, side, PackedLayout.of(side)))


@pytest.mark.parametrize("ids", [[], [7], [8, 8], [9] * 40])
def test_one_word_has_no_roles_however_often_it_stands(roles: RolePooling, average: SIFPooling, ids: list[int]) -> None:
    side = Tokens.pad([[*ids, EOS], [7, 8, EOS]], "en")
    vectors = pooled(roles.float(), average.float(), side, PackedLayout.of(side))
    vectors.square().sum().backward()
    assert not vectors[0].any() and vectors[1].norm().item() == pytest.approx(1)
    assert all(p.grad is None or p.grad.isfinite().all() for p in roles.parameters())


def test_blocks_of_a_long_text_change_nothing(
    roles: RolePooling, average: SIFPooling, random_tokens: Callable[..., Tokens], monkeypatch: pytest.MonkeyPatch
) -> None:
    side = random_tokens([40, 7, 23], 30)
    whole = pooled(roles, average, side, PackedLayout.of(side))
    monkeypatch.setattr(layers, "BLOCK_SCORES", 3 * 4 * 40 * 9)  # nine queries at once
    assert_close(pooled(roles, average, side, PackedLayout.of(side)), whole)


@pytest.mark.parametrize("units", [0, 8, 24])
def test_each_slot_and_relation_has_units(units: int) -> None:
    with pytest.raises(BgtError, match=f"roles_dim {units} must be a multiple of 16"):
        RolePooling([EncoderLayer(8, 8, 2, 0.0)], 4, units)
