"""Scores against sacrebleu called directly, and their intervals against a bootstrap of sentences themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import resample
from bgt_core.evaluation.writing import (
    BLEU_SCORE,
    CHRF_SCORE,
    DIGITS,
    EXACT,
    LENGTH_OFF,
    LENGTH_R,
    MARK,
    MARK_TAKEN,
    NAMES,
    NEGATION,
    NO_NEGATION,
    NUMBER,
    STYLE_R,
    bleu,
    chrf,
    corpus_measures,
    corpus_score,
    kept,
    latent_correlation,
    right_sentences,
    score_translations,
)
from bgt_core.grammar import Pair

Texts = list[str]


class Score(NamedTuple):
    value: float
    low: float
    high: float
    sentences: int


def measure(
    outputs: Texts, references: Texts, sources: Texts, styles: Texts, *, lang: str = "en", source_lang: str = "en",
    weights: np.ndarray | None = None, lowercase: bool = True,
    language_latents: tuple[np.ndarray, np.ndarray] | None = None,
) -> dict[str, Score]:  # fmt: skip
    """Every measure, with percentiles of the resamples; of shares the value alone."""
    n = len(outputs)
    weights = np.ones((1, n)) if weights is None else weights
    of_corpus = corpus_measures(
        outputs, references, styles, lang=lang, lowercase=lowercase, language_latents=language_latents
    )
    scores = {
        name: Score(float(score(np.ones((1, n)))[0]), *np.quantile(score(weights), [0.025, 0.975]), n)
        for name, score in of_corpus.items()
    }
    right = right_sentences(
        outputs, references, sources, styles, lang=lang, source_lang=source_lang, lowercase=lowercase
    )
    shares = {name: 100 * float(rows.mean()) for name, rows in right.items()}
    return scores | {name: Score(value, value, value, len(right[name])) for name, value in shares.items()}


@pytest.fixture
def texts(grammar: list[Pair]) -> tuple[Texts, Texts]:
    """80 references, and outputs that are wrong in words, order and case here and there."""
    references = [pair.texts["en"] for pair in grammar[:80]]
    rng = np.random.default_rng(0)
    outputs = []
    for number, text in enumerate(references):
        words = text.split()
        if number % 4:
            words[int(rng.integers(len(words)))] = "Zebra"
        if number % 5 == 0:
            words = words[::-1]
        outputs.append(" ".join(words).upper() if number % 3 == 0 else " ".join(words))
    return outputs, references


@pytest.mark.parametrize("lowercase", [True, False])
def test_chrf_and_bleu_are_sacrebleus(texts: tuple[Texts, Texts], lowercase: bool) -> None:
    outputs, references = texts
    weights = np.ones((3, len(outputs)))
    scores = measure(
        outputs, references, references, references, lang="en", source_lang="en", weights=weights, lowercase=lowercase
    )
    expected = sacrebleu.CHRF(lowercase=lowercase).corpus_score(outputs, [references]).score
    assert scores[CHRF_SCORE] == pytest.approx((expected, expected, expected, len(outputs)))
    expected = sacrebleu.corpus_bleu(outputs, [references], lowercase=lowercase).score
    assert scores[BLEU_SCORE] == pytest.approx((expected, expected, expected, len(outputs)))
    assert 0 < expected < 100
    exact = [
        one.lower() == two.lower() if lowercase else one == two for one, two in zip(outputs, references, strict=True)
    ]
    assert scores[EXACT].value == pytest.approx(100 * np.mean(exact))


def test_a_resample_is_the_score_of_the_drawn_sentences(texts: tuple[Texts, Texts]) -> None:
    outputs, references = texts
    weights = resample(np.random.default_rng(1), len(outputs), 4)
    for metric, direct in (
        (chrf(True), sacrebleu.CHRF(lowercase=True)),
        (bleu("en", True), sacrebleu.BLEU(lowercase=True)),
    ):
        draws = corpus_score(metric, outputs, references)(weights)
        for row, draw in zip(weights, draws, strict=True):
            drawn = np.repeat(np.arange(len(outputs)), row.astype(int))
            expected = direct.corpus_score([outputs[i] for i in drawn], [[references[i] for i in drawn]]).score
            assert draw == pytest.approx(expected)


def test_bleu_of_a_language_without_spaces_counts_characters() -> None:
    outputs, references = ["私は寿司を食べます。"], ["私は寿司を食べた。"]
    (value,) = corpus_score(bleu("ja", True), outputs, references)(np.ones((1, 1)))
    assert value == pytest.approx(sacrebleu.corpus_bleu(outputs, [references], tokenize="char").score)


def test_length_and_mark_are_compared_with_the_style() -> None:
    outputs = ["a b.", "a b c!", "a?", "a b c d."]
    styles = ["x y.", "x y z.", "x?", "x y z w v."]
    weights = np.ones((2, 4))
    scores = measure(outputs, outputs, outputs, styles, lang="en", source_lang="en", weights=weights)
    assert scores[LENGTH_R].value == pytest.approx(100 * np.corrcoef([2, 3, 1, 4], [2, 3, 1, 5])[0, 1])
    assert scores[LENGTH_OFF].value == pytest.approx(0.25)
    assert scores[MARK].value == pytest.approx(75)
    weights = resample(np.random.default_rng(0), 4, 40)
    scores = measure(outputs, outputs, outputs, styles, lang="en", source_lang="en", weights=weights)
    rows = [np.repeat([[2, 3, 1, 4], [2, 3, 1, 5]], row.astype(int), axis=1) for row in weights]
    off = [np.abs(one - two).mean() for one, two in rows]
    assert scores[LENGTH_OFF][1:3] == pytest.approx(tuple(np.quantile(off, [0.025, 0.975])))
    same = [np.corrcoef(row)[0, 1] if np.ptp(row, axis=1).all() else 0 for row in rows]
    assert scores[LENGTH_R][1:3] == pytest.approx(tuple(100 * np.quantile(same, [0.025, 0.975])))


def test_a_mark_is_taken_over_only_where_the_reference_has_another() -> None:
    outputs, references = ["a?", "b.", "c!", "d.", "E!"], ["a.", "b.", "c?", "d.", "e."]
    styles = ["x?", "x!", "x?", "x.", "x!"]
    scores = measure(outputs, references, references, styles, lang="en", source_lang="en", weights=np.ones((2, 5)))
    assert scores[MARK_TAKEN].sentences == 3
    assert scores[MARK_TAKEN].value == pytest.approx(100 * 2 / 3)
    lower = [text.lower() for text in outputs]
    given = measure(outputs, lower, lower, styles, lang="en", source_lang="en", weights=np.ones((2, 5)))
    assert given[EXACT].value == 100  # whatever the case
    with pytest.raises(ValueError, match=r"shorter|longer"):
        measure(outputs, [*lower, "f."], lower, styles, lang="en", source_lang="en", weights=np.ones((2, 5)))


def test_the_style_s_latent_correlates_with_the_one_read_from_the_output() -> None:
    rng = np.random.default_rng(0)
    styles, outputs = rng.normal(size=(2, 30, 5)) + np.arange(5)
    outputs += styles
    weights = resample(rng, 30, 4)
    value, *draws = latent_correlation(outputs, styles)(np.vstack([np.ones(30), weights]))
    left, right = outputs - outputs.mean(0), styles - styles.mean(0)
    assert value == pytest.approx(100 * np.corrcoef(left.ravel(), right.ravel())[0, 1])
    for draw, row in zip(draws, weights, strict=True):
        times = row.astype(int)
        one, two = (np.repeat(latent, times, axis=0).ravel() for latent in (left, right))
        assert draw == pytest.approx(100 * (one @ two) / np.sqrt((one @ one) * (two @ two)))
    texts = ["a."] * 30
    scores = measure(
        texts, texts, texts, texts, lang="en", source_lang="en", weights=weights, language_latents=(outputs, styles)
    )
    assert scores[STYLE_R].value == pytest.approx(value)


def test_each_answer_by_hand() -> None:
    rows = [
        ("I do not know Tom.", "Je ne connais pas Tom.", "tom"),
        ("I never saw 2 dogs in Paris.", "Je n'ai jamais vu 2 chiens à Paris.", "je n'ai pas vu 2 chats à Lyon."),
        ("I never saw 3 dogs.", "Je n'ai jamais vu 3 chiens.", "j'ai vu 4 chiens."),
        ("I see three dogs of Tom.", "Je vois trois chiens à Lyon.", "je vois trois chiens."),
        ("In 1963.", "En 1963.", "en 1963."),
    ]
    sources, references, outputs = (list(column) for column in zip(*rows, strict=True))
    assert kept(outputs, references, sources, "fr", "en") == {
        NEGATION: [False, True, False],
        NO_NEGATION: [True, True],
        NUMBER: [True, False, True, True],
        DIGITS: [True, False, True],
        NAMES: [True, False],
    }
    with pytest.raises(ValueError, match=r"shorter|longer"):
        kept(outputs, references, sources[:4], "fr", "en")


def test_what_no_sentence_has_is_not_measured() -> None:
    texts = ["A cat sleeps.", "A dog sleeps."]
    scores = measure(texts, texts, texts, texts, lang="en", source_lang="en", weights=np.ones((2, 2)))
    assert scores.keys() & {NEGATION, NO_NEGATION, NUMBER, DIGITS} == {NO_NEGATION}
    scores = measure(texts, texts, texts, texts, lang="xx", source_lang="xx", weights=np.ones((2, 2)))
    assert not scores.keys() & {NEGATION, NO_NEGATION, NUMBER, DIGITS}


REFERENCES = [
    "Der Hund schläft im Haus .",
    "Die Katze sieht den Hund .",
    "Wir gehen nach Hause , sagt er .",
    "Es regnet .",
]


OURS = [
    "der Hund schläft im Garten .",
    "Die Katze sieht einen Hund .",
    "Wir gehen nach Hause , sagt sie .",
    "Es regnet .",
]


SOURCES = ["The dog sleeps .", "The cat sees Hund .", "We go home , says er .", "It rains ."]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize(("lang", "tokenize"), [("de", "13a"), ("ja", "char")])
def test_each_score_and_resample_is_sacrebleus(lowercase: bool, lang: str, tokenize: str) -> None:
    given = score_translations(OURS, REFERENCES, SOURCES, lang=lang, lowercase=lowercase, resamples=30, seed=3)
    assert [score.name for score in given] == ["chrF", "BLEU"]
    weights = resample(np.random.default_rng(3), 4, 30).astype(int)
    for score, metric in zip(
        given, (CHRF(lowercase=lowercase), BLEU(lowercase=lowercase, force=True, tokenize=tokenize)), strict=True
    ):
        assert score.score.value == pytest.approx(metric.corpus_score(OURS, [REFERENCES]).score)
        assert score.copied == pytest.approx(metric.corpus_score(SOURCES, [REFERENCES]).score)
        draws = []
        for row in weights:
            ours, references = (np.repeat(texts, row).tolist() for texts in (OURS, REFERENCES))
            draws.append(metric.corpus_score(ours, [references]).score)
        low, high = np.quantile(draws, [0.025, 0.975])
        assert (score.score.low, score.score.high) == pytest.approx((low, high))
        assert score.score.sentences == 4
        assert score.signature == str(metric.get_signature())


def test_one_sentence_has_no_interval() -> None:
    with pytest.raises(DataError, match=r"^1 translations to score; expected 2 or more\.$"):
        score_translations(OURS[:1], REFERENCES[:1], SOURCES[:1], lang="de")
