"""Scores of translations against sacrebleu called directly, resample by resample."""

from __future__ import annotations

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import resample
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
    pairs = OURS[:2], REFERENCES[:2], SOURCES[:2]
    given = score_translations(*pairs, lang="de")
    assert given == score_translations(*pairs, lang="de", lowercase=False, resamples=1_000, seed=0)
    assert given[0].score.value < score_translations(*pairs, lang="de", lowercase=True, resamples=100)[0].score.value
    weights = resample(np.random.default_rng(0), 3, 1_000)
    three = score_translations(OURS[:3], REFERENCES[:3], SOURCES[:3], lang="de")[0].score
    metric = CHRF()
    draws = [metric.corpus_score(np.repeat(OURS[:3], row).tolist(), [np.repeat(REFERENCES[:3], row).tolist()]).score
             for row in np.unique(weights, axis=0).astype(int)]  # fmt: skip
    counts = np.unique(weights, axis=0, return_counts=True)[1]
    assert (three.low, three.high) == pytest.approx(np.quantile(np.repeat(draws, counts), [0.025, 0.975]).tolist())


def test_one_sentence_has_no_interval() -> None:
    with pytest.raises(DataError, match=r"^1 translations to score; expected 2 or more\.$"):
        score_translations(OURS[:1], REFERENCES[:1], SOURCES[:1], lang="de")
