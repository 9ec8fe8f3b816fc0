"""The networks of the recipe bgt-bound equal closed forms and loops; no linear probe can predict the language from
their vectors; the right closing punctuation marks are removed and exchanged."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from bgt_core.contracts import EOS, Tokens
from bgt_core.errors import BgtError
from bgt_core.nets import bound, layers
from bgt_core.nets.bound import KEY_WIDTH, RELATIONS, Binding, BoundPooling, ClosingMarks, RolePooling, WithoutLanguage
from bgt_core.nets.decoder import TransformerDecoder
from bgt_core.nets.encoders import SIFPooling
from bgt_core.nets.layers import CrossAttention, EncoderLayer, Transformer, make_embedding, sinusoids
from bgt_core.nets.operations import PackedLayout, PaddedLayout
from bgt_core.nets.output import TiedOutput
from tests.close import FLOAT32, assert_close


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_binding_multiplies_complex_numbers_of_length_one() -> None:
    binding, vectors, positions = Binding(10).double(), random(4, 10), torch.tensor([0.0, 1.0, 2.5, 40.0])
    turns = torch.exp(1j * positions[:, None] * binding.angles(vectors))
    expected = torch.complex(*vectors.chunk(2, dim=-1)) * turns
    bound = torch.complex(*binding.bind(vectors, positions).chunk(2, dim=-1))
    assert_close(bound, expected)
    assert_close(binding.unbind(binding.bind(vectors, positions), positions), vectors)


def test_whole_positions_are_orthogonal() -> None:
    binding = Binding(32).double()
    distance = torch.arange(1, 16)[:, None]
    assert_close(torch.exp(1j * distance * binding.angles(torch.zeros(()))).mean(1), 0, FLOAT32, scale=1)


Stir = Callable[[nn.Module], nn.Module]


def pooling(bound: int = 10, roles: int = 16, bound_share: float = 0.2, roles_share: float = 0.3) -> BoundPooling:
    torch.manual_seed(0)
    average, body = SIFPooling(torch.rand(30), 6), Transformer(make_embedding(30, 8), 1, 8, 2, 0.0)
    relate = RolePooling([EncoderLayer(8, 8, 2, 0.0)], 6, roles)
    return BoundPooling(average, body, relate, bound, bound_share, roles_share)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bound": 7}, r"bound_dim must be even and at least 2 \(got 7\)"),
        ({"roles": 24}, "roles_dim 24 must be a multiple of 16"),
        ({"bound_share": 0.0}, "bound_share 0.0 and roles_share 0.3 must be above 0, and their sum below 1"),
        ({"bound_share": 0.5, "roles_share": 0.5}, "must be above 0, and their sum below 1"),
    ],
)
def test_impossible_sizes_and_shares_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BgtError, match=message):
        pooling(**settings)


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


def test_a_reader_unbinds_its_own_units_at_each_token_and_slot() -> None:
    torch.manual_seed(0)
    reader, cross = bound.MemoryReader(first=3, bound=8, width=6, slots=5), CrossAttention(6, 2)
    latent, side = torch.randn(2, 12), Tokens.pad([[4, 5, EOS], [4, EOS]], "en")
    binding, memory = Binding(8), latent[:, 3:11]
    expected = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]  # (sentence, position) of each token
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
    one, other = (bound.TaggedDecoder(decoder, decoder.layer, 2).double() for _ in range(2))
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


@pytest.mark.parametrize("ids", [[], [7], [8, 8], [9] * 40])
def test_one_word_has_no_roles_however_often_it_stands(roles: RolePooling, average: SIFPooling, ids: list[int]) -> None:
    side = Tokens.pad([[*ids, EOS], [7, 8, EOS]], "en")
    vectors = pooled(roles.float(), average.float(), side, PackedLayout.of(side))
    vectors.square().sum().backward()
    assert not vectors[0].any() and vectors[1].norm().item() == pytest.approx(1)
    assert all(p.grad is None or p.grad.isfinite().all() for p in roles.parameters())


def test_padding_and_blocks_of_a_long_text_change_nothing(
    roles: RolePooling, average: SIFPooling, random_tokens: Callable[..., Tokens], monkeypatch: pytest.MonkeyPatch
) -> None:
    side = random_tokens([40, 7, 23], 30)
    whole = pooled(roles, average, side, PackedLayout.of(side))
    assert_close(pooled(roles, average, side, PaddedLayout.of_mask(side.mask)), whole)
    monkeypatch.setattr(layers, "BLOCK_SCORES", 3 * 4 * 40 * 9)  # small enough for only 9 queries per block
    assert_close(pooled(roles, average, side, PackedLayout.of(side)), whole)


LANGS = ["en", "fr", "de"]
WIDTH, ROWS = 12, 3_000
PARTS = [8, 4]


class Speaks(nn.Module):
    """A network that returns random vectors, whose mean and covariance depend on the language."""

    width = WIDTH

    def __init__(self) -> None:
        super().__init__()
        self.random = torch.Generator().manual_seed(1)
        self.place = torch.randn(len(LANGS), WIDTH, generator=self.random)
        self.spread = torch.randn(len(LANGS), WIDTH, WIDTH, generator=self.random)

    def forward(self, side: Tokens, layout: None = None) -> Tensor:
        row = LANGS.index(side.lang)
        return torch.randn(len(side.ids), WIDTH, generator=self.random) @ self.spread[row] + 3 * self.place[row]


def sentences(lang: str, count: int = ROWS) -> Tokens:
    return Tokens.pad([[7, EOS]] * count, lang)


@pytest.fixture
def trained() -> WithoutLanguage:
    body = WithoutLanguage(Speaks(), LANGS)
    for _ in range(60):
        for lang in LANGS:
            body(sentences(lang))
        body.compare_languages()
        body.settle(body.seen)
    return body.eval()


def told(vectors: dict[str, Tensor]) -> float:
    """Return the accuracy of a linear probe that predicts the language of held-out vectors."""

    def half(start: int) -> tuple[np.ndarray, np.ndarray]:
        parts = [v[start::2].numpy() for v in vectors.values()]
        return np.vstack(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])

    return float(LogisticRegression(max_iter=2_000).fit(*half(0)).score(*half(1)))


def test_no_linear_probe_tells_the_language(trained: WithoutLanguage) -> None:
    assert told({lang: trained.body(sentences(lang)) for lang in LANGS}) > 0.9
    assert told({lang: trained(sentences(lang)) for lang in LANGS}) < 0.37  # chance is 1/3


def test_a_frozen_body_keeps_its_means(trained: WithoutLanguage) -> None:
    trained.body.place = nn.Parameter(trained.body.place)
    before = {name: value.clone() for name, value in trained.state_dict().items()}
    for requires_grad in (False, True):
        trained.train().requires_grad_(requires_grad)
        trained(sentences("en", 10))
        trained.compare_languages()
        trained.settle(trained.seen.detach())
        kept = [torch.equal(value, before[name]) for name, value in trained.state_dict().items() if "body" not in name]
        assert all(kept) != requires_grad


def test_only_the_directions_between_the_means_are_lost(trained: WithoutLanguage) -> None:
    assert_close(trained.directions @ trained.directions.T, torch.eye(2))
    trained.means += 3  # shifts all means alike, so that the directions between them stay
    trained.body = Same(torch.randn(50, WIDTH))
    change = trained(sentences("en", 50)) - trained.body.vectors
    assert torch.linalg.matrix_rank(change - change.mean(0)) == 2
    between = trained.means - trained.means.mean(0)
    assert_close(trained(sentences("en", 50)) @ between.T, (trained.means.mean(0) @ between.T).expand(50, 3))


def test_parts_get_back_the_length_that_they_had(trained: WithoutLanguage) -> None:
    vectors = torch.randn(50, WIDTH)
    trained.body = Same(vectors)
    erased = trained(sentences("en", 50))
    trained.parts = PARTS
    for kept, before, after in zip(
        *(each.split(PARTS, 1) for each in (trained(sentences("en", 50)), vectors, erased)), strict=True
    ):
        assert_close(kept.norm(dim=1), before.norm(dim=1))
        assert_close(nn.functional.cosine_similarity(kept, after), torch.ones(50))


class Same(nn.Module):
    def __init__(self, vectors: Tensor):
        super().__init__()
        self.width, self.vectors = vectors.shape[1], vectors

    def forward(self, side: Tokens, layout: None = None) -> Tensor:
        return self.vectors


def test_an_untrained_model_and_one_of_one_language_change_nothing() -> None:
    vectors = torch.randn(5, WIDTH)
    for langs in (["en"], LANGS):
        body = WithoutLanguage(Same(vectors), langs)
        assert torch.equal(body(sentences("en", 5)), vectors)
    assert torch.equal(body.eval()(sentences("fr", 5)), vectors)


def read(body: WithoutLanguage, **sides: Tensor) -> None:
    """Run a micro-batch through the network; `sides` maps each language to the vectors of its sentences."""
    for lang, vectors in sides.items():
        body.body = Same(vectors)
        body(sentences(lang, len(vectors)))
    body.compare_languages()


def test_each_translation_counts_alike() -> None:
    """All pairs of translations count equally in the means, even if micro-batches differ in size and fill `memory`."""
    batches = [torch.randn(2, rows, WIDTH) + rows for rows in (5, 1, 30)]
    body = WithoutLanguage(Same(batches[0][0]), ["en", "fr"], memory=36)

    def apart() -> Tensor:
        return body.means[1] - body.means[0]

    for english, french in batches:
        read(body, en=english, fr=french)
        body.settle(body.seen)
    differences = torch.cat([french - english for english, french in batches])
    assert_close(apart(), differences.mean(0), scale=body.means.max().item())
    read(body, en=batches[-1][0], fr=batches[-1][1])
    body.settle(body.seen)
    expected = differences.mean(0) * 6 / 36 + differences[6:].mean(0) * 30 / 36
    assert_close(apart(), expected, scale=body.means.max().item())


def test_topics_of_one_language_do_not_move_languages_apart() -> None:
    """Sentences on topics that only English has (here chats) must not change the differences between language means."""
    chat, news = torch.randn(2, WIDTH)
    french, german = torch.randn(2, WIDTH)
    body = WithoutLanguage(Same(chat[None]), LANGS, memory=50)
    for _ in range(400):
        topics = torch.randn(20, WIDTH)
        topics -= topics.mean(0)
        read(body, en=topics, fr=topics + french)
        read(body, fr=topics + french + news, de=topics + german + news)
        read(body, en=topics + chat)
        body.settle(body.seen)
    assert_close(body.means[1:] - body.means[:1], torch.stack([french, german]))
    assert_close(body.means[0], (40 * news + 20 * chat) / 100)  # 40 of the 100 vectors contain `news`, 20 `chat`


def test_the_sides_of_one_language_in_a_micro_batch_count_together() -> None:
    """Original and altered sentences are encoded in two calls, but have one mean. Each call passes on its layout."""
    asked = []

    class Asked(Same):
        def forward(self, side: Tokens, layout: object = None) -> Tensor:
            asked.append((side.lang, layout))
            return super().forward(side)

    english, french = torch.randn(2, 6, WIDTH)
    body, layout = WithoutLanguage(Same(english), ["en", "fr"]), object()
    for lang, vectors in (("en", english[:2]), ("en", english[2:]), ("fr", french)):
        body.body = Asked(vectors)
        body(sentences(lang, len(vectors)), layout)  # type: ignore[arg-type]
    body.compare_languages()
    body.settle(body.seen)
    assert_close(body.means, torch.stack([english.mean(0), french.mean(0)]))
    assert asked == [("en", layout), ("en", layout), ("fr", layout)]


STOP, ASK, SHOUT, CAT, DOG = 4, 5, 6, 7, 8


@pytest.fixture
def marks() -> ClosingMarks:
    return ClosingMarks(torch.tensor([token in (STOP, ASK, SHOUT) for token in range(10)]))


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ([CAT, DOG, STOP], [CAT, DOG]),
        ([CAT, ASK, SHOUT], [CAT]),  # "cat?!" becomes "cat"
        ([CAT, STOP, DOG, STOP], [CAT, STOP, DOG]),
        ([STOP, ASK], [STOP]),  # the first token is never removed
        ([], []),
    ],
)
def test_only_marks_at_the_end_are_taken_off(marks: ClosingMarks, sentence: list[int], expected: list[int]) -> None:
    side = Tokens.pad([[*sentence, EOS], [CAT, DOG, CAT, DOG, CAT, EOS]], "en")
    shorter = marks.remove(side)
    expected_side = Tokens.pad([[*expected, EOS], side.ids[1].tolist()], "en")
    assert torch.equal(shorter.flat_index, expected_side.flat_index)
    assert torch.equal(shorter.ids, expected_side.ids)


def test_marks_are_exchanged_among_sentences_that_end_in_one(marks: ClosingMarks) -> None:
    sentences = [[CAT, STOP], [DOG, ASK], [CAT, DOG, SHOUT], [CAT], [DOG, ASK, SHOUT], [STOP]] * 100
    side = Tokens.pad([[*sentence, EOS] for sentence in sentences], "en")
    torch.manual_seed(0)
    given = marks.exchange(side, 1.0)
    assert torch.equal(given.mask, side.mask)
    rows = [ids[mask].tolist()[:-1] for ids, mask in zip(given.ids, side.mask, strict=True)]
    for before, after in zip(sentences, rows, strict=True):
        alone = before in ([CAT], [DOG, ASK, SHOUT], [STOP])
        assert after == before if alone else after[:-1] == before[:-1] and after[-1] in (STOP, ASK, SHOUT)
    ends = Counter(row[-1] for row in rows if row in ([CAT, STOP], [CAT, ASK], [CAT, SHOUT]))
    assert 10 < min(ends.values()) < max(ends.values()) < 90  # before the exchange, all 100 ended in STOP
