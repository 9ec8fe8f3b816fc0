"""Labelled pairs: how well does an encoder's similarity predict whether two sentences have the same meaning?

    files -> scores of systems and of baselines -> accuracy, F1, area under the ROC curve

Weights (B, N) count how often each of N pairs is drawn in each of B resamples (`evaluation.bootstrap`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.clean import copy_key
from bgt_core.data.columns import SKIPPED
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.bootstrap import ItemSample, ranks
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.systems import systems
from bgt_core.evaluation.task import Lang, Latent, Task, one_path, tsv_rows
from bgt_core.vectors.arrays import rounded

COLUMNS = ("label", "a", "b")  # the columns of a file, as in most files of Quora and MRPC
ACCURACY, F1, AUC, THRESHOLD = "accuracy", "F1", "AUC", "threshold"
BAG, TFIDF, CLASSIFIER = "bag of words", "tf-idf", "tf-idf + logistic regression"
WORD = r"(?u)\w+"  # runs of letters and digits


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """N labelled pairs of sentences. Raises DataError unless both labels occur."""

    name: str
    labels: np.ndarray  # (N,) bool, True if both sentences have the same meaning
    left: Sequence[str]
    right: Sequence[str]

    def __post_init__(self) -> None:
        if not 0 < (positive := int(np.sum(self.labels))) < len(self.labels):
            raise DataError(f"{self.name}: {positive} of {len(self.labels)} labels are 1; both 1 and 0 must occur.")

    def __len__(self) -> int:
        return len(self.labels)


def read_labelled(path: Path | str, columns: Sequence[str] = COLUMNS) -> LabelledPairs:
    """Read labelled pairs from a TSV without header and quotes.

    `columns` are the names of the file's columns: "label", "a", "b", and "_" for a column to skip. Columns after the
    last named column are also skipped. Raises UsageError for other names, and DataError, with file and line, for an
    invalid line.
    """
    if sorted(column for column in columns if column != SKIPPED) != sorted(COLUMNS):
        text = f"{','.join(columns)}: expected label, a and b once each, and _ for columns to skip."
        raise UsageError(text, parameter="columns")
    at = [list(columns).index(name) for name in COLUMNS]
    rows: list[list[str]] = []
    for number, fields in tsv_rows(Path(path), columns, at):
        label, *texts = (field.strip() for field in fields)
        if label not in ("0", "1"):
            rule = "expected 1 (same meaning) or 0" + (", without a comma" if "," in label else "")
            raise DataError(f"{path}:{number}: the label is {label[:60]!r}; {rule}.")
        if not all(texts):
            raise DataError(f"{path}:{number}: an empty sentence; remove the line.")
        rows.append([label, *texts])
    labels, *sides = ([row[column] for row in rows] for column in range(3))
    return LabelledPairs(Path(path).name, np.array(labels) == "1", *sides)


Scorer = Callable[[Sequence[str], Sequence[str]], np.ndarray]  # N left and N right sentences -> N scores


class PairsKey(NamedTuple):
    measure: str
    pairs: int


class PairsData(NamedTuple):
    """Labelled sentence pairs: for tests, for the choice of thresholds, and for the training of baselines."""

    test: LabelledPairs
    dev: LabelledPairs | None = None
    train: LabelledPairs | None = None


@dataclass(frozen=True)
class Pairs(Task[PairsData]):
    """Labelled pairs: do two sentences have the same meaning? Accuracy, F1, area under the ROC curve.

    Baselines are a bag of words, tf-idf and, with --train, logistic regression on tf-idf. The threshold is 0.5 for a
    system that predicts a probability, such as a trained var-siamese; for other systems it is chosen on --dev.
    """

    data = "Labelled pairs: a TSV (.gz .xz .zst) with the columns label (1 or 0), a and b."
    across = "measure"
    own_probability = True

    dev: Annotated[Path | None, "Labelled pairs to choose thresholds on; if missing, only AUC is measured."] = None
    train: Annotated[Path | None, "Training pairs, for tf-idf and logistic regression."] = None
    columns: Annotated[str, "Columns of DATA, --dev and --train; _ skips a column."] = ",".join(COLUMNS)
    lang: Lang = "en"
    latent: Latent = None

    def load(self, paths: Sequence[Path], *, seed: int) -> PairsData:
        columns = self.columns.split(",")
        test = read_labelled(one_path(paths, "one file of labelled pairs"), columns)
        return PairsData(test, *(read_labelled(path, columns) if path else None for path in (self.dev, self.train)))

    def statistic(self, items: PairsData, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Score every sentence pair by every system. The threshold of a system is the same in all resamples.

        tf-idf counts words in the training pairs if there are any, else in the test pairs. Holm's correction is applied
        to the differences of AUC, and separately to the differences of accuracy and F1.
        """
        test, dev, train = items
        rows = systems(encoders, [self.lang], self.latent, reserved=(BAG, TFIDF, CLASSIFIER))
        scorers: dict[str, Scorer] = {
            system.name: partial(system.similarities, left_lang=self.lang, right_lang=self.lang) for system in rows
        }
        scorers[BAG] = lambda left, right: word_cosines(
            fitted(CountVectorizer(token_pattern=WORD), left, right), left, right
        )
        tfidf = fitted(TfidfVectorizer(token_pattern=WORD), (train or test).left, (train or test).right)
        scorers[TFIDF] = partial(word_cosines, tfidf)
        # an encoder whose similarity is a probability defines a threshold, such as 0.5
        own = {system.name: getattr(system.encoder, "threshold", None) for system in rows}
        limits = {name: float(limit) for name, limit in own.items() if limit is not None}
        if train:
            scorers[CLASSIFIER], limits[CLASSIFIER] = TfIdfClassifier(train), 0.5
        scores = np.stack([rounded(scorer(test.left, test.right)) for scorer in scorers.values()])
        thresholds = [
            limits.get(name)
            if name in limits or not dev
            else best_threshold(rounded(scorer(dev.left, dev.right)), dev.labels)
            for name, scorer in scorers.items()
        ]
        keys = {measure: PairsKey(measure, len(test)) for measure in (ACCURACY, F1, AUC)}
        positive = int(test.labels.sum())
        tuned = f"best on {dev.name}" if dev else "none without --dev, so accuracy and F1 are left out"
        return Statistic(
            systems=list(scorers),
            scores=lambda weights: {
                keys[name]: value for name, value in measured(weights[0], scores, thresholds, test.labels).items()
            },
            samples=[ItemSample(len(test), (2,))],
            numbers={PairsKey(THRESHOLD, len(test)): thresholds},
            about=f"{test.name}: {len(test):,} pairs, {positive:,} of them ({100 * positive / len(test):.1f}%) "
            f"duplicates; x 100; threshold of a probability: 0.5, of other scores: {tuned}; frequencies of tf-idf: "
            f"those of {(train or test).name}",
            warnings=[
                f"{count:,} of the {len(test):,} pairs are also in {other.name}, as copies: leave them out of one file."
                for other in (dev, train)
                if other and (count := copied(test, other))
            ],
            families={keys[AUC]: AUC},
        )


TASK = Pairs


def copied(pairs: LabelledPairs, others: LabelledPairs) -> int:
    """Count the sentence pairs that `others` also contains, in either order; case and spaces are ignored."""
    keys = [
        [frozenset(map(copy_key, both)) for both in zip(each.left, each.right, strict=True)] for each in (pairs, others)
    ]
    return sum(map(set(keys[1]).__contains__, keys[0]))


def measured(
    weights: np.ndarray, scores: np.ndarray, thresholds: Sequence[float | None], labels: np.ndarray
) -> dict[str, np.ndarray]:
    """Compute each measure x 100, (B, S), from the scores of S systems, (S, N), in B resamples, (B, N).

    Accuracy and F1 are NaN for a system without a threshold, and omitted if no system has a threshold.
    """
    measures: dict[str, np.ndarray] = {}
    if any(limit is not None for limit in thresholds):
        for name, measure in ((ACCURACY, accuracy), (F1, f1)):
            columns = [
                np.full(len(weights), np.nan) if limit is None else 100 * measure(weights, row >= limit, labels)
                for row, limit in zip(scores, thresholds, strict=True)
            ]
            measures[name] = np.stack(columns, 1)
    measures[AUC] = 100 * np.stack([auc(weights, row, labels) for row in scores], 1)
    return measures


def best_threshold(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the threshold with the highest accuracy, given N scores and N bool labels; if several tie, the lowest.

    A threshold may be halfway between two neighbouring scores; or equal to the lowest score, so that all pairs are
    predicted positive; or just above the highest score, so that all pairs are predicted negative.
    """
    values, group = np.unique(scores, return_inverse=True)  # The G distinct scores, ascending. `gained`, (G,): the
    # number of correct minus wrong predictions if the pairs with this score are predicted positive.
    gained = np.bincount(group, weights=np.where(labels, 1.0, -1.0))
    right = np.append(gained[::-1].cumsum()[::-1], 0.0)  # (G + 1,): `gained`, summed over a score and all higher scores
    edges = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, [np.nextafter(values[-1], np.inf)]])
    return float(edges[right.argmax()])


def accuracy(weights: np.ndarray, judged: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Compute the accuracy in each of B resamples, given predictions and labels: (B, N), (N,), (N,) -> (B,)."""
    return weights @ (judged == labels) / weights.sum(1)


def f1(weights: np.ndarray, judged: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Compute F1 = 2 TP / (2 TP + FP + FN), or 0 for 0 / 0, in each resample: (B, N), (N,), (N,) -> (B,)."""
    hits, total = weights @ (judged & labels), weights @ judged.astype(float) + weights @ labels.astype(float)
    return 2 * hits / np.maximum(total, 1)


def auc(weights: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Compute the area under the ROC curve in each resample: (B, N), (N,), (N,) bool -> (B,).

    This is the probability that a pair labelled 1 has a higher score than a pair labelled 0; ties count half. The area
    is 1/2 if all drawn pairs have the same label.
    """
    positive, total = weights @ labels.astype(float), weights.sum(1)
    negative = total - positive
    wins = (weights * ranks(weights, scores)) @ labels.astype(float) - positive * (positive + 1) / 2
    both = positive * negative
    return np.where(both > 0, wins / np.maximum(both, 1), 0.5)


# The baselines compare only the words of the sentences: lower-cased words, including stop words.


def fitted(vectorizer: CountVectorizer, left: Sequence[str], right: Sequence[str]) -> CountVectorizer:
    """Fit scikit-learn's vectorizer on the distinct sentences of all pairs."""
    return vectorizer.fit(list(dict.fromkeys([*left, *right])))


def word_cosines(vectorizer: CountVectorizer, left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    """Return the cosine of the word vectors of each pair, (N,); 0 if a sentence has no known words."""
    vectors = [normalize(vectorizer.transform(side)) for side in (left, right)]
    return np.asarray(vectors[0].multiply(vectors[1]).sum(1), dtype=float).ravel()


class TfIdfClassifier:
    """Logistic regression on [|u - v| ; u * v], where u and v are the tf-idf vectors of the two sentences of a pair.

    The words and bigrams that differ are represented by |u - v|, those that both sentences share by u * v. On Quora's
    held-out pairs, the accuracy was two points higher than with [u ; v], and half a point higher than without bigrams.
    """

    def __init__(self, train: LabelledPairs):
        self._tfidf = fitted(TfidfVectorizer(token_pattern=WORD, ngram_range=(1, 2)), train.left, train.right)
        features = self._features(train.left, train.right)
        self._regression = LogisticRegression(C=10.0, max_iter=1_000).fit(features, train.labels)

    def _features(self, left: Sequence[str], right: Sequence[str]) -> sparse.csr_matrix:
        u, v = self._tfidf.transform(left), self._tfidf.transform(right)
        return sparse.hstack([abs(u - v), u.multiply(v)]).tocsr()

    def __call__(self, left: Sequence[str], right: Sequence[str]) -> np.ndarray:
        """Predict the probability that the sentences of each pair have the same meaning, (N,)."""
        return self._regression.predict_proba(self._features(left, right))[:, 1]
