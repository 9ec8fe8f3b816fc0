"""The language taken out of vectors, judged by probes of another library; closing marks, taken off and exchanged."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from bgt_core.contracts import EOS, Tokens
from bgt_core.nets.bound.erasing import ClosingMarks, WithoutLanguage
from tests.close import assert_close

LANGS = ["en", "fr", "de"]
WIDTH, ROWS = 12, 3_000
PARTS = [8, 4]


class Speaks(nn.Module):
    """Random vectors that lie elsewhere, and scatter otherwise, in each language."""

    width = WIDTH

    def __init__(self) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(1)
        self.random = random
        self.place = torch.randn(len(LANGS), WIDTH, generator=random)
        self.spread = torch.randn(len(LANGS), WIDTH, WIDTH, generator=random)

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
    """Share of held-out vectors whose language a linear probe names."""

    def half(start: int) -> tuple[np.ndarray, np.ndarray]:
        parts = [v[start::2].numpy() for v in vectors.values()]
        return np.vstack(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])

    return float(LogisticRegression(max_iter=2_000).fit(*half(0)).score(*half(1)))


def test_no_linear_probe_tells_the_language(trained: WithoutLanguage) -> None:
    assert told({lang: trained.body(sentences(lang)) for lang in LANGS}) > 0.9
    assert told({lang: trained(sentences(lang)) for lang in LANGS}) < 0.37  # chance is a third


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
    trained.means += 3  # the plane that stays is that of the means
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
    """One micro-batch: the vectors of each language."""
    for lang, vectors in sides.items():
        body.body = Same(vectors)
        body(sentences(lang, len(vectors)))
    body.compare_languages()


def test_each_translation_counts_alike() -> None:
    """Micro-batches of different sizes, and then more sentences than are remembered."""
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
    """Chat in English alone, and news in French and German: languages differ as translations do, wherever those lie."""
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
    assert_close(body.means[0], (40 * news + 20 * chat) / 100)  # 100 sentences, of which 40 are news


def test_the_sides_of_one_language_in_a_micro_batch_count_together() -> None:
    """A sentence and an altered one, say; the body gets the layout that it was asked with."""
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


def test_a_checkpoint_has_the_means_and_no_sums_of_an_update(trained: WithoutLanguage) -> None:
    assert list(trained.state_dict()) == ["means", "read", "directions"]


STOP, ASK, SHOUT, CAT, DOG = 4, 5, 6, 7, 8


@pytest.fixture
def marks() -> ClosingMarks:
    return ClosingMarks(torch.tensor([token in (STOP, ASK, SHOUT) for token in range(10)]))


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ([CAT, DOG, STOP], [CAT, DOG]),
        ([CAT, ASK, SHOUT], [CAT]),  # "cat?!"
        ([CAT, STOP, DOG], [CAT, STOP, DOG]),
        ([CAT, STOP, DOG, STOP], [CAT, STOP, DOG]),
        ([CAT], [CAT]),
        ([STOP, ASK], [STOP]),  # something stays
        ([STOP], [STOP]),
        ([], []),
    ],
)
def test_only_marks_at_the_end_are_taken_off(marks: ClosingMarks, sentence: list[int], expected: list[int]) -> None:
    side = Tokens.pad([[*sentence, EOS], [CAT, DOG, CAT, DOG, CAT, EOS]], "en")
    shorter = marks.remove(side)
    assert shorter.ids[0][shorter.mask[0]].tolist() == [*expected, EOS]
    assert torch.equal(shorter.ids[1], side.ids[1])
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
    assert 10 < min(ends.values()) < max(ends.values()) < 90  # of 100 full stops


def test_the_share_says_how_many_take_one(marks: ClosingMarks) -> None:
    side = Tokens.pad([[CAT, STOP, EOS], [CAT, ASK, EOS]] * 2_000, "en")
    torch.manual_seed(0)
    changed = (marks.exchange(side, 0.4).ids != side.ids).any(1).double().mean()
    assert abs(changed - 0.2) < 0.03  # half of the marks that are taken are the same
    assert torch.equal(marks.exchange(side, 0.0).ids, side.ids)
