"""Platt's scaling, against scikit-learn's and against probabilities that are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from bgt_core.errors import DataError
from bgt_core.questions.ranking import UNCALIBRATED, Platt, fit_platt


class GivenScores(ClassifierMixin, BaseEstimator):
    """A classifier whose score is its one feature."""

    def fit(self, features: np.ndarray, labels: np.ndarray) -> GivenScores:
        self.classes_ = np.unique(labels)
        return self

    def predict(self, features: np.ndarray) -> np.ndarray:
        return features[:, 0] > 0

    def decision_function(self, features: np.ndarray) -> np.ndarray:
        return features[:, 0]


def drawn(slope: float, offset: float, count: int, spread: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and labels with these probabilities."""
    rng = np.random.default_rng(0)
    scores = rng.normal(0.5, spread, count)
    return scores, rng.random(count) < expit(slope * scores + offset)


@pytest.mark.parametrize(("slope", "offset", "spread"), [(0.4, -1.0, 3.0), (2.0, 3.0, 40.0)])
def test_the_numbers_are_those_of_scikit_learn(slope: float, offset: float, spread: float) -> None:
    scores, labels = drawn(slope, offset, 400, spread)
    ours = fit_platt(scores, labels)
    classifier = FrozenEstimator(GivenScores().fit(scores[:, None], labels))
    theirs = CalibratedClassifierCV(classifier, method="sigmoid").fit(scores[:, None], labels)
    probabilities = theirs.predict_proba(scores[:, None])[:, 1]
    assert ours(scores) == pytest.approx(probabilities, rel=1e-4)  # where two searches for an optimum end


def test_the_unit_of_a_score_changes_nothing() -> None:
    scores, labels = drawn(25.0, -20.0, 400, spread=0.1)
    probabilities = fit_platt(scores, labels)(scores)
    for factor in (1e-3, 1e4):
        assert fit_platt(factor * scores, labels)(factor * scores) == pytest.approx(probabilities, rel=1e-7)


def test_the_truth_is_found_again() -> None:
    scores, labels = drawn(0.4, -1.0, 100_000)
    fitted = fit_platt(scores, labels)
    assert fitted.slope == pytest.approx(0.4, abs=0.02) and fitted.offset == pytest.approx(-1.0, abs=0.02)


def test_separated_scores_give_probabilities_short_of_one() -> None:
    scores = np.array([-3.0, -2.0, 2.0, 3.0])
    probabilities = fit_platt(scores, scores > 0)(scores)
    assert 0.7 < probabilities[-1] < 1 and 0 < probabilities[0] < 0.3


def test_scores_that_fall_with_labels_are_refused() -> None:
    scores, labels = drawn(0.4, -1.0, 300)
    with pytest.raises(DataError, match="do not rise with the labels"):
        fit_platt(-scores, labels)


def test_uncalibrated_log_odds_are_the_models_probabilities() -> None:
    assert Platt(1.0, 0.0) == UNCALIBRATED
    np.testing.assert_allclose(UNCALIBRATED(np.array([0.0, np.log(3)])), [0.5, 0.75])
