"""Roles against a second implementation, sentence by sentence and token by token."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from bgt_core.contracts import EOS, Tokens
from bgt_core.errors import BgtError
from bgt_core.nets import layers
from bgt_core.nets.bound.roles import KEY_WIDTH, RELATIONS, RolePooling
from bgt_core.nets.layers import EncoderLayer, sinusoids
from bgt_core.nets.packing import PackedLayout, PaddedLayout
from bgt_core.nets.pooling import SIFPooling
from tests.close import assert_close

Stir = Callable[[nn.Module], nn.Module]


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


def test_two_words_that_change_places_change_the_vector(roles: RolePooling, average: SIFPooling) -> None:
    side = Tokens.pad([[7, 8, 9, EOS], [9, 8, 7, EOS], [7, 8, 9, EOS]], "en")
    first, swapped, again = pooled(roles, average, side, PackedLayout.of(side))
    assert (first - swapped).norm() > 0.1
    assert_close(first, again)


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
