"""Probes against scikit-learn's own checks and solver, and data whose best accuracy is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from probes.classifiers.classifier import STRENGTHS, LinearProbe, MLPProbe
from probes.classifiers.lbfgs import principal_axes
from tests.close import assert_close

PROBES = [LinearProbe(), MLPProbe(max_epochs=300)]


def gaussians(items: int, width: int, distance: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two balanced normal clouds, `distance` apart along one direction in an oblique, badly scaled space."""
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


@pytest.mark.parametrize("probe", PROBES, ids=["linear", "mlp"])
def test_two_gaussians_are_told_apart_at_the_bayes_rate(probe: LinearProbe | MLPProbe) -> None:
    train, test = gaussians(8_000, 10, 2.0), gaussians(8_000, 10, 2.0, seed=1)
    accuracy = probe.fit(*train).score(*test)
    assert accuracy == pytest.approx(norm.cdf(1.0), abs=3 * np.sqrt(0.84 * 0.16 / 8_000))


@pytest.mark.parametrize("classes", [2, 5])
def test_every_strength_is_at_the_optimum_that_scikit_learn_finds(classes: int) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((600, 8)) @ rng.standard_normal((8, 8))
    scores = vectors @ rng.standard_normal((8, classes)) + 2 * rng.gumbel(size=(600, classes))
    labels, standard = scores.argmax(1), (vectors - vectors.mean(0)) / vectors.std(0)
    for strength in STRENGTHS:
        probe = LinearProbe(strengths=[strength], tolerance=1e-9).fit(vectors, labels, (vectors, labels))
        exact = LogisticRegression(C=strength, tol=1e-8, max_iter=10_000)
        if classes == 2:  # scikit-learn has one column then; two opposite halves of it are penalised half as much
            exact.set_params(C=2 * strength)
        exact.fit(standard, labels)
        assert probe.converged_
        assert_close(probe.predict_proba(vectors), exact.predict_proba(standard), 2e-3)
    together = LinearProbe(tolerance=1e-9).fit(vectors, labels, (vectors, labels))
    assert together.strength_ == max(STRENGTHS)  # chosen on what it was fitted on: the weakest penalty
    assert_close(together.predict_proba(vectors), probe.predict_proba(vectors), 2e-3)


@pytest.mark.parametrize(("items", "used"), [(120, 200), (120, 300), (400, 90)], ids=["wide", "both", "unused"])
def test_vectors_that_do_not_fill_their_space_are_fitted_as_well(items: int, used: int) -> None:
    """Fewer items than columns, columns that are never used, and both."""
    rng = np.random.default_rng(0)
    vectors = np.zeros((items, 300), np.float32)
    vectors[:, rng.permutation(300)[:used]] = rng.standard_normal((items, used))
    labels = rng.integers(0, 3, items)
    scale = vectors.std(0, dtype=np.float64)
    standard = (vectors - vectors.mean(0, dtype=np.float64)) / np.where(scale, scale, 1)
    for strength in (0.001, 0.1):
        probe = LinearProbe(strengths=[strength], tolerance=1e-9).fit(vectors, labels, (vectors, labels))
        exact = LogisticRegression(C=strength, tol=1e-8, max_iter=10_000).fit(standard, labels)
        assert probe.converged_
        assert_close(probe.predict_proba(vectors), exact.predict_proba(standard), 2e-3)


def test_thousands_of_columns_with_equal_variances_have_axes() -> None:
    """As of tf-idf: of 8,000 columns 500 are used, half of them once, so that many variances are equal, most zero."""
    rng = np.random.default_rng(0)
    vectors = torch.zeros(300, 8_000)
    vectors[torch.arange(250), torch.arange(250)] = 300**0.5
    vectors[:, 250:500] = torch.from_numpy(rng.standard_normal((300, 250)).astype(np.float32))
    vectors -= vectors.mean(0)
    variances, axes = principal_axes(vectors)
    assert variances.shape == (300,) and axes.shape == (8_000, 300)
    assert_close(axes.mT @ axes, torch.eye(300))
    turned = vectors @ axes
    assert_close(turned @ axes.mT, vectors)
    assert_close(turned.mT @ turned / 300, variances.diag())


def test_full_vectors_are_turned_by_the_eigenvectors_of_their_covariance() -> None:
    vectors = torch.randn(50, 8, generator=torch.Generator().manual_seed(0))
    expected = torch.linalg.eigh(vectors.mT @ vectors / 50)
    assert all(map(torch.equal, principal_axes(vectors), expected))


def test_the_strength_has_the_least_loss_on_dev() -> None:
    train, dev = gaussians(120, 60, 1.5), gaussians(2_000, 60, 1.5, seed=1)
    probe = LinearProbe().fit(*train, dev)
    alone = []
    for strength in STRENGTHS:
        logs = LinearProbe(strengths=[strength]).fit(*train, dev).predict_log_proba(dev[0])
        alone.append(-logs[np.arange(2_000), dev[1]].mean())
    assert probe.strength_ == STRENGTHS[int(np.argmin(alone))]
    assert probe.strength_ not in (STRENGTHS[0], STRENGTHS[-1])  # else nothing was weighed
    assert_close(probe.dev_losses_, alone, 1e-3)


@pytest.mark.parametrize("probe", PROBES, ids=["linear", "mlp"])
def test_shuffled_labels_stay_at_chance(probe: LinearProbe | MLPProbe) -> None:
    vectors, labels = gaussians(4_000, 20, 3.0)
    mixed = np.random.default_rng(0).permutation(labels)
    score = probe.fit(vectors[:2_000], mixed[:2_000]).score(vectors[2_000:], mixed[2_000:])
    assert score == pytest.approx(0.5, abs=0.034)


def test_a_hidden_layer_sees_what_a_line_cannot() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.uniform(-1, 1, (4_000, 2))
    labels = np.where(vectors.prod(1) > 0, "same", "other")
    train, test = (vectors[:3_000], labels[:3_000]), (vectors[3_000:], labels[3_000:])
    assert LinearProbe().fit(*train).score(*test) < 0.6
    assert MLPProbe().fit(*train).score(*test) > 0.95


def test_a_thousand_classes() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(4_000) % 1_000
    vectors = rng.standard_normal((1_000, 32))[labels] + 0.2 * rng.standard_normal((4_000, 32))
    probe = LinearProbe(strengths=[1.0]).fit(vectors[:3_000], labels[:3_000], (vectors[3_000:], labels[3_000:]))
    assert probe.score(vectors[3_000:], labels[3_000:]) > 0.97


@pytest.mark.parametrize("probe", [LinearProbe(max_evaluations=1), MLPProbe(max_epochs=1)], ids=["linear", "mlp"])
def test_stopping_too_early_is_said(probe: LinearProbe | MLPProbe) -> None:
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        probe.fit(*gaussians(400, 5, 1.0))
    assert not probe.converged_


def test_dev_items_of_unseen_labels_choose_nothing() -> None:
    train, (vectors, labels) = gaussians(200, 3, 2.0), gaussians(100, 3, 2.0, seed=1)
    known, strange = LinearProbe().fit(*train, (vectors, labels)), labels.copy()
    strange[:10] = 7
    probe = LinearProbe().fit(*train, (vectors, strange))
    assert probe.classes_.tolist() == [0, 1]
    assert np.isfinite(probe.dev_losses_).all()
    assert probe.strength_ == known.strength_


def test_the_seed_draws_the_tenth_that_chooses_and_nothing_else() -> None:
    vectors, labels = gaussians(300, 4, 1.0)
    first, again, other = (LinearProbe(random_state=seed).fit(vectors, labels) for seed in (1, 1, 2))
    assert (first.predict_proba(vectors) == again.predict_proba(vectors)).all()
    assert (first.predict_proba(vectors) != other.predict_proba(vectors)).any()
    dev = vectors, labels
    given = [LinearProbe(random_state=seed).fit(vectors, labels, dev).predict_proba(vectors) for seed in (1, 2)]
    assert (given[0] == given[1]).all()
