"""How close translations are to references: chrF and BLEU of the whole corpus, sacrebleu's, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import interval, resample
from bgt_core.evaluation.fidelity.measures import BLEU_SCORE, CHRF_SCORE, LEVEL, Score, bleu, bootstrapped, chrf


class TranslationScore(NamedTuple):
    """One measure of N translations."""

    name: str  # chrF, BLEU
    score: Score
    copied: float  # what the sources themselves would score: the baseline
    signature: str  # how sacrebleu computed it, as papers quote it


def score_translations(
    translations: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str],
    *,
    lang: str,
    lowercase: bool = False,
    resamples: int = 1_000,
    seed: int = 0,
) -> list[TranslationScore]:
    """chrF and BLEU of N translations into `lang`, as they are or lower-cased, intervals from resampled sentences.

    BLEU is over sacrebleu's words, or characters where `lang` writes no spaces. DataError for fewer than two sentences.
    """
    if len(references) < 2:
        raise DataError(f"{len(references)} translations to score; expected 2 or more.")
    weights = resample(np.random.default_rng(seed), len(references), resamples)
    scores = []
    for name, metric in ((CHRF_SCORE, chrf(lowercase)), (BLEU_SCORE, bleu(lang, lowercase))):
        value, draws = bootstrapped(metric, translations, references, weights)
        copied = metric.corpus_score(sources, [references]).score  # makes the signature, too
        low, high = interval(draws, LEVEL)
        score = Score(value, float(low), float(high), len(references))
        scores.append(TranslationScore(name, score, copied, str(metric.get_signature())))
    return scores
