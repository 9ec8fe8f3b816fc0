"""Scores of generated text equal sacrebleu's, and their intervals are quantiles over resamples of the sentences."""

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from bgt_core.errors import DataError
from bgt_core.evaluation import writing
from bgt_core.evaluation.bootstrap import resample


def right(
    outputs: list[str], references: list[str], sources: list[str], styles: list[str], lang: str = "en"
) -> dict[str, list[float]]:
    rows = writing.right_sentences(outputs, references, sources, styles, ("en", lang))
    return {name: hits.tolist() for name, hits in rows.items()}


def test_chrf_bleu_and_exact_matches_are_those_of_the_lower_cased_texts() -> None:
    outputs, references = [*OURS, "ES REGNET ."], [*REFERENCES, "Es regnet ."]
    one = np.ones((1, len(outputs)))
    scores = writing.corpus_measures(outputs, references, references, "en")
    expected = sacrebleu.CHRF(lowercase=True).corpus_score(outputs, [references]).score
    assert 0 < expected < 100 and scores[writing.CHRF_SCORE](one)[0] == pytest.approx(expected)
    expected = sacrebleu.corpus_bleu(outputs, [references], lowercase=True).score
    assert scores[writing.BLEU_SCORE](one)[0] == pytest.approx(expected)
    assert right(outputs, references, references, references)[writing.EXACT] == [0, 0, 0, 1, 1]


def test_length_and_mark_are_compared_with_the_style() -> None:
    outputs, styles = ["a b.", "a b c!", "a?", "a b c d."], ["x y.", "x y z.", "x?", "x y z w v."]
    weights = np.concatenate([np.ones((1, 4)), resample(np.random.default_rng(0), 4, 40)])
    scores = writing.corpus_measures(outputs, outputs, styles, "en")
    both = scores[writing.LENGTH_OFF](weights), scores[writing.LENGTH_R](weights)
    for row, off, r in zip(weights, *both, strict=True):
        one, two = np.repeat([[2, 3, 1, 4], [2, 3, 1, 5]], row.astype(int), axis=1)
        assert off == pytest.approx(np.abs(one - two).mean())
        assert r == pytest.approx(100 * np.corrcoef(one, two)[0, 1] if np.ptp(one) and np.ptp(two) else 0)
    references = ["a b.", "a b c.", "a.", "a b c d."]
    shown = right(outputs, references, outputs, styles)
    assert shown[writing.MARK] == [1, 0, 1, 1]
    assert shown[writing.MARK_TAKEN] == [1]  # reference and style sentence end differently only in the third row


def test_latents_of_outputs_and_styles_correlate_as_numpy_says() -> None:
    rng = np.random.default_rng(0)
    styles, outputs = rng.normal(size=(2, 30, 5)) + np.arange(5)
    outputs += styles
    weights = resample(rng, 30, 4)
    value, *draws = writing.latent_correlation(outputs, styles)(np.vstack([np.ones(30), weights]))
    left, right = outputs - outputs.mean(0), styles - styles.mean(0)
    assert value == pytest.approx(100 * np.corrcoef(left.ravel(), right.ravel())[0, 1])
    for draw, row in zip(draws, weights, strict=True):
        times = row.astype(int)
        one, two = (np.repeat(latent, times, axis=0).ravel() for latent in (left, right))
        assert draw == pytest.approx(100 * (one @ two) / np.sqrt((one @ one) * (two @ two)))


def test_scores_of_sentences_by_hand() -> None:
    rows = [
        ("I do not know Tom.", "Je ne connais pas Tom.", "tom"),
        ("I never saw 2 dogs in Paris.", "Je n'ai jamais vu 2 chiens à Paris.", "je n'ai pas vu 2 chats à Lyon."),
        ("I never saw 3 dogs.", "Je n'ai jamais vu 3 chiens.", "j'ai vu 4 chiens."),
        ("I see three dogs of Tom.", "Je vois trois chiens à Lyon.", "je vois trois chiens."),
        ("In 1963.", "En 1963.", "en 1963."),
    ]
    sources, references, outputs = (list(column) for column in zip(*rows, strict=True))
    shown = right(outputs, references, sources, references, "fr")
    expected = {
        writing.NEGATION: [False, True, False],
        writing.NO_NEGATION: [True, True],
        writing.NUMBER: [True, False, True, True],
        writing.DIGITS: [True, False, True],
        writing.NAMES: [True, False],
    }
    assert {name: shown[name] for name in expected} == expected


def test_a_property_that_no_sentence_has_is_not_measured() -> None:
    texts = ["A cat sleeps.", "A dog sleeps."]
    assert right(texts, texts, texts, texts).keys() & {*writing.KEPT} == {writing.NO_NEGATION}


ROWS = [  # each row: (reference, output, source)
    ("Der Hund schläft im Haus .", "der Hund schläft im Garten .", "The dog sleeps ."),
    ("Die Katze sieht den Hund .", "Die Katze sieht einen Hund .", "The cat sees Hund ."),
    ("Wir gehen nach Hause , sagt er .", "Wir gehen nach Hause , sagt sie .", "We go home , says er ."),
    ("Es regnet .", "Es regnet .", "It rains ."),
]
REFERENCES, OURS, SOURCES = (list(column) for column in zip(*ROWS, strict=True))


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize(("lang", "tokenize"), [("de", "13a"), ("ja", "char")])
def test_each_score_and_resample_is_sacrebleus(lowercase: bool, lang: str, tokenize: str) -> None:
    given = writing.score_translations(OURS, REFERENCES, SOURCES, lang=lang, lowercase=lowercase, resamples=30, seed=3)
    assert [score.name for score in given] == ["chrF", "BLEU"]
    weights = resample(np.random.default_rng(3), 4, 30).astype(int)
    metrics = CHRF(lowercase=lowercase), BLEU(lowercase=lowercase, force=True, tokenize=tokenize)
    for score, metric in zip(given, metrics, strict=True):
        assert score.score.value == pytest.approx(metric.corpus_score(OURS, [REFERENCES]).score)
        assert score.copied == pytest.approx(metric.corpus_score(SOURCES, [REFERENCES]).score)
        drawn = [[np.repeat(texts, row).tolist() for texts in (OURS, REFERENCES)] for row in weights]
        draws = [metric.corpus_score(ours, [references]).score for ours, references in drawn]
        low, high = np.quantile(draws, [0.025, 0.975])
        assert (score.score.low, score.score.high) == pytest.approx((low, high))
        assert score.signature == str(metric.get_signature())
    with pytest.raises(DataError, match=r"^1 translations to score; expected 2 or more translations\.$"):
        writing.score_translations(OURS[:1], REFERENCES[:1], SOURCES[:1], lang="de")
