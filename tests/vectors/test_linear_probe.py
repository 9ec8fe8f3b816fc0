"""Compare probes with scikit-learn's checks and solver, and with the best accuracy on made-up data."""

from __future__ import annotations

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
    """Draw two balanced Gaussian classes, `distance` apart along one direction, in correlated, badly scaled units."""
    rng = np.random.default_rng(seed)
    labels = np.arange(items) % 2
    vectors = rng.standard_normal((items, width))
    vectors[:, 0] += distance * (labels - 0.5)
    mixing = np.random.default_rng(99).standard_normal((width, width)) * np.geomspace(1, 30, width)
    return (vectors @ mixing + 5).astype(np.float32), labels


@pytest.mark.parametrize("probe", PROBES, ids=["linear", "mlp"])
def test_scikit_learn_takes_it_for_an_estimator(probe: LinearProbe | MLPProbe) -> None:
    checks = check_estimator(probe, on_skip=None)
    assert {check["status"] for check in checks} <= {"passed", "skipped"}
    assert sum(check["status"] == "passed" for check in checks) > 40


@pytest.mark.parametrize("classes", [2, 5])
def test_every_strength_is_at_the_optimum_that_scikit_learn_finds(classes: int) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((600, 8)) @ rng.standard_normal((8, 8))
    scores = vectors @ rng.standard_normal((8, classes)) + 2 * rng.gumbel(size=(600, classes))
    labels, standard = scores.argmax(1), (vectors - vectors.mean(0)) / vectors.std(0)
    for strength in STRENGTHS:
        probe = LinearProbe(strengths=[strength], tolerance=1e-8).fit(vectors, labels, (vectors, labels))
        exact = LogisticRegression(C=strength, tol=1e-8, max_iter=10_000)
        if classes == 2:  # scikit-learn has one column of weights; as two opposite halves, its penalty is halved
            exact.set_params(C=2 * strength)
        exact.fit(standard, labels)
        assert probe.converged_
        assert_close(probe.predict_proba(vectors), exact.predict_proba(standard), 2e-3)
    together = LinearProbe(tolerance=1e-8).fit(vectors, labels, (vectors, labels))
    assert together.strength_ == max(STRENGTHS)  # chosen on the training items: the weakest penalty
    assert_close(together.predict_proba(vectors), probe.predict_proba(vectors), 2e-3)


@pytest.mark.parametrize(("items", "used"), [(120, 200), (120, 300), (400, 90)], ids=["wide", "both", "unused"])
def test_vectors_that_do_not_fill_their_space_are_fitted_as_well(items: int, used: int) -> None:
    """There are fewer items than columns, or columns that are always 0, or both."""
    rng = np.random.default_rng(0)
    vectors = np.zeros((items, 300), np.float32)
    vectors[:, rng.permutation(300)[:used]] = rng.standard_normal((items, used))
    labels = rng.integers(0, 3, items)
    scale = vectors.std(0, dtype=np.float64)
    standard = (vectors - vectors.mean(0, dtype=np.float64)) / np.where(scale, scale, 1)
    for strength in (0.001, 0.1):
        probe = LinearProbe(strengths=[strength], tolerance=1e-8).fit(vectors, labels, (vectors, labels))
        exact = LogisticRegression(C=strength, tol=1e-8, max_iter=10_000).fit(standard, labels)
        assert probe.converged_
        assert_close(probe.predict_proba(vectors), exact.predict_proba(standard), 2e-3)


def test_the_strength_has_the_least_loss_on_dev() -> None:
    train, dev = gaussians(120, 60, 1.5), gaussians(2_000, 60, 1.5, seed=1)
    probe = LinearProbe(tolerance=1e-7).fit(*train, dev)
    alone = []
    for strength in STRENGTHS:
        logs = LinearProbe(strengths=[strength], tolerance=1e-7).fit(*train, dev).predict_log_proba(dev[0])
        alone.append(-logs[np.arange(2_000), dev[1]].mean())
    assert probe.strength_ == STRENGTHS[int(np.argmin(alone))]
    assert probe.strength_ not in (STRENGTHS[0], STRENGTHS[-1])  # the optimum is inside the range
    assert_close(probe.dev_losses_, alone, 1e-3)


@pytest.mark.parametrize("probe", [LinearProbe(max_evaluations=1), MLPProbe(max_epochs=1)], ids=["linear", "mlp"])
def test_stopping_too_early_is_said(probe: LinearProbe | MLPProbe) -> None:
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        probe.fit(*gaussians(400, 5, 1.0))
    assert not probe.converged_


def test_the_seed_draws_the_tenth_that_chooses_and_nothing_else() -> None:
    vectors, labels = gaussians(300, 4, 1.0)
    first, again, other = (LinearProbe(random_state=seed).fit(vectors, labels) for seed in (1, 1, 2))
    assert (first.predict_proba(vectors) == again.predict_proba(vectors)).all()
    assert (first.predict_proba(vectors) != other.predict_proba(vectors)).any()
    dev = vectors, labels
    given = [LinearProbe(random_state=seed).fit(vectors, labels, dev).predict_proba(vectors) for seed in (1, 2)]
    assert (given[0] == given[1]).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_units_of_any_scale_and_origin_are_read_alike(kind: type) -> None:
    """Items standardised by hand in float64 give the same probabilities."""
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


def test_a_fold_is_predicted_by_a_probe_that_has_not_seen_it() -> None:
    """It equals scikit-learn's regression at the strength that the next fold chooses."""
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
    assert (held_out_hits(vectors, labels, folds) != right).sum() <= 1  # one item on the boundary may differ


def test_a_fold_whose_others_have_one_label_gets_that() -> None:
    labels = np.array(["b", *"aaaaaaa"])
    folds = np.array([0, 0, 0, 1, 1, 2, 3, 4])
    np.testing.assert_array_equal(held_out_hits(np.arange(8.0)[:, None], labels, folds)[:3], [0, 1, 1])
