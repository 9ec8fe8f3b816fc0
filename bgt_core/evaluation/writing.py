"""Plan from which latents to generate text, and score the generated text, as a corpus and sentence by sentence.

chrF and BLEU are sacrebleu's corpus-level scores. sacrebleu counts n-grams for each sentence, so a bootstrap resample
is scored from the summed counts of its sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bgt_core.contracts import SEMANTIC
from bgt_core.data.columns import UNSPACED, lang_hint, primary
from bgt_core.data.properties import final_mark
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.evaluation.bootstrap import ItemSample, bootstrap, interval, pearson
from bgt_core.evaluation.comparison import Key, Statistic
from bgt_core.evaluation.facts import digits, has_negation, length, names, numbers, words
from bgt_core.tables import Estimate

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

    from bgt_core.generation.generate import Writer  # this loads torch, which `bgt evaluate --help` does not need

OWN, REFERENCE, RANDOM, SWAPPED = "its own", "the reference", "a random sentence", "the swapped sentence"
CHRF_SCORE, BLEU_SCORE, EXACT = "chrF", "BLEU", "exact %"
LENGTH_R, LENGTH_OFF, STYLE_R = "length r x 100", "words off", "style r x 100"
MARK, MARK_TAKEN = "same mark %", "other mark taken %"
NEGATION, NO_NEGATION = "negation kept %", "no negation gained %"
NUMBER, DIGITS, NAMES = "numbers kept %", "digits copied %", "names kept %"
KEPT = (NEGATION, NO_NEGATION, NUMBER, DIGITS, NAMES)

Columns = Mapping[str, Sequence[str]]  # language -> N sentences; row n has the same meaning in all languages
OfWeights = Callable[[np.ndarray], np.ndarray]  # weights of N sentences in B resamples, (B, N) -> B scores, (B,)


def writers(models: Mapping[str, Any], langs: Sequence[str], beam: int, rerank: bool = False) -> dict[str, Writer]:
    """Make a text generator with beam search for each model. A model that has a method `write` is its own generator.
    With `rerank`, the generator limits repetitions and ranks the texts of the beam, as `bgt generate` does."""
    from bgt_core.generation.generate import Writer
    from bgt_core.generation.options import DEFAULT_SEARCH, Beam

    search = replace(DEFAULT_SEARCH, size=beam) if rerank else Beam(beam)
    named: dict[str, Writer] = {}
    for name, model in models.items():
        try:
            writer = model if hasattr(model, "write") else Writer(model, search, rerank=rerank)
        except BgtError as error:
            raise type(error)(f"{name}: {error}") from None
        if missing := [lang for lang in langs if lang not in writer.langs]:
            hint = lang_hint(missing[0], writer.langs)
            raise UsageError(f"{missing[0]}: {name} supports {', '.join(writer.langs)}.{hint}", parameter="langs")
        named[name] = writer
    return named


@dataclass(frozen=True, eq=False)
class Writing:
    """A plan to generate N sentences in `lang`, from the semantic and the language latents of given sentences.

    Sentence n has the semantic latent of row n of `source_lang`, and the language latent of row `styles[n]` of `lang`.
    Its reference is row n of `lang`.
    """

    source_lang: str
    lang: str
    style_of: str  # name of the style sentences: OWN, REFERENCE, RANDOM or SWAPPED
    styles: np.ndarray  # (N,) row number of each style sentence

    @property
    def meaning_of(self) -> str:
        """The origin of the semantic latent, for tables: the source language, or "its own" for reconstructions."""
        return OWN if self.style_of == OWN else self.source_lang


def writings(langs: Sequence[str], rows: int, style_of: str, styles: Mapping[str, np.ndarray]) -> list[Writing]:
    """Plan reconstructions and translations, and for each language in `styles`, recombinations.

    `styles` has the row numbers of the style sentences, by language. `style_of` names these sentences in tables.
    """
    own = np.arange(rows)
    plan = [Writing(lang, lang, OWN, own) for lang in langs]
    plan += [Writing(source, lang, REFERENCE, own) for lang, source in permutations(langs, 2)]
    return plan + [Writing(source, lang, style_of, of_lang) for lang, of_lang in styles.items() for source in langs]


class Latents:
    """All latents of some sentences, computed once, from which each `Writing` selects its own."""

    def __init__(self, writer: Writer, columns: Columns):
        self.vectors = {
            (latent, lang): writer.embed(texts, lang=lang, latent=latent)
            for lang, texts in columns.items()
            for latent in writer.latents
        }

    def of(self, writing: Writing) -> dict[str, np.ndarray]:
        """Return the latents from which the sentences of a `Writing` are generated: (N, L) for each latent."""
        of_style = {
            latent: each[writing.styles] for (latent, lang), each in self.vectors.items() if lang == writing.lang
        }
        return of_style | {SEMANTIC: self.vectors[SEMANTIC, writing.source_lang]}


# Corpus-level scores are functions of the number of times that the bootstrap draws each of N sentences.


def corpus_measures(
    outputs: Sequence[str], references: Sequence[str], styles: Sequence[str], lang: str
) -> dict[str, OfWeights]:
    """Compare lower-cased outputs in `lang` with references, and their lengths with the lengths of style sentences."""
    lengths, style_lengths = (np.array([float(length(text, lang)) for text in texts]) for texts in (outputs, styles))
    off = np.abs(lengths - style_lengths)
    return {
        CHRF_SCORE: corpus_score(chrf(lowercase=True), outputs, references),
        BLEU_SCORE: corpus_score(bleu(lang, lowercase=True), outputs, references),
        LENGTH_R: lambda weights: 100 * pearson(weights, lengths[None], style_lengths)[:, 0],
        LENGTH_OFF: lambda weights: weights @ off / len(off),
    }


def latent_correlation(outputs: np.ndarray, styles: np.ndarray) -> OfWeights:
    """Correlate two latents (N, L) over all sentences and units, x 100, after subtracting the mean of each unit."""
    left, right = (np.asarray(latent, dtype=float) - latent.mean(0) for latent in (outputs, styles))
    products = np.stack([(left * right).sum(1), (left**2).sum(1), (right**2).sum(1)], axis=1)  # (N, 3)

    def correlation(weights: np.ndarray) -> np.ndarray:
        sums = weights @ products  # (B, 3)
        return 100 * sums[:, 0] / np.sqrt(np.maximum(sums[:, 1] * sums[:, 2], np.finfo(float).tiny))

    return correlation


def chrf(lowercase: bool) -> Metric:
    """Return chrF2 with sacrebleu's default settings."""
    from sacrebleu.metrics.chrf import CHRF  # imported here, because sacrebleu imports file locks and much else

    return CHRF(lowercase=lowercase)


def bleu(lang: str, lowercase: bool) -> Metric:
    """Return BLEU with sacrebleu's default settings, or over characters for a language without spaces."""
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(lowercase=lowercase, force=True, tokenize="char" if primary(lang) in UNSPACED else "13a")


def corpus_score(metric: Metric, outputs: Sequence[str], references: Sequence[str]) -> OfWeights:
    """Return a function: number of times that each of N sentences is drawn, (B, N) -> score of the corpus, (B,).

    This calls two private methods that sacrebleu's paired tests use, because sacrebleu's public bootstrap would draw
    other resamples.
    """
    statistics = np.array(metric._extract_corpus_statistics(outputs, [references]))  # (N, S) counts
    return lambda weights: np.array([metric._compute_score_from_stats(list(row)).score for row in weights @ statistics])


def of_systems(
    systems: Sequence[str],
    rows: int,
    corpus: Mapping[Key, Mapping[str, OfWeights]],
    hits: Mapping[Key, Mapping[str, np.ndarray]],
    **about: Any,
) -> Statistic:
    """Make a `Statistic` for N = `rows` sentences from scores: key -> system -> score. A system may lack some scores.

    `corpus` contains corpus-level scores. `hits` contains arrays (M,), 1 for a right sentence and 0 for a wrong one; M
    is the last field of the key. `about` contains values for other fields of `Statistic`.
    """

    def stacked(of: Mapping[str, np.ndarray], size: int) -> np.ndarray:
        return np.stack([of.get(name, np.full(size, np.nan)) for name in systems])

    return Statistic(
        systems=systems,
        scores=lambda weights: {
            key: stacked({name: score(weights[0]) for name, score in of.items()}, len(weights[0])).T
            for key, of in corpus.items()
        },
        samples=[ItemSample(rows)] if corpus else [],
        hits={key: stacked(of, key[-1]) for key, of in hits.items()},
        **about,
    )


# The following function scores sentences one by one, as right or wrong.


def right_sentences(
    outputs: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str],
    styles: Sequence[str],
    langs: tuple[str, str],
) -> dict[str, np.ndarray]:
    """Score each of N outputs by several measures: 1 if it is right, 0 if it is wrong.

    The outputs are generated from the semantic latents of `sources` and the language latents of `styles`. `langs` are
    the language of the sources and the language of all other sentences. Returns, for each measure, the scores (M,) of
    the M sentences to which the measure applies. Whether an output adopts the closing mark of its style sentence is
    scored only if the reference has another mark. Negations, numbers and names are compared only if the rules of
    `facts` find the same in source and reference, because a reference may express them differently ("no longer",
    "cease").
    """
    right: dict[str, list[bool]] = {name: [] for name in (EXACT, MARK, MARK_TAKEN, *KEPT)}
    source_lang, lang = langs
    for output, reference, source, style in zip(outputs, references, sources, styles, strict=True):
        right[EXACT].append(output.lower() == reference.lower())
        mark, reference_mark, style_mark = map(final_mark, (output, reference, style))
        right[MARK].append(mark == style_mark)
        if style_mark != reference_mark:
            right[MARK_TAKEN].append(mark == style_mark)
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
    return {name: np.array(rows, dtype=float) for name, rows in right.items() if rows}


# The following functions score translations, for which no latents are needed.


class TranslationScore(NamedTuple):
    """The score of N translations by one measure."""

    name: str  # "chrF" or "BLEU"
    score: Estimate  # the score and its 95 % interval
    copied: float  # the baseline: the score of the untranslated sources
    signature: str  # sacrebleu's settings, in the form that papers quote


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
    """Score N translations into `lang` by chrF and BLEU, with 95 % intervals from resampled sentences.

    BLEU compares words, which sacrebleu's tokenizer splits, or characters if `lang` has no spaces. Raises DataError for
    fewer than two sentences.
    """
    if len(references) < 2:
        raise DataError(f"{len(references)} translations to score; expected 2 or more translations.")
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
        copied = metric.corpus_score(sources, [references]).score  # this call sets the signature of `metric`, too
        low, high = map(float, interval(draws[name], 0.95))
        score = Estimate(float(values[name]), low, high)
        scores.append(TranslationScore(name, score, copied, str(metric.get_signature())))
    return scores
