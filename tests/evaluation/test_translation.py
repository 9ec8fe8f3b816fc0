"""Scores of translations against sacrebleu called directly, resample by resample."""

from __future__ import annotations

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import resample
from bgt_core.evaluation.fidelity.measures import corpus_score
from bgt_core.evaluation.translation import score_translations

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


def test_case_counts_and_resamples_are_a_thousand_from_seed_0_unless_said() -> None:
    given = score_translations(OURS, REFERENCES, SOURCES, lang="de")
    assert given == score_translations(OURS, REFERENCES, SOURCES, lang="de", lowercase=False, resamples=2_000, seed=0)
    draws = corpus_score(CHRF(), OURS, REFERENCES)(resample(np.random.default_rng(0), 4, 1_000))
    assert (given[0].score.low, given[0].score.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))
    assert given[0].score.value == pytest.approx(CHRF().corpus_score(OURS, [REFERENCES]).score)


def test_one_sentence_has_no_interval() -> None:
    with pytest.raises(DataError, match=r"^1 translations to score; expected 2 or more\.$"):
        score_translations(OURS[:1], REFERENCES[:1], SOURCES[:1], lang="de")


def test_two_translations_have_scores() -> None:
    (chrf, bleu) = score_translations(OURS[1:3], REFERENCES[1:3], SOURCES[1:3], lang="de", resamples=20)
    assert chrf.score.sentences == bleu.score.sentences == 2
    assert chrf.score.low <= chrf.score.value <= chrf.score.high
