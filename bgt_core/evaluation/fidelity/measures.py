"""Score N sentences against their references, sources and styles: scores of resamples, and which sentences are right.

chrF and BLEU are sacrebleu's, of the whole corpus. The bootstrap resamples the counts that sacrebleu makes of each
sentence, so that a resample only takes a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bgt_core.data.columns import UNSPACED
from bgt_core.data.languages import primary
from bgt_core.data.properties import final_mark
from bgt_core.evaluation.bootstrap import pearson
from bgt_core.evaluation.fidelity.kept import digits, has_negation, length, names, numbers, words

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

CHRF_SCORE, BLEU_SCORE, EXACT = "chrF", "BLEU", "exact %"
LENGTH_R, LENGTH_OFF, STYLE_R = "length r x 100", "words off", "style r x 100"
MARK, MARK_TAKEN = "same mark %", "other mark taken %"
NEGATION, NO_NEGATION = "negation kept %", "no negation gained %"
NUMBER, DIGITS, NAMES = "numbers kept %", "digits copied %", "names kept %"
WRITTEN = (CHRF_SCORE, BLEU_SCORE, EXACT, LENGTH_R, LENGTH_OFF, STYLE_R, MARK, MARK_TAKEN)
KEPT = (NEGATION, NO_NEGATION, NUMBER, DIGITS, NAMES)

OfWeights = Callable[[np.ndarray], np.ndarray]  # weights of N sentences, (B, N) -> scores, (B,)


def corpus_measures(
    outputs: Sequence[str],
    references: Sequence[str],
    styles: Sequence[str],
    *,
    lang: str,
    lowercase: bool,
    language_latents: tuple[np.ndarray, np.ndarray] | None = None,
) -> dict[str, OfWeights]:
    """Measures of N sentences of `lang` as a whole, as functions of the number of times each is drawn.

    `language_latents` are those of outputs and styles, (N, L) each: their correlation tells whether outputs show the
    style. With `lowercase`, chrF and BLEU compare lower-cased text.
    """
    lengths, style_lengths = (np.array([float(length(text, lang)) for text in texts]) for texts in (outputs, styles))
    off = np.abs(lengths - style_lengths)
    measures: dict[str, OfWeights] = {
        CHRF_SCORE: corpus_score(chrf(lowercase), outputs, references),
        BLEU_SCORE: corpus_score(bleu(lang, lowercase), outputs, references),
        LENGTH_R: lambda weights: 100 * pearson(weights, lengths[None], style_lengths)[:, 0],
        LENGTH_OFF: lambda weights: weights @ off / len(off),
    }
    return measures | ({STYLE_R: latent_correlation(*language_latents)} if language_latents else {})


def right_sentences(
    outputs: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str],
    styles: Sequence[str],
    *,
    lang: str,
    source_lang: str,
    lowercase: bool,
) -> dict[str, np.ndarray]:
    """For each measure, which of its sentences are right, (M,) of 0 and 1; measures without sentences are left out.

    A mark counts as taken over only if the reference has another mark than the style. Only the exact match depends on
    case, unless `lowercase`.
    """
    marks = [tuple(map(final_mark, texts)) for texts in zip(outputs, references, styles, strict=True)]
    right = {
        EXACT: [same(*pair, lowercase) for pair in zip(outputs, references, strict=True)],
        MARK: [output == style for output, _, style in marks],
        MARK_TAKEN: [output == style for output, reference, style in marks if style != reference],
    } | kept(outputs, references, sources, lang, source_lang)
    return {name: np.array(rows, dtype=float) for name, rows in right.items() if rows}


def same(output: str, reference: str, lowercase: bool) -> bool:
    """Whether both texts are equal."""
    return output.lower() == reference.lower() if lowercase else output == reference


def latent_correlation(outputs: np.ndarray, styles: np.ndarray) -> OfWeights:
    """100 times the correlation of two latents over all units, after subtracting each unit's mean: (N, L), (N, L)."""
    left, right = (np.asarray(latent, dtype=float) - latent.mean(0) for latent in (outputs, styles))
    products = np.stack([(left * right).sum(1), (left**2).sum(1), (right**2).sum(1)], axis=1)  # (N, 3)

    def correlation(weights: np.ndarray) -> np.ndarray:
        sums = weights @ products  # (B, 3)
        return 100 * sums[:, 0] / np.sqrt(np.maximum(sums[:, 1] * sums[:, 2], np.finfo(float).tiny))

    return correlation


def chrf(lowercase: bool) -> Metric:
    """chrF2 with sacrebleu's settings."""
    from sacrebleu.metrics.chrf import CHRF  # imported here, because it imports file locks and much else

    return CHRF(lowercase=lowercase)


def bleu(lang: str, lowercase: bool) -> Metric:
    """BLEU with sacrebleu's settings; over characters in a language without spaces."""
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(lowercase=lowercase, force=True, tokenize="char" if primary(lang) in UNSPACED else "13a")


def corpus_score(metric: Metric, outputs: Sequence[str], references: Sequence[str]) -> OfWeights:
    """The corpus's score as a function of the number of times each sentence is drawn.

    sacrebleu's own bootstrap returns a mean and a half-width, from its own draws. The two methods used here exist in
    each of its metrics, and its paired tests call them.
    """
    statistics = np.array(metric._extract_corpus_statistics(outputs, [references]))  # (N, S) counts
    return lambda weights: np.array([metric._compute_score_from_stats(list(row)).score for row in weights @ statistics])


def kept(
    outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], lang: str, source_lang: str
) -> dict[str, list[bool]]:
    """For sentences whose source and reference agree on a negation, no negation, a number, or a name: which outputs
    agree too?

    A sentence is skipped if its reference expresses it otherwise ("no longer", "cease"), or if a detector leaves it
    out.
    """
    right: dict[str, list[bool]] = {name: [] for name in KEPT}
    for output, reference, source in zip(outputs, references, sources, strict=True):
        negated = has_negation(reference, lang)
        if negated is not None and negated == has_negation(source, source_lang):
            right[NEGATION if negated else NO_NEGATION].append(has_negation(output, lang) == negated)
        if (values := numbers(reference, lang)) and values == numbers(source, source_lang):
            right[NUMBER].append(numbers(output, lang) == values)
        if shared := {*(names(source, source_lang) or ())} & {*(names(reference, lang) or ())}:
            written = {word.lower() for _, word in words(output, lang)}
            right[NAMES].append({name.lower() for name in shared} <= written)
        if (figures := digits(source)) and figures == digits(reference):
            right[DIGITS].append(digits(output) == figures)
    return right
