"""What a probe must beat: predictors that never see the model."""

from __future__ import annotations

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from probes.classifier import Make, logistic
from probes.tasks.length import words

MAJORITY = "majority"


def majority(strength: float) -> Pipeline:
    """The most frequent label of the training items."""
    return make_pipeline(DummyClassifier(strategy="most_frequent"))


def length(strength: float) -> Pipeline:
    """Number of words and of characters."""
    return Pipeline([("sizes", FunctionTransformer(_sizes)), *logistic(strength).steps])


def word_bag(strength: float) -> Pipeline:
    """Which words, marks, and pairs of neighbours occur; counts, of those seen twice in training."""
    bag = CountVectorizer(token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2), min_df=2, dtype=np.float64)
    return make_pipeline(bag, LogisticRegression(C=strength, max_iter=1_000, tol=1e-3))


def _sizes(sentences: np.ndarray) -> np.ndarray:
    return np.array([(words(sentence), len(sentence)) for sentence in sentences], dtype=np.float64)  # (N, 2)


# name -> probe, strengths of its penalty
BASELINES: dict[str, tuple[Make, tuple[float, ...]]] = {
    MAJORITY: (majority, (1.0,)),
    "length": (length, (1.0,)),
    "word 1-2-grams": (word_bag, (0.1, 1.0, 10.0)),
}
