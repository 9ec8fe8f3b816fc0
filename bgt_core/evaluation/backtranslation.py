"""Compare machine translations with human references (Wieting, Mallinson & Gimpel 2017, sec. 5.6.1).

For both, the entropy of n-grams and the share of repeated n-grams are measured (table 9 of the paper). A classifier
distinguishes references from translations; its measures are its accuracy (table 8), and the correlations of its score
with other scores (table 10).
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy.stats import entropy, spearmanr

from bgt_core.data.scores import SentenceScore, ngrams, pair_scores
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.bootstrap import ItemSample, bootstrap, interval
from bgt_core.tables import Estimate

LONG_WORD = 3  # words with fewer characters are ignored when repeated words are counted
RESAMPLES = 1_000
LEVEL = 0.95  # confidence level of the intervals
UNITS = {"unigram repetition": "%", "trigram repetition": "%", "average IDF": "nats", "perplexity": "bits per word"}


def ngram_entropy(sentences: Sequence[Sequence[str]], n: int) -> float:
    """Compute the entropy of the n-grams of all sentences, in bits; NaN if no sentence has an n-gram."""
    counts = Counter(gram for words in sentences for gram in ngrams(words, n))
    return float(entropy(list(counts.values()), base=2)) if counts else math.nan


def repeated(words: Sequence[str], n: int) -> tuple[int, int]:
    """Return two counts: the n-grams of a sentence that repeat an earlier n-gram, and all its n-grams.

    If n is 1, words of one or two characters are ignored.
    """
    grams = [gram for gram in ngrams(words, n) if n > 1 or len(gram[0]) >= LONG_WORD]
    return len(grams) - len(set(grams)), len(grams)


@dataclass(frozen=True)
class Statistic:
    """A measure of references and translations: both values, their difference, correlations with a classifier's score.

    Intervals of differences are 95% bootstrap intervals over pairs. The difference of two entropies has no interval,
    because an entropy grows with the amount of text. Intervals of correlations are computed as in Bonett & Wright
    (2000).
    """

    name: str
    unit: str
    reference: float | None  # None for a measure that only translations have
    translation: float
    difference: float | Estimate | None = None  # value for the references minus value for the translations
    correlation: Estimate | None = None  # Spearman's rho with the classifier's score, on the translations
    correlation_of_all: Estimate | None = None  # the same correlation, on references and translations together


def compare(
    references: Sequence[str],
    translations: Sequence[str],
    *,
    costs: np.ndarray | None = None,
    models: Mapping[str, SentenceScore] | None = None,
) -> dict[str, Statistic]:
    """Compare N references with a machine translation of each; return {name: measure}.

    Sentences are split into words at spaces. For document frequencies, each of the 2 N sentences is a document (the
    paper uses Wikipedia). `costs` (N,) are the translations' negative log-likelihoods under the translator. `models`
    may contain two scores: "perplexity", which is reported as bits per word, and "classifier", the probability that a
    sentence is a reference. Raises DataError if there are no pairs.
    """
    if len(references) != len(translations):
        raise UsageError(f"{len(references)} references and {len(translations)} translations; expected equal counts.")
    if not references:
        raise DataError("there are no pairs to compare")
    sides = [[text.split() for text in side] for side in (references, translations)]
    # `rows`: name of a measure -> numerators and denominators, (2, N) each. The measure is the ratio of their sums.
    counts = np.array([[len(text) for text in side] for side in sides])
    rows = {"words": (counts, np.ones_like(counts))}
    for n, called in ((1, "unigram"), (3, "trigram")):
        both = np.array([[repeated(text, n) for text in side] for side in sides])
        rows[f"{called} repetition"] = 100 * both[..., 0], both[..., 1]
    frequencies = Counter(word for side in sides for text in side for word in {each.lower() for each in text})
    idf = {word: math.log(2 * len(references) / count) for word, count in frequencies.items()}
    of_words = np.array([[sum(idf[word.lower()] for word in text) for text in side] for side in sides])
    rows["average IDF"] = of_words / np.maximum(counts, 1), np.ones_like(counts)
    scores = {name: [model(side) for side in (references, translations)] for name, model in (models or {}).items()}
    for name, of_sides in scores.items():
        values = np.log2(of_sides) if name == "perplexity" else np.array(of_sides)
        rows[name] = values, np.ones_like(values)
    probabilities = scores.get("classifier")
    statistics = []
    for n, called in ((1, "unigram"), (3, "trigram")):
        reference, translation = (ngram_entropy(side, n) for side in sides)
        statistics.append(Statistic(f"{called} entropy", "bits", reference, translation, reference - translation))
    statistics += _ratios(rows, probabilities)
    pairs = list(zip(references, translations, strict=True))
    no_costs = np.full(len(pairs), np.nan)
    for name, score in pair_scores({}).items():  # the scores by which `bgt data prepare` can filter
        if name != "words" and (name != "cost" or costs is not None):
            values = score(pairs, no_costs if costs is None else costs)
            rho = _spearman(values, probabilities[1]) if probabilities else None
            statistics.append(Statistic(name, "", None, float(values.mean()), None, rho))
    if probabilities:
        right = [100 * float(hits.mean()) for hits in (probabilities[0] > 0.5, probabilities[1] <= 0.5)]
        statistics.append(Statistic("classified right", "%", right[0], right[1]))
    return {statistic.name: statistic for statistic in statistics}


def _ratios(
    rows: Mapping[str, tuple[np.ndarray, np.ndarray]], probabilities: Sequence[np.ndarray] | None
) -> Iterator[Statistic]:
    """Yield measures that are ratios of two sums over sentences. Their correlations use each sentence's own ratio."""

    def differences(weights: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        means = {
            name: weights[0] @ above.T / np.maximum(weights[0] @ below.T, 1) for name, (above, below) in rows.items()
        }
        return {name: of[:, 0] - of[:, 1] for name, of in means.items()}

    size = next(iter(rows.values()))[0].shape[1]
    _, draws = bootstrap(differences, [ItemSample(size)], resamples=RESAMPLES, seed=1)
    for name, (above, below) in rows.items():
        reference, translation = map(float, above.sum(1) / np.maximum(below.sum(1), 1))
        low, high = interval(draws[name], LEVEL)
        rho = of_all = None
        if probabilities is not None and name != "classifier":
            each = above / np.maximum(below, 1)
            rho = _spearman(each[1], probabilities[1])
            of_all = _spearman(each.ravel(), np.concatenate(probabilities))
        difference = Estimate(reference - translation, float(low), float(high))
        yield Statistic(name, UNITS.get(name, ""), reference, translation, difference, rho, of_all)


def _spearman(left: np.ndarray, right: np.ndarray) -> Estimate | None:
    """Return Spearman's rho x 100 of two arrays (N,), with its interval; None if one is constant or N is below 4."""
    if len(left) < 4 or np.ptp(left) == 0 or np.ptp(right) == 0:
        return None
    rho = float(spearmanr(left, right).statistic)
    error = math.sqrt((1 + rho**2 / 2) / (len(left) - 3)) * NormalDist().inv_cdf((1 + LEVEL) / 2)
    middle = math.atanh(max(-1 + 1e-15, min(1 - 1e-15, rho)))
    return Estimate(100 * rho, 100 * math.tanh(middle - error), 100 * math.tanh(middle + error))
