"""What is written and from what, with writers whose outputs are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from bgt_core.evaluation.fidelity.roles import LIKELIER, NAMED, RIGHT, places

import bgt_core
from bgt_core import DataError, UsageError
from bgt_core.contracts import EOS, LANGUAGE, SEMANTIC
from bgt_core.evaluation.fidelity import COPY, MODEL, NEAREST, RANDOM_TRAINING, Fidelity, fidelity
from bgt_core.evaluation.fidelity.measures import EXACT, LENGTH_OFF, MARK, NEGATION, NO_NEGATION, NUMBER
from bgt_core.evaluation.fidelity.plan import OWN, RANDOM, REFERENCE, SWAPPED, role_writings, writings
from bgt_core.generation.options import GREEDY
from bgt_core.generation.search import transfer
from bgt_core.generation.writer import Writer
from bgt_core.grammar import Pair
from bgt_core.grammar.roles import ACT, GIVE, KINDS, role_pairs

Rewrite = Callable[[str, str, str], str]


class Stub:
    """Latents that are row numbers; what it writes is `rewrite(source, style, language)`, its likelihood 1 nat for
    each word of the sentence that `rewrite` has at the same place."""

    langs = ("en", "fr")

    def __init__(self, rewrite: Rewrite, latents: Sequence[str] = (SEMANTIC, LANGUAGE)):
        self.rewrite, self.latents = rewrite, tuple(latents)
        self.texts: list[str] = []

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        start = len(self.texts)
        self.texts += sentences
        return np.arange(start, len(self.texts), dtype=np.float32)[:, None]

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """By the length of the sentences."""
        lengths = [np.array([len(self.texts[int(row)]) for row in side[:, 0]]) for side in (left, right)]
        return -np.abs(lengths[0][:, None] - lengths[1][None]).astype(float)

    def write(self, latents: Mapping[str, np.ndarray], *, lang: str) -> list[str]:
        styles = latents.get(LANGUAGE, latents[SEMANTIC])
        pairs = zip(latents[SEMANTIC][:, 0], styles[:, 0], strict=True)
        return [self.rewrite(self.texts[int(one)], self.texts[int(two)], lang) for one, two in pairs]

    def log_likelihood(self, latents: Mapping[str, np.ndarray], sentences: Sequence[str], *, lang: str) -> np.ndarray:
        written = self.write(latents, lang=lang)
        return np.array(
            [
                sum(one == two for one, two in zip(text.split(), sentence.split(), strict=False))
                for text, sentence in zip(written, sentences, strict=True)
            ],
            dtype=float,
        )


def copies(source: str, style: str, lang: str) -> str:
    return source


def bag_of_words(source: str, style: str, lang: str) -> str:
    return " ".join(sorted(source.lower().strip(".").split()))


@pytest.fixture(scope="module")
def columns(grammar: list[Pair]) -> dict[str, list[str]]:
    return {lang: [pair.texts[lang] for pair in grammar[:40]] for lang in ("en", "fr")}


def row(result: Fidelity, source: str, lang: str, manner: str, by: str = MODEL) -> Mapping[str, tuple]:
    (scores,) = [
        one.scores
        for one in result.written
        if (one.writing.source_lang, one.writing.lang, one.writing.manner, one.by) == (source, lang, manner, by)
    ]
    return scores


def test_a_writer_that_copies_is_exact_and_keeps_everything(columns: dict[str, list[str]]) -> None:
    result = fidelity(Stub(copies), columns, resamples=100, role_pairs=6)
    for lang in columns:
        for manner in (OWN, RANDOM):
            scores = row(result, lang, lang, manner)
            assert [scores[name].value for name in (EXACT, "chrF", "BLEU", NEGATION, NO_NEGATION)] == pytest.approx(
                [100] * 5
            )
        assert scores[MARK].value < 100 and scores[LENGTH_OFF].value > 0  # of another sentence
    assert row(result, "fr", "en", REFERENCE)[EXACT].value == 0
    own = [one for one in result.roles if one.writing.manner == OWN]
    assert [(one.kind, one.writing.lang) for one in own] == [
        (kind, lang) for lang in ("en", "fr") for kind in (GIVE, ACT)
    ]
    for one in own:
        assert [one.scores[name].value for name in (NAMED, RIGHT, LIKELIER)] == [100, 100, 100]
        assert one.scores[RIGHT].sentences == 3


def test_a_writer_of_the_style_is_exact_in_the_manner_of_the_reference_alone(columns: dict[str, list[str]]) -> None:
    result = fidelity(Stub(lambda source, style, lang: style), columns, resamples=100, role_pairs=4)
    assert row(result, "en", "fr", REFERENCE)[EXACT].value == 100
    assert row(result, "en", "fr", RANDOM)[EXACT].value < 10
    assert row(result, "en", "fr", RANDOM)[MARK].value == 100
    assert row(result, "en", "fr", RANDOM)[LENGTH_OFF].value == 0
    swapped = [one.scores for one in result.roles if one.writing.manner == SWAPPED]
    assert {(one[NAMED].value, one[RIGHT].value, one[LIKELIER].value) for one in swapped} == {(100, 0, 0)}


def test_pairs_whose_numbers_cannot_be_read_are_counted() -> None:
    columns = {"en": ["Dozens of men.", "Two men.", "A man."], "fr": ["Deux hommes.", "Deux hommes.", "Un quart."]}
    result = fidelity(Stub(copies), columns, resamples=100, role_pairs=0)
    assert result.unread == result.as_dict()["numbers_unread"] == 2
    assert row(result, "en", "fr", REFERENCE)[NUMBER].sentences == 1


def test_a_writer_that_drops_negations_keeps_none(columns: dict[str, list[str]]) -> None:
    def affirm(source: str, style: str, lang: str) -> str:
        return "yes." if lang == "en" else "oui."

    result = fidelity(Stub(affirm), columns, resamples=100, role_pairs=0)
    for lang in columns:
        assert (row(result, lang, lang, OWN)[NEGATION].value, row(result, lang, lang, OWN)[NO_NEGATION].value) == (
            0,
            100,
        )
    assert result.roles == []


def test_a_bag_of_words_is_right_in_half_of_the_minimal_pairs(columns: dict[str, list[str]]) -> None:
    result = fidelity(Stub(bag_of_words), columns, resamples=100, role_pairs=20)
    english = [one.scores for one in result.roles if (one.writing.lang, one.writing.source_lang) == ("en", "en")]
    for scores in english:
        assert (scores[NAMED].value, scores[RIGHT].value) == (100, 50)
        assert scores[LIKELIER].value == 50  # both are as likely, or one is from either's latents


def test_without_language_latents_there_is_no_manner(columns: dict[str, list[str]]) -> None:
    result = fidelity(Stub(copies, [SEMANTIC]), columns, resamples=100, role_pairs=2)
    assert {one.writing.manner for one in (*result.written, *result.roles)} == {OWN, REFERENCE}


def test_baselines_are_the_source_and_training_sentences(columns: dict[str, list[str]], grammar: list[Pair]) -> None:
    train = {lang: [pair.texts[lang] for pair in grammar[40:]] * 2 for lang in ("en", "fr")}
    stub = Stub(copies)
    result = fidelity(stub, columns, train=train, resamples=100, role_pairs=0)
    by = {one.by: one.texts for one in result.written if (one.writing.lang, one.writing.manner) == ("fr", REFERENCE)}
    assert list(by) == [MODEL, COPY, RANDOM_TRAINING, NEAREST]
    assert by[COPY] == columns["en"]
    assert set(by[RANDOM_TRAINING]) <= set(train["fr"]) and len(set(by[RANDOM_TRAINING])) > 20
    for text, source in zip(by[NEAREST], columns["en"], strict=True):
        assert abs(len(text) - len(source)) == min(abs(len(other) - len(source)) for other in train["fr"])
    assert {one.by for one in fidelity(stub, columns, resamples=100, role_pairs=0).written} == {MODEL, COPY}


def test_the_same_seed_draws_the_same(columns: dict[str, list[str]]) -> None:
    first, again, other = (
        fidelity(Stub(copies), columns, seed=seed, resamples=100, role_pairs=2) for seed in (1, 1, 2)
    )
    assert first.as_dict() == again.as_dict() != other.as_dict()


def test_a_random_style_is_never_its_own() -> None:
    for seed in range(20):
        for one in writings(("en", "fr"), 5, True, seed):
            drawn = one.styles == np.arange(5)
            assert drawn.all() if one.manner in (OWN, REFERENCE) else not drawn.any()
    assert [one.styles.tolist() for one in role_writings(("en",), 4, True)] == [[0, 1, 2, 3], [1, 0, 3, 2]]


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"en": ["a", "b"]}, UsageError, "expected two languages"),
        ({"en": ["a", "b"], "de": ["c", "d"]}, UsageError, "no language 'de'; it has en, fr"),
        ({"en": ["a", "b"], "fr": ["c"]}, DataError, "2 and 1 sentences"),
        ({"en": ["a"], "fr": ["c"]}, DataError, "1 pairs"),
    ],
)
def test_bad_input(columns: dict[str, list[str]], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fidelity(Stub(copies), columns)
    with pytest.raises(DataError, match="No training sentences in fr"):
        fidelity(Stub(copies), {"en": ["a", "b"], "fr": ["c", "d"]}, train={"en": ["e"], "fr": []})


def test_minimal_pairs_have_the_same_words_and_other_roles() -> None:
    pairs = role_pairs(60, seed=4)
    assert pairs[:20] == role_pairs(20, seed=4) != role_pairs(20, seed=5)
    assert [pair.kind for pair in pairs] == list(KINDS) * 30
    for pair in pairs:
        for lang, (one, two) in pair.texts.items():
            assert one != two and sorted(one.lower().rstrip(".").split()) == sorted(two.lower().rstrip(".").split())
            assert (places(one, pair.persons[lang]), places(two, pair.persons[lang])) == ("right", "wrong")
    assert len({text for pair in pairs for twins in pair.texts.values() for text in twins}) == 240
    with pytest.raises(UsageError, match="1,001"):
        role_pairs(1_001)


def test_who_does_it_stands_before_whom() -> None:
    assert places("The king thanks the nurse.", ("king", "nurse")) == "right"
    assert places("the king thanks the king and the nurse", ("king", "nurse")) is None
    assert places("the kings thank the nurse", ("king", "nurse")) is None


def test_a_model_writes_as_transfer_does_and_weighs_by_its_own_decoder(saved: Path, grammar: list[Pair]) -> None:
    bgt = bgt_core.load(saved, "cpu", "fp32")
    writer = Writer(bgt, GREEDY, max_length=12)
    sources = [pair.texts["en"] for pair in grammar[:5]]
    styles = [pair.texts["fr"] for pair in grammar[5:10]]
    latents = {
        SEMANTIC: writer.embed(sources, lang="en"),
        LANGUAGE: writer.embed(styles, lang="fr", latent=LANGUAGE),
    }
    expected = transfer(bgt, sources, styles, lang="fr", source_lang="en", search=GREEDY, max_length=12)
    assert writer.write(latents, lang="fr") == expected
    likelihoods = writer.log_likelihood(latents, styles, lang="fr")
    decoder = bgt.model.decoder("fr")
    for number, text in enumerate(styles):  # one piece at a time, as search reads them
        (ids,) = bgt.tokenizer.encode([text])
        joined = bgt.model.join({name: torch.tensor(rows[[number]]) for name, rows in latents.items()})
        with torch.no_grad():
            state, before, total = decoder.start(joined), EOS, 0.0
            for piece in ids:
                scores = decoder.step(torch.tensor([[before]]), state)[0, 0]
                total += scores.log_softmax(-1)[piece].item()
                before = piece
        assert likelihoods[number] == pytest.approx(total, abs=1e-3)


def test_a_model_without_a_decoder_is_refused() -> None:
    class Reader:
        model = torch.nn.Linear(1, 1)

    with pytest.raises(UsageError, match="no decoder"):
        Writer(Reader(), GREEDY)
