"""Score translations against references: sacrebleu's chrF and BLEU of the whole corpus, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import ItemSample, bootstrap, interval
from bgt_core.evaluation.fidelity.measures import BLEU_SCORE, CHRF_SCORE, bleu, chrf, corpus_score

LEVEL = 0.95


class Score(NamedTuple):
    """A number with its interval, and its number of sentences."""

    value: float
    low: float
    high: float
    sentences: int


class TranslationScore(NamedTuple):
    """One measure of N translations."""

    name: str  # chrF, BLEU
    score: Score
    copied: float  # the score of the untranslated sources: the baseline
    signature: str  # sacrebleu's settings, as papers quote them


def score_translations(
    translations: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str],
    *,
    lang: str,
    lowercase: bool = False,
    resamples: int = 2_000,
    seed: int = 0,
) -> list[TranslationScore]:
    """Score N translations into `lang` by chrF and BLEU, with or without case; intervals come from resampled sentences.

    BLEU uses sacrebleu's words, or characters if `lang` has no spaces. DataError for fewer than two sentences.
    """
    if len(references) < 2:
        raise DataError(f"{len(references)} translations to score; expected 2 or more.")
    metrics = {CHRF_SCORE: chrf(lowercase), BLEU_SCORE: bleu(lang, lowercase)}
    of_weights = {name: corpus_score(metric, translations, references) for name, metric in metrics.items()}
    values, draws = bootstrap(
        lambda weights: {name: score(weights[0]) for name, score in of_weights.items()},
        [ItemSample(len(references))],
        resamples=resamples,
        seed=seed,
    )
    scores = []
    for name, metric in metrics.items():
        copied = metric.corpus_score(sources, [references]).score  # also sets the signature
        low, high = interval(draws[name], LEVEL)
        score = Score(float(values[name]), float(low), float(high), len(references))
        scores.append(TranslationScore(name, score, copied, str(metric.get_signature())))
    return scores
