"""Baselines: predictors that do not use the encoder, for comparison with a probe.

n-grams are counted over all items, including the test items. This leaks no information about the test items, because
n-grams that do not occur in the training items get a weight of 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import MultinomialNB
from threadpoolctl import threadpool_limits

from bgt_core.vectors.linear_probe import LinearProbe
from probes.results.store import MAJORITY
from probes.task import count_words

MANY_LABELS = 50  # from this number of labels, naive Bayes replaces logistic regression, which would take hours
FEATURES = 20_000  # maximum number of n-grams; the most frequent are kept

Inputs = Callable[[Sequence[str]], np.ndarray | csr_matrix]  # a function that turns N sentences into features, (N, F)


class MajorityProbe(DummyClassifier):
    """Predicts the most frequent label for every item; its probabilities are the labels' frequencies in training."""

    def __init__(self) -> None:
        super().__init__(strategy="prior")

    def fit(self, X: np.ndarray, y: np.ndarray, dev: object = None) -> MajorityProbe:
        return super().fit(X, y)


class BagProbe(ClassifierMixin, BaseEstimator):
    """Logistic regression on sparse n-gram counts. The L2 penalty is lowered while this reduces the dev loss."""

    def __init__(self, strengths: Sequence[float] = (0.01, 0.1, 1.0)):
        self.strengths = strengths

    @threadpool_limits.wrap(limits=1)
    def fit(self, X: csr_matrix, y: np.ndarray, dev: tuple[csr_matrix, np.ndarray]) -> BagProbe:
        """Fit to counts (N, features) and labels (N,), and choose the penalty by the loss on the dev items."""
        self.classes_, least_loss = np.unique(y), np.inf
        known = np.isin(dev[1], self.classes_)
        for strength in self.strengths:
            if len(self.classes_) < MANY_LABELS:
                probe = LogisticRegression(C=strength, max_iter=1_000, tol=1e-3)
            else:
                probe = MultinomialNB(alpha=1 / strength)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                probe.fit(X, y)
            loss = log_loss(dev[1][known], probe.predict_proba(dev[0][known]), labels=self.classes_)
            if loss >= least_loss:
                break
            least_loss, self.probe_, its_warnings = loss, probe, caught
        for warning in its_warnings:
            warnings.warn(warning.message, stacklevel=2)
        return self

    def predict_log_proba(self, X: csr_matrix) -> np.ndarray:
        """Return the natural log-probability of each of the K labels for each item, (N, K)."""
        return np.log(self.probe_.predict_proba(X).clip(min=np.finfo(np.float32).tiny))

    def predict(self, X: csr_matrix) -> np.ndarray:
        """Predict the labels (N,) of counts (N, features)."""
        return self.probe_.predict(X)


def lengths(sentences: Sequence[str]) -> np.ndarray:
    """Count the words and the characters of each of N sentences, (N, 2)."""
    return np.array([(count_words(sentence), len(sentence)) for sentence in sentences], dtype=np.float32)


def count_grams(sentences: Sequence[str], **options: object) -> csr_matrix:
    """Count the n-grams that occur in at least two sentences, (N, n-grams). `options` are passed to CountVectorizer."""
    return CountVectorizer(min_df=2, max_features=FEATURES, dtype=np.float32, **options).fit_transform(sentences)


# The baselines by name: a function that computes the features of sentences, and one that makes the classifier.
BASELINES: dict[str, tuple[Inputs, Callable[[], ClassifierMixin]]] = {
    MAJORITY: (lambda sentences: np.zeros((len(sentences), 1), dtype=np.float32), MajorityProbe),
    "length": (lengths, LinearProbe),
    "word 1-2-grams": (partial(count_grams, token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2)), BagProbe),
    "character 3-5-grams": (partial(count_grams, analyzer="char", ngram_range=(3, 5)), BagProbe),
}
