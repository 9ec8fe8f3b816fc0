"""N sentences beside their references, sources and styles -> scores with 95 % intervals.

chrF and BLEU are sacrebleu's, of the whole corpus; their intervals, and those of lengths, come from sentences drawn
again with replacement, those of shares are Wilson's. What is drawn again are the counts that sacrebleu makes of each
sentence, so that a resample costs a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bgt_core.data.columns import UNSPACED, primary
from bgt_core.evaluation.bootstrap import interval, pearson, wilson
from bgt_core.evaluation.fidelity.kept import digits, final_mark, has_negation, length, names, numbers, words

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

LEVEL = 0.95

CHRF_SCORE, BLEU_SCORE, EXACT = "chrF", "BLEU", "exact %"
LENGTH_R, LENGTH_OFF, STYLE_R = "length r x 100", "words off", "style r x 100"
MARK, MARK_TAKEN = "same mark %", "other mark taken %"
NEGATION, NO_NEGATION = "negation kept %", "no negation gained %"
NUMBER, DIGITS, NAMES = "numbers kept %", "digits copied %", "names kept %"
WRITTEN = (CHRF_SCORE, BLEU_SCORE, EXACT, LENGTH_R, LENGTH_OFF, STYLE_R, MARK, MARK_TAKEN)
KEPT = (NEGATION, NO_NEGATION, NUMBER, DIGITS, NAMES)


class Score(NamedTuple):
    """A number with its interval, and how many sentences it is about."""

    value: float
    low: float
    high: float
    sentences: int


Draws = tuple[float, np.ndarray]  # a score, and in each of B resamples, (B,)


def measure(
    outputs: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str],
    styles: Sequence[str],
    *,
    lang: str,
    source_lang: str,
    weights: np.ndarray,
    lowercase: bool = True,
    language_latents: tuple[np.ndarray, np.ndarray] | None = None,
) -> dict[str, Score]:
    """Every measure that these N sentences allow; `outputs`, `references` and `styles` are of `lang`.

    `language_latents` are those of outputs and styles, (N, L) each: their correlation says whether outputs show the
    style. A mark counts as taken over only where the reference has another mark than the style.
    `weights` (B, N) are resamples of the sentences, as `bootstrap.resample` draws them. Shares are in per cent. With
    `lowercase`, chrF, BLEU and exact match compare lower-cased text; the others never mind the case.
    """
    n = len(outputs)
    lengths, style_lengths = (np.array([float(length(text, lang)) for text in texts]) for texts in (outputs, styles))
    off = np.abs(lengths - style_lengths)
    by_draws = {
        CHRF_SCORE: bootstrapped(chrf(lowercase), outputs, references, weights),
        BLEU_SCORE: bootstrapped(bleu(lang, lowercase), outputs, references, weights),
        LENGTH_R: (
            100 * float(pearson(np.ones((1, n)), lengths[None], style_lengths)[0, 0]),
            100 * pearson(weights, lengths[None], style_lengths)[:, 0],
        ),
        LENGTH_OFF: (float(off.mean()), weights @ off / n),
        **({STYLE_R: latent_correlation(*language_latents, weights)} if language_latents else {}),
    }
    marks = [tuple(map(final_mark, texts)) for texts in zip(outputs, references, styles, strict=True)]
    hits = {
        EXACT: [same(*pair, lowercase) for pair in zip(outputs, references, strict=True)],
        MARK: [output == style for output, _, style in marks],
        MARK_TAKEN: [output == style for output, reference, style in marks if style != reference],
    } | kept(outputs, references, sources, lang, source_lang)
    scores = {}
    for name, (value, draws) in by_draws.items():
        low, high = interval(draws, LEVEL)
        scores[name] = Score(value, float(low), float(high), n)
    scores |= {name: share(np.array(right)) for name, right in hits.items() if right}
    return {name: scores[name] for name in (*WRITTEN, *KEPT) if name in scores}


def same(output: str, reference: str, lowercase: bool) -> bool:
    """Whether they are one text."""
    return output.lower() == reference.lower() if lowercase else output == reference


def share(right: np.ndarray) -> Score:
    """The mean of N values in [0, 1], in per cent, with Wilson's interval."""
    low, high = wilson(float(right.sum()), len(right), LEVEL)
    return Score(100 * float(right.mean()), 100 * low, 100 * high, len(right))


def latent_correlation(outputs: np.ndarray, styles: np.ndarray, weights: np.ndarray) -> Draws:
    """100 times the correlation of two latents over all units, each unit less its mean: (N, L), (N, L), (B, N)."""
    left, right = (np.asarray(latent, dtype=float) - latent.mean(0) for latent in (outputs, styles))
    products = np.stack([(left * right).sum(1), (left**2).sum(1), (right**2).sum(1)], axis=1)  # (N, 3)
    sums = np.vstack([products.sum(0), weights @ products])  # (1 + B, 3)
    value, *draws = 100 * sums[:, 0] / np.sqrt(np.maximum(sums[:, 1] * sums[:, 2], np.finfo(float).tiny))
    return float(value), np.array(draws)


def chrf(lowercase: bool) -> Metric:
    """chrF2 with sacrebleu's settings."""
    from sacrebleu.metrics.chrf import CHRF  # only where it is used: it imports locks of files, and much else

    return CHRF(lowercase=lowercase)


def bleu(lang: str, lowercase: bool) -> Metric:
    """BLEU with sacrebleu's settings; over characters in a language that writes no spaces."""
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(lowercase=lowercase, force=True, tokenize="char" if primary(lang) in UNSPACED else "13a")


def bootstrapped(metric: Metric, outputs: Sequence[str], references: Sequence[str], weights: np.ndarray) -> Draws:
    """The corpus's score and that of each resample, weights (B, N).

    sacrebleu's own bootstrap says a mean and a half-width, from draws of its own; these two methods are the ones that
    every metric of it has to have, and its paired tests call.
    """
    statistics = np.array(metric._extract_corpus_statistics(outputs, [references]))  # (N, S) counts
    sums = weights @ statistics  # (B, S)
    value, *draws = (metric._compute_score_from_stats(list(row)).score for row in (statistics.sum(0), *sums))
    return value, np.array(draws)


def kept(
    outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], lang: str, source_lang: str
) -> dict[str, list[bool]]:
    """Of the sentences whose source and reference agree that they have a negation, none, a number, or a name: which
    outputs do?

    A reference that says it otherwise ("no longer", "cease") asks nothing of the output, nor does a sentence that a
    counter leaves out.
    """
    right: dict[str, list[bool]] = {name: [] for name in KEPT}
    for output, reference, source in zip(outputs, references, sources, strict=True):
        negated = has_negation(reference, lang)
        if negated is not None and negated == has_negation(source, source_lang):
            right[NEGATION if negated else NO_NEGATION].append(has_negation(output, lang) == negated)
        if numbers(source, source_lang) and (values := numbers(reference, lang)):
            right[NUMBER].append(numbers(output, lang) == values)
        if shared := {*(names(source, source_lang) or ())} & {*(names(reference, lang) or ())}:
            written = {word.lower() for _, word in words(output, lang)}
            right[NAMES].append({name.lower() for name in shared} <= written)
        if (figures := digits(source)) and figures == digits(reference):
            right[DIGITS].append(digits(output) == figures)
    return right
