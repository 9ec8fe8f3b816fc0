"""Words alone, against scikit-learn, by hand, and against scipy's minimum."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from bgt_core.evaluation.pairs.baselines import TfIdf, TfIdfClassifier, bag_of_words
from bgt_core.evaluation.pairs.files import LabelledPairs

SAME, THAT = "how old is city {}", "how old is that city {}"  # of every fifth pair the other way round
ROWS = [(int(n % 3 == 0), SAME.format(n), (THAT if bool(n % 3) != (n % 5 == 0) else SAME).format(n)) for n in range(60)]


@pytest.fixture
def pairs() -> LabelledPairs:
    labels, left, right = zip(*ROWS, strict=True)
    return LabelledPairs("rows", np.array(labels, bool), left, right)


def test_a_bag_of_words_is_the_cosine_of_counts(pairs: LabelledPairs) -> None:
    counts = CountVectorizer(token_pattern=r"\w+").fit([*pairs.left, *pairs.right])
    expected = np.diag(cosine_similarity(counts.transform(pairs.left), counts.transform(pairs.right)))
    np.testing.assert_allclose(bag_of_words(pairs), expected)


def test_tfidf_and_logistic_regression_learn_which_word_tells() -> None:
    rows = [row for number, row in enumerate(ROWS) if number % 5]
    train, test = (
        LabelledPairs("part", np.array([row[0] for row in part], bool), *zip(*(row[1:] for row in part), strict=True))
        for part in (rows[:24], rows[24:])
    )
    classifier = TfIdfClassifier(train)
    probability = classifier(test)
    assert ((probability >= classifier.threshold) == test.labels).all()
    turned = LabelledPairs("turned", test.labels, test.right, test.left)
    np.testing.assert_allclose(classifier(turned), probability)


def test_tfidf_by_hand() -> None:
    """Two different sentences: "a" is in both, "b" and "c" are in one each, which has an idf of ln(3 / 2) + 1."""
    pairs = LabelledPairs("hand", np.array([True, False]), ["A b", "a, c"], ["A b", "A b"])
    rare = math.log(3 / 2) + 1
    assert TfIdf(pairs)(pairs).tolist() == pytest.approx([1, 1 / (1 + rare**2)])
    assert TfIdf(pairs, runs=2)(pairs).tolist() == pytest.approx([1, 1 / (1 + 2 * rare**2)])  # and the run of two
    assert TfIdf(pairs).vectors(["d e"]).nnz == 0


def test_the_classifier_is_the_minimum_of_the_penalised_loss() -> None:
    """By scipy: 10 times the sum of log-losses plus half the squared weights, over differing and shared words."""
    rng = np.random.default_rng(0)
    left, right = ([" ".join(rng.choice(list("abcd"), 4)) for _ in range(40)] for _ in range(2))
    pairs = LabelledPairs("drawn", rng.random(40) < 0.5, left, right)
    tfidf = TfIdf(pairs, runs=2)
    u, v = (tfidf.vectors(side).toarray() for side in (left, right))
    features = np.hstack([np.abs(u - v), u * v, np.ones((40, 1))])
    sign = np.where(pairs.labels, 1, -1)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (features @ weights)
        slope = -10 * features.T @ (sign * expit(-margin))
        penalised = np.append(weights[:-1], 0)  # not the intercept
        return 10 * np.logaddexp(0, -margin).sum() + penalised @ penalised / 2, slope + penalised

    best = minimize(loss, np.zeros(features.shape[1]), jac=True, tol=1e-8).x
    assert TfIdfClassifier(pairs)(pairs) == pytest.approx(expit(features @ best), abs=2e-3)  # where searches end
