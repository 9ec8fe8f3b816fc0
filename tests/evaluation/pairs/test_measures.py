"""Measures of labelled pairs against scikit-learn, and against all thresholds tried."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score, roc_curve

from bgt_core.evaluation.bootstrap import resample
from bgt_core.evaluation.pairs.measures import RATES, accuracy, auc, best_threshold, f1, roc


@pytest.fixture(params=["all different", "many ties"])
def drawn(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    """Scores that know something of 200 labels."""
    rng = np.random.default_rng(0)
    labels = rng.random(200) < 0.4
    scores = rng.normal(labels * 0.8, 1)
    return (scores if request.param == "all different" else scores.round(), labels)


def times(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A resample written out."""
    return np.repeat(values, weights.astype(int))


def test_each_is_that_of_scikit_learn_in_every_resample(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    scores, labels = drawn
    weights = np.concatenate([np.ones((1, 200)), resample(np.random.default_rng(1), 200, 5)])
    judged = scores >= 0.5
    got = accuracy(weights, judged, labels), f1(weights, judged, labels), auc(weights, scores, labels)
    for row, weight in enumerate(weights):
        gold = times(weight, labels)
        assert got[0][row] == pytest.approx(accuracy_score(gold, times(weight, judged)), rel=1e-12)
        assert got[1][row] == pytest.approx(f1_score(gold, times(weight, judged)), rel=1e-12)
        assert got[2][row] == pytest.approx(roc_auc_score(gold, times(weight, scores)), rel=1e-12)


def test_the_curve_is_that_of_scikit_learn(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    scores, labels = drawn
    weights = np.concatenate([np.ones((1, 200)), resample(np.random.default_rng(1), 200, 5)])
    for weight, curve in zip(weights, roc(weights, scores, labels), strict=True):
        false, true, _ = roc_curve(times(weight, labels), times(weight, scores), drop_intermediate=False)
        assert curve == pytest.approx(np.interp(RATES, false, true), rel=1e-12)
        assert (np.diff(curve) >= 0).all() and curve[-1] == 1
        assert np.trapezoid(curve, RATES) == pytest.approx(auc(weight[None], scores, labels)[0], abs=0.01)


def test_by_hand() -> None:
    scores, labels = np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, True, False, True])
    one = np.ones((1, 4))
    assert auc(one, scores, labels)[0] == (2 + 1.5) / 4  # the tie is half a win
    assert f1(one, scores >= 0.4, labels)[0] == 2 * 2 / (2 * 2 + 1)
    curve = roc(one, scores, labels)[0]
    assert (curve[0], curve[25], curve[50], curve[100]) == (0.5, 0.75, 1, 1)
    assert best_threshold(scores, labels) == pytest.approx(0.25)  # as good as 0.6, and lower


def test_what_can_not_be_measured_is_chance() -> None:
    scores, labels = np.array([1.0, 2.0, 3.0]), np.array([True, False, True])
    weights = np.array([[2.0, 0.0, 1.0]])  # no pair that is not a duplicate was drawn
    assert auc(weights, scores, labels)[0] == 0.5
    np.testing.assert_array_equal(roc(weights, scores, labels)[0], RATES)
    assert f1(np.array([[0.0, 3.0, 0.0]]), np.zeros(3, bool), labels)[0] == 0


@pytest.mark.parametrize("seed", range(6))
def test_no_other_threshold_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, labels = rng.normal(size=30).round(seed % 3), rng.random(30) < (0.1, 0.5, 0.9)[seed % 3]
    edges = np.concatenate([[-9], np.unique(scores), [9]])
    best = max(((scores >= edge) == labels).mean() for edge in edges)
    threshold = best_threshold(scores, labels)
    assert ((scores >= threshold) == labels).mean() == best
    assert np.isfinite(threshold)


def test_all_or_none_may_be_best() -> None:
    scores = np.array([0.1, 0.2, 0.3])
    assert (scores >= best_threshold(scores, np.array([True, True, True]))).all()
    assert not (scores >= best_threshold(scores, np.array([False, False, False]))).any()


def test_one_pair_of_each_kind_is_enough_and_equals_are_taken_for_the_same() -> None:
    one, right = np.ones((1, 2)), np.array([False, True])
    assert auc(one, np.array([1.0, 2.0]), right) == 1 and auc(one, np.array([2.0, 1.0]), right) == 0
    assert best_threshold(np.array([0.5, 0.5]), right) == 0.5  # either way one of two is right
    np.testing.assert_array_equal(roc(one, np.array([1.0, 2.0]), right), np.ones((1, 101)))
    np.testing.assert_array_equal(roc(one, np.array([2.0, 1.0]), right), [[0.0] * 100 + [1.0]])
