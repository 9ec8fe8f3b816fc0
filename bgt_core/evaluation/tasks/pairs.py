"""Labelled pairs: which systems recognise pairs that mean the same, and how well?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.clean import copy_key
from bgt_core.evaluation.bootstrap import ItemSample
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.pairs.measures import (
    COLUMNS,
    LabelledPairs,
    TfIdf,
    TfIdfClassifier,
    accuracy,
    auc,
    bag_of_words,
    best_threshold,
    f1,
    read_labelled,
    roc,
)
from bgt_core.evaluation.systems import System, systems
from bgt_core.evaluation.task import Lang, Latent, Task, one_path
from bgt_core.vectors.compare import rounded

ACCURACY, F1, AUC, THRESHOLD, ROC = "accuracy", "F1", "AUC", "threshold", "ROC"
BAG, TFIDF, CLASSIFIER = "bag of words", "tf-idf", "tf-idf + logistic regression"
SAMPLE_KEY = (2,)

Scorer = Callable[[LabelledPairs], np.ndarray]  # labelled pairs -> the score of each, (N,)


class PairsKey(NamedTuple):
    measure: str
    pairs: int


class PairsData(NamedTuple):
    """Pairs to judge, pairs to choose thresholds on, and pairs to train baselines on."""

    test: LabelledPairs
    dev: LabelledPairs | None = None
    train: LabelledPairs | None = None


@runtime_checkable
class HasThreshold(Protocol):
    """A system with its own threshold, above which two sentences mean the same, such as a probability."""

    threshold: float


@dataclass(frozen=True)
class Pairs(Task[PairsData]):
    """Labelled pairs: do two sentences mean the same? Accuracy, F1, area under the ROC curve.

    Baselines are a bag of words, tf-idf and, with --train, logistic regression on tf-idf. The threshold of a
    probability, as of a trained var-siamese, is 0.5; others are chosen on --dev. --out writes the ROC curves with
    their bands in curves.csv.
    """

    data = "Pairs to judge: TSV (.gz .xz .zst) of label, 1 or 0, a and b."
    across = "measure"
    own_probability = True

    dev: Annotated[Path | None, "Labelled pairs to choose thresholds on; without them only AUC is measured."] = None
    train: Annotated[Path | None, "Training pairs, for tf-idf and logistic regression."] = None
    columns: Annotated[str, "Columns of all these files; _ is a column to skip."] = ",".join(COLUMNS)
    lang: Lang = "en"
    latent: Latent = None

    def load(self, paths: Sequence[Path], *, seed: int) -> PairsData:
        """Read all files."""
        columns = self.columns.split(",")
        test = read_labelled(one_path(paths, "one file of labelled pairs"), columns)
        return PairsData(test, *(read_labelled(path, columns) if path else None for path in (self.dev, self.train)))

    def statistic(self, items: PairsData, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Judge every pair by every system; thresholds are the same in all resamples.

        tf-idf uses the frequencies of `train`, or without it of `test`. Holm's correction is applied to the differences
        of AUC, and separately to those of accuracy and F1.
        """
        test, dev, train = items
        rows = systems(encoders, [self.lang], self.latent, reserved=(BAG, TFIDF, CLASSIFIER))
        scorers: dict[str, Scorer] = {system.name: EncoderScorer(system, self.lang) for system in rows}
        scorers |= {BAG: bag_of_words, TFIDF: TfIdf(train or test)}
        if train:
            scorers[CLASSIFIER] = TfIdfClassifier(train)
        scores = np.stack([rounded(scorer(test)) for scorer in scorers.values()])
        thresholds = [threshold(scorer, dev) for scorer in scorers.values()]
        keys = {measure: PairsKey(measure, len(test)) for measure in (ACCURACY, F1, AUC, ROC)}
        positive = int(test.labels.sum())
        tuned = f"best on {dev.name}" if dev else "none without --dev, so accuracy and F1 are left out"
        return Statistic(
            systems=list(scorers),
            scores=lambda weights: {
                keys[name]: value for name, value in measured(weights[0], scores, thresholds, test.labels).items()
            },
            samples=[ItemSample(len(test), SAMPLE_KEY)],
            numbers={PairsKey(THRESHOLD, len(test)): thresholds},
            about=f"{test.name}: {len(test):,} pairs, {positive:,} of them ({100 * positive / len(test):.1f}%) "
            f"duplicates; x 100; threshold of a probability: 0.5, of other scores: {tuned}; frequencies of tf-idf: "
            f"those of {(train or test).name}",
            warnings=[
                f"{count:,} of the {len(test):,} pairs are also in {other.name}, as copies: leave them out of one file."
                for other in (dev, train)
                if other and (count := copied(test, other))
            ],
            counts={"pairs": len(test), "duplicates": positive},
            families={keys[AUC]: AUC},
        )


TASK = Pairs


def copied(pairs: LabelledPairs, others: LabelledPairs) -> int:
    """The number of pairs that are also among the others, in either order, in another case or other spaces too."""
    keys = [
        [frozenset(map(copy_key, both)) for both in zip(each.left, each.right, strict=True)] for each in (pairs, others)
    ]
    return sum(map(set(keys[1]).__contains__, keys[0]))


class EncoderScorer:
    """A system's similarity of each pair; it has a threshold if the encoder has one."""

    def __init__(self, system: System, lang: str):
        self._system, self._lang = system, lang
        if isinstance(system.encoder, HasThreshold):
            self.threshold = system.encoder.threshold

    def __call__(self, pairs: LabelledPairs) -> np.ndarray:
        """(N,) float64."""
        return self._system.similarities(pairs.left, pairs.right, self._lang, self._lang)


def threshold(scorer: Scorer, dev: LabelledPairs | None) -> float | None:
    """The minimum score of a positive: the system's own threshold, or the best on `dev`; None without either."""
    if isinstance(scorer, HasThreshold):
        return scorer.threshold
    return best_threshold(rounded(scorer(dev)), dev.labels) if dev else None


def measured(
    weights: np.ndarray, scores: np.ndarray, thresholds: Sequence[float | None], labels: np.ndarray
) -> dict[str, np.ndarray]:
    """Measures x 100 in B resamples, (B, N), of S systems, (S, N): (B, S), and their curves, (B, S, 101).

    A system without a threshold has neither accuracy nor F1; they are left out if none has one.
    """
    nothing = np.full(len(weights), np.nan)
    measures: dict[str, np.ndarray] = {}
    if any(limit is not None for limit in thresholds):
        for name, measure in ((ACCURACY, accuracy), (F1, f1)):
            columns = [
                nothing if limit is None else 100 * measure(weights, row >= limit, labels)
                for row, limit in zip(scores, thresholds, strict=True)
            ]
            measures[name] = np.stack(columns, 1)
    measures[AUC] = 100 * np.stack([auc(weights, row, labels) for row in scores], 1)
    return measures | {ROC: np.stack([roc(weights, row, labels) for row in scores], 1)}
