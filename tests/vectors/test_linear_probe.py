"""Probes pass scikit-learn's tests of estimators, and predict what its logistic regression predicts."""

from collections.abc import Sequence

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from bgt_core.vectors.linear_probe import STRENGTHS, LinearProbe, held_out_hits
from probes.measures.measure import MLPProbe
from tests.close import assert_close

PROBES = [LinearProbe(), MLPProbe(max_epochs=300)]


def gaussians(items: int, width: int, distance: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw two Gaussian classes of equal size at this distance. Units are correlated and badly scaled."""
    rng = np.random.default_rng(seed)
    labels = np.arange(items) % 2
    vectors = rng.standard_normal((items, width))
    vectors[:, 0] += distance * (labels - 0.5)
    mixing = np.random.default_rng(99).standard_normal((width, width)) * np.geomspace(1, 30, width)
    return (vectors @ mixing + 5).astype(np.float32), labels


@pytest.mark.parametrize("probe", PROBES, ids=["linear", "mlp"])
def test_a_probe_passes_the_estimator_checks_of_scikit_learn(probe: LinearProbe | MLPProbe) -> None:
    checks = check_estimator(probe, on_skip=None)
    assert {check["status"] for check in checks} <= {"passed", "skipped"}
    assert sum(check["status"] == "passed" for check in checks) > 40


def check_optimum(vectors: np.ndarray, labels: np.ndarray, strengths: Sequence[float]) -> LinearProbe:
    """Compare a probe of each strength with scikit-learn's logistic regression. Return the last probe."""
    standard = StandardScaler().fit_transform(vectors.astype(float))
    for strength in strengths:
        probe = LinearProbe(strengths=[strength], tolerance=1e-8).fit(vectors, labels, (vectors, labels))
        # scikit-learn has one weight column w for two classes; our columns w/2 and -w/2 have half its penalty
        exact = LogisticRegression(C=strength * (1 + (labels.max() == 1)), tol=1e-8, max_iter=10_000)
        assert probe.converged_
        assert_close(probe.predict_proba(vectors), exact.fit(standard, labels).predict_proba(standard), 2e-3)
    return probe


@pytest.mark.parametrize("classes", [2, 5])
def test_each_strength_is_at_the_optimum_that_scikit_learn_finds(classes: int) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((600, 8)) @ rng.standard_normal((8, 8))
    scores = vectors @ rng.standard_normal((8, classes)) + 2 * rng.gumbel(size=(600, classes))
    labels = scores.argmax(1)
    weakest = check_optimum(vectors, labels, STRENGTHS)
    together = LinearProbe(tolerance=1e-8).fit(vectors, labels, (vectors, labels))
    assert together.strength_ == max(STRENGTHS)  # the weakest penalty fits training items best
    assert_close(together.predict_proba(vectors), weakest.predict_proba(vectors), 2e-3)


@pytest.mark.parametrize(("items", "used"), [(120, 200), (120, 300), (400, 90)], ids=["both", "wide", "unused"])
def test_probes_are_at_the_optimum_with_few_items_and_constant_columns(items: int, used: int) -> None:
    """The optimum is found with fewer items than columns, with columns that are always 0, and with both."""
    rng = np.random.default_rng(0)
    vectors = np.zeros((items, 300), np.float32)
    vectors[:, rng.permutation(300)[:used]] = rng.standard_normal((items, used))
    check_optimum(vectors, rng.integers(0, 3, items), (0.001, 0.1))


def test_the_chosen_strength_has_the_lowest_loss_on_dev() -> None:
    train, dev = gaussians(120, 60, 1.5), gaussians(2_000, 60, 1.5, seed=1)
    probe = LinearProbe(tolerance=1e-7).fit(*train, dev)
    alone = []
    for strength in STRENGTHS:
        logs = LinearProbe(strengths=[strength], tolerance=1e-7).fit(*train, dev).predict_log_proba(dev[0])
        alone.append(-logs[np.arange(2_000), dev[1]].mean())
    assert probe.strength_ == STRENGTHS[int(np.argmin(alone))]
    assert probe.strength_ not in (STRENGTHS[0], STRENGTHS[-1])  # the best strength is inside the range
    assert_close(probe.dev_losses_, alone, 1e-3)


@pytest.mark.parametrize("probe", [LinearProbe(max_evaluations=1), MLPProbe(max_epochs=1)], ids=["linear", "mlp"])
def test_a_probe_warns_if_it_stops_before_it_converges(probe: LinearProbe | MLPProbe) -> None:
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        probe.fit(*gaussians(400, 5, 1.0))
    assert not probe.converged_


def test_the_seed_only_draws_the_tenth_that_chooses_the_strength() -> None:
    vectors, labels = gaussians(300, 4, 1.0)
    first, again, other = (LinearProbe(random_state=seed).fit(vectors, labels) for seed in (1, 1, 2))
    assert (first.predict_proba(vectors) == again.predict_proba(vectors)).all()
    assert (first.predict_proba(vectors) != other.predict_proba(vectors)).any()
    dev = vectors, labels
    given = [LinearProbe(random_state=seed).fit(vectors, labels, dev).predict_proba(vectors) for seed in (1, 2)]
    assert (given[0] == given[1]).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_scale_and_origin_of_units_change_nothing(kind: type) -> None:
    """The probabilities equal those of a probe whose items were standardised in float64 beforehand."""
    (vectors, labels), dev = gaussians(300, 12, 1.0), gaussians(200, 12, 1.0, seed=1)
    for scales, shift in [(np.geomspace(1e-30, 1e30, 12), 0.0), (np.geomspace(1e28, 1e-28, 12), 0), (1.0, 1e4)]:
        given, chooses = (
            (each * scales + shift).astype(kind) for each in (vectors.astype(float), dev[0].astype(float))
        )
        probe = LinearProbe().fit(given, labels, (chooses, dev[1]))
        mean, scale = given.astype(float).mean(0), given.astype(float).std(0)
        by_hand = [(each.astype(float) - mean) / scale for each in (given, chooses)]
        expected = LinearProbe().fit(by_hand[0], labels, (by_hand[1], dev[1]))
        assert probe.strength_ == expected.strength_
        np.testing.assert_allclose(probe.predict_proba(chooses), expected.predict_proba(by_hand[1]), rtol=1e-3)


def test_a_fold_is_predicted_by_a_probe_that_was_not_trained_on_it() -> None:
    """A fold is predicted as by scikit-learn's logistic regression with the penalty that is best on the next fold."""
    rng = np.random.default_rng(0)
    vectors, labels, folds = rng.standard_normal((300, 5)), rng.integers(0, 3, 300), rng.permutation(300) % 5
    vectors[:, 0] += labels
    vectors *= [1e4, 1e-4, 1, 1, 1]
    right = np.zeros(300)
    for fold in range(5):
        test, dev = folds == fold, folds == (fold + 1) % 5
        standard = StandardScaler().fit(vectors[~test & ~dev]).transform(vectors)
        probes = [LogisticRegression(C=c).fit(standard[~test & ~dev], labels[~test & ~dev]) for c in STRENGTHS]
        best = min(probes, key=lambda probe: log_loss(labels[dev], probe.predict_proba(standard[dev])))
        right[test] = best.predict(standard[test]) == labels[test]
    assert (held_out_hits(vectors, labels, folds) != right).sum() <= 1  # one item may be on the boundary of classes


def test_a_fold_is_predicted_with_the_only_label_of_the_other_folds() -> None:
    labels = np.array(["b", *"aaaaaaa"])
    folds = np.array([0, 0, 0, 1, 1, 2, 3, 4])
    np.testing.assert_array_equal(held_out_hits(np.arange(8.0)[:, None], labels, folds)[:3], [0, 1, 1])
