"""Compare machine translations with human references (Wieting, Mallinson & Gimpel 2017, sec. 5.6.1).

It measures entropies and repetitions of both sides (their table 9), the accuracy of a classifier (table 8), and the
correlations of its score (table 10).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy.stats import entropy, spearmanr

from bgt_core.data.scores import SentenceScore, ngrams, pair_scores
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.bootstrap import ItemSample, bootstrap, interval
from bgt_core.tables import Estimate

LONG_WORD = 3  # repetitions of shorter words do not count
RESAMPLES = 1_000  # for each interval
LEVEL = 0.95
UNITS = {"unigram repetition": "%", "trigram repetition": "%", "average IDF": "nats", "perplexity": "bits per word"}
Sentences = Sequence[Sequence[str]]  # words of each


def ngram_entropy(sentences: Sentences, n: int) -> float:
    """Compute the entropy of all sentences' n-grams in bits; NaN without n-grams. It grows with the amount of text."""
    counts = Counter(gram for words in sentences for gram in ngrams(words, n))
    return float(entropy(list(counts.values()), base=2)) if counts else math.nan


def repeated(words: Sequence[str], n: int) -> tuple[int, int]:
    """Count (n-grams that occur earlier in the sentence, all n-grams). Single words need at least 3 characters."""
    grams = [gram for gram in ngrams(words, n) if n > 1 or len(gram[0]) >= LONG_WORD]
    return len(grams) - len(set(grams)), len(grams)


def document_frequency(documents: Iterable[Sequence[str]]) -> Callable[[Sequence[str]], float]:
    """Return the inverse document frequency of a sentence: the sum over its words of log(documents / documents with the
    word), nats.

    Words are lower-cased; an unseen word counts as one in one document. Raises DataError without documents.
    """
    count, having = 0, Counter[str]()
    for words in documents:
        count += 1
        having.update({word.lower() for word in words})
    if not count:
        raise DataError("there are no documents to count words in")
    return lambda words: sum(math.log(count / max(1, having[word.lower()])) for word in words)


@dataclass(frozen=True)
class Statistic:
    """One measure of both sides, None for a side without it, and the first side's value minus the second's.

    Intervals are 95% bootstrap intervals over pairs; entropies, which depend on the amount of text, have none.
    `correlation` is Spearman's rho with the classifier's score over the translations, `correlation_of_all` over both
    sides together; their intervals are Bonett & Wright's (2000).
    """

    name: str
    unit: str
    reference: float | None
    translation: float
    difference: float | Estimate | None = None
    correlation: Estimate | None = None
    correlation_of_all: Estimate | None = None


def compare(
    references: Sequence[str],
    translations: Sequence[str],
    *,
    costs: np.ndarray | None = None,
    documents: Iterable[str] | None = None,
    models: Mapping[str, SentenceScore] | None = None,
) -> dict[str, Statistic]:
    """Compare N references with a translation of each; return measures by name, all from the same resamples of pairs.

    Words end at spaces. `costs` (N,) are those of the translations. Word frequencies are counted in `documents` (the
    paper: Wikipedia), by default the sentences of both sides. `models` may have "perplexity", reported as its logarithm
    in bits per word, and "classifier", the probability of being a reference.

    Raises DataError without pairs.
    """
    if len(references) != len(translations):
        raise UsageError(f"{len(references)} references and {len(translations)} translations: expected one each.")
    if not references:
        raise DataError("there are no pairs to compare")
    sides = [[text.split() for text in side] for side in (references, translations)]
    texts = (text.split() for text in documents) if documents is not None else (text for side in sides for text in side)
    idf = document_frequency(texts)
    # measures that are ratios of sums over sentences: numerator and denominator, each (2, N)
    counts = np.array([[len(text) for text in side] for side in sides])
    rows = {"words": (counts, np.ones_like(counts))}
    for n, called in ((1, "unigram"), (3, "trigram")):
        both = np.array([[repeated(text, n) for text in side] for side in sides])
        rows[f"{called} repetition"] = 100 * both[..., 0], both[..., 1]
    of_words = np.array([[idf(text) for text in side] for side in sides])
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
    for name, score in pair_scores({}).items():  # of the filters; only a translation has them
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
    """Yield the measures that are ratios of sums over a side, with correlations over single sentences."""

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
    """Return Spearman's rho x 100 of (N,) and (N,) with its interval; None for constants or fewer than 4 values."""
    if len(left) < 4 or np.ptp(left) == 0 or np.ptp(right) == 0:
        return None
    rho = float(spearmanr(left, right).statistic)
    error = math.sqrt((1 + rho**2 / 2) / (len(left) - 3)) * NormalDist().inv_cdf((1 + LEVEL) / 2)
    middle = math.atanh(max(-1 + 1e-15, min(1 - 1e-15, rho)))
    return Estimate(100 * rho, 100 * math.tanh(middle - error), 100 * math.tanh(middle + error))
