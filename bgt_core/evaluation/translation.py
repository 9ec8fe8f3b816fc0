"""How close translations are to references: chrF and BLEU of the whole corpus, sacrebleu's, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import ItemSample, bootstrap, interval
from bgt_core.evaluation.fidelity.measures import BLEU_SCORE, CHRF_SCORE, bleu, chrf, corpus_score

LEVEL = 0.95


class Score(NamedTuple):
    """A number with its interval, and how many sentences it is about."""

    value: float
    low: float
    high: float
    sentences: int


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
    resamples: int = 2_000,
    seed: int = 0,
) -> list[TranslationScore]:
    """chrF and BLEU of N translations into `lang`, as they are or lower-cased, intervals from resampled sentences.

    BLEU is over sacrebleu's words, or characters where `lang` writes no spaces. DataError for fewer than two sentences.
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
        copied = metric.corpus_score(sources, [references]).score  # makes the signature, too
        low, high = interval(draws[name], LEVEL)
        score = Score(float(values[name]), float(low), float(high), len(references))
        scores.append(TranslationScore(name, score, copied, str(metric.get_signature())))
    return scores
