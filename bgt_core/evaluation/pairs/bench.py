"""What `bgt pairs` does, in one call: which systems can tell pairs that mean the same from others, and how well?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.errors import BgtError, UsageError
from bgt_core.evaluation.bootstrap import interval, resample
from bgt_core.evaluation.comparison import PairwiseDifference, check_bootstrap, differences, estimates, marked
from bgt_core.evaluation.pairs.baselines import TfIdf, TfIdfClassifier, bag_of_words
from bgt_core.evaluation.pairs.files import LabelledPairs
from bgt_core.evaluation.pairs.measures import accuracy, auc, best_threshold, f1, roc
from bgt_core.evaluation.pairs.table import PairsTable, RocCurve
from bgt_core.evaluation.sts.score import StsSet, check, similarities
from bgt_core.tables import Estimate

ACCURACY, F1, AUC = "accuracy", "F1", "AUC"
BAG, TFIDF, CLASSIFIER = "bag of words", "tf-idf", "tf-idf + logistic regression"
CHUNK = 100  # resamples made at once
MAX_WEIGHTS = 2**21  # of pairs in resamples made at once, to bound memory: fewer resamples of very many pairs

Score = Callable[[LabelledPairs], np.ndarray]  # of each pair, (N,)


@runtime_checkable
class HasThreshold(Protocol):
    """A system that says itself from which score on two sentences mean the same, as a probability does."""

    threshold: float


def evaluate(
    encoders: SentenceEncoder | Mapping[str, SentenceEncoder],
    pairs: LabelledPairs,
    *,
    dev: LabelledPairs | None = None,
    train: LabelledPairs | None = None,
    lang: str = "en",
    latent: str | None = None,
    resamples: int = 2_000,
    level: float = 0.95,
    seed: int = 0,
) -> PairsTable:
    """Accuracy, F1 and the ROC curve of each encoder's similarity, by each of its latents, beside words alone.

        table = evaluate({"mine": bgt_core.load("runs/mine")}, read_labelled("test.tsv"), dev=read_labelled("dev.tsv"))

    The area under the ROC curve needs no threshold. Accuracy and F1 take a probability from 0.5 on for a duplicate, and
    of any other score the threshold that is best on `dev`; without `dev` such a system has neither. Beside the encoders
    stand the cosines of a bag of words and of tf-idf, whose frequencies are those of `train`, or without it of `pairs`;
    and with `train`, logistic regression on tf-idf. `latent` is by default each that an encoder has.

    Intervals, the band of the curve and differences are from one bootstrap of the pairs, thresholds kept; differences
    have Holm's correction, over those of AUC, and over those of accuracy and F1.

    Raises UsageError for impossible settings and for a latent or language that an encoder lacks, DataError for vectors
    that aren't finite.
    """
    check_bootstrap(resamples, level)
    systems = systems_of(encoders, pairs, train, lang, latent)
    scores = {name: score(pairs) for name, score in systems.items()}
    thresholds = {name: threshold(score, dev) for name, score in systems.items()}
    judged = {name: scores[name] >= limit for name, limit in thresholds.items() if limit is not None}
    whole, curves = measured(np.ones((1, len(pairs))), scores, judged, pairs.labels)
    draws, bands = bootstrapped(scores, judged, pairs.labels, resamples, seed)
    cells: dict[str, list[Estimate | None]] = {}
    gaps: list[PairwiseDifference[str]] = []
    for names, keys in ((list(judged), (ACCURACY, F1)), (list(scores), (AUC,))):
        if not names:
            continue
        values, drawn = {key: whole[key][0] for key in keys}, {key: draws[key] for key in keys}
        compared = differences(names, values, drawn, level)
        rows = marked(names, {key: estimates(values[key], drawn[key], level) for key in keys}, compared, level)
        for key, row in rows.items():
            by_name = dict(zip(names, row, strict=True))
            cells[key] = [by_name.get(name) for name in scores]
        gaps += compared
    return PairsTable(
        systems=list(scores),
        thresholds=list(thresholds.values()),
        measures=cells,
        curves={name: RocCurve(curves[name][0], *interval(bands[name], level)) for name in scores},
        scores=scores,
        differences=gaps,
        pairs=len(pairs),
        duplicates=int(pairs.labels.sum()),
        level=level,
        resamples=resamples,
        seed=seed,
        about=explain(pairs, dev, train, level, resamples),
    )


def systems_of(
    encoders: SentenceEncoder | Mapping[str, SentenceEncoder],
    pairs: LabelledPairs,
    train: LabelledPairs | None,
    lang: str,
    latent: str | None,
) -> dict[str, Score]:
    """All that score pairs, by name: each latent of each encoder, then words alone. UsageError where two share a name,
    and for a latent or language that an encoder lacks; before anything is embedded."""
    named = encoders if isinstance(encoders, Mapping) else {"model": encoders}
    systems: dict[str, Score] = {}
    for name, encoder in named.items():
        for each in [latent] if latent else encoder.latents:
            row = f"{name} {each}" if len(encoder.latents) > 1 else name
            if row in systems or row in (BAG, TFIDF, CLASSIFIER):
                raise UsageError(f"Two systems are called '{row}'; give one another name.")
            systems[row] = EncoderScore(name, encoder, lang, each)
            try:
                check(encoder, as_sts(pairs, lang), each)
            except BgtError as error:
                raise type(error)(f"{name}: {error}") from None
    systems |= {BAG: bag_of_words, TFIDF: TfIdf(train or pairs)}
    return systems | ({CLASSIFIER: TfIdfClassifier(train)} if train else {})


class EncoderScore:
    """One latent's similarity of each pair; where the encoder has a threshold, so has this."""

    def __init__(self, name: str, encoder: SentenceEncoder, lang: str, latent: str):
        self._name, self._encoder, self._lang, self._latent = name, encoder, lang, latent
        if isinstance(encoder, HasThreshold):
            self.threshold = encoder.threshold

    def __call__(self, pairs: LabelledPairs) -> np.ndarray:
        """(N,) float64; each different sentence is embedded once."""
        try:
            return similarities(self._encoder, as_sts(pairs, self._lang), self._latent)
        except BgtError as error:
            raise type(error)(f"{self._name}: {error}") from None


def as_sts(pairs: LabelledPairs, lang: str) -> StsSet:
    """The same pairs as a set of textual similarity, with gold scores 0 and 1."""
    return StsSet("pairs", pairs.name, pairs.labels.astype(float), pairs.left, pairs.right, lang, lang)


def threshold(score: Score, dev: LabelledPairs | None) -> float | None:
    """From which score on a pair is taken for the same: the system's own, or the best on `dev`; None without either."""
    if isinstance(score, HasThreshold):
        return score.threshold
    return best_threshold(score(dev), dev.labels) if dev else None


def measured(
    weights: np.ndarray, scores: Mapping[str, np.ndarray], judged: Mapping[str, np.ndarray], labels: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Measures x 100 in B resamples, (B, N), of all systems that have them, (B, S), and the curve of each system by its
    name, (B, 101)."""
    by_measure = {AUC: [auc(weights, each, labels) for each in scores.values()]}
    if judged:
        by_measure[ACCURACY] = [accuracy(weights, each, labels) for each in judged.values()]
        by_measure[F1] = [f1(weights, each, labels) for each in judged.values()]
    curves = {name: roc(weights, each, labels) for name, each in scores.items()}
    return {key: 100 * np.stack(values, 1) for key, values in by_measure.items()}, curves


def bootstrapped(
    scores: Mapping[str, np.ndarray], judged: Mapping[str, np.ndarray], labels: np.ndarray, resamples: int, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """`measured` in all resamples: the same pairs are drawn for each system."""
    rng = np.random.default_rng([seed, 2])
    chunk = max(1, min(CHUNK, MAX_WEIGHTS // len(labels)))
    parts = [
        measured(resample(rng, len(labels), min(chunk, resamples - start)), scores, judged, labels)
        for start in range(0, resamples, chunk)
    ]
    measures, curves = zip(*parts, strict=True)
    return joined(measures), joined(curves)


def joined(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The resamples of all parts, (B, ...), by name."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def explain(
    pairs: LabelledPairs, dev: LabelledPairs | None, train: LabelledPairs | None, level: float, resamples: int
) -> str:
    """What was measured on what, in a few lines."""
    positive = int(pairs.labels.sum())
    tuned = f"best on {dev.name}" if dev else "none without a dev file, and so no accuracy and no F1"
    return (
        f"{pairs.name}: {len(pairs):,} pairs, {positive:,} of them ({100 * positive / len(pairs):.1f}%) duplicates\n"
        f"x 100; threshold of a probability: 0.5, of other scores: {tuned}; frequencies of tf-idf: "
        f"{(train or pairs).name}'s; {100 * level:g}% intervals from {resamples} resamples of the pairs, thresholds "
        "kept; differences: paired, Holm over those of AUC, and over those of accuracy and F1"
    )
