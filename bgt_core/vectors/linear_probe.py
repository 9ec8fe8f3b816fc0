"""The linear probe, as a scikit-learn estimator: the one probe of every task and table.

A probe standardises by its training items, trains all strengths of the L2 penalty at once and keeps the one with the
least cross-entropy on dev, so that accuracy, codelength and V-information describe the same probe. What it tells does
not depend on the scale or the origin of a unit.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import expit, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data
from threadpoolctl import threadpool_limits
from torch import Tensor

from bgt_core.device import usual_defaults
from bgt_core.vectors.lbfgs import minimise

STRENGTHS = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)  # C, the inverse of the L2 penalty, as in scikit-learn
MIN_ITEMS = 50  # with fewer, none is held out to choose a strength: the strongest penalty is used
HELD_OUT = 0.1  # fraction of the items for choosing, without dev items
MAX_EVALUATIONS = 200  # of a linear probe's loss
BLOCK = 4_096  # items standardised at once, in float64

Seed = int | np.random.RandomState | None  # as scikit-learn takes it
Labelled = tuple[np.ndarray, np.ndarray]  # (N, D) vectors and their (N,) labels
Layers = list[tuple[np.ndarray, np.ndarray]]  # weight (in, out) and bias (out,), float64


class FittedStrength(NamedTuple):
    """The result of training one strength."""

    layers: Layers
    converged: bool


class Probe(ClassifierMixin, BaseEstimator):
    """The common part of all probes: checks, standardising, the choice of a strength, prediction.

    After `fit`: `classes_` (K,), `layers_` on standardised vectors, `strength_` (the chosen one), `dev_losses_` (nats
    per item of each strength; empty if there were too few items to choose), `converged_`, `n_features_in_`.
    """

    strengths: Sequence[float]
    random_state: Seed

    # One thread: on a busy machine several waste minutes, and small matrices gain little.
    @threadpool_limits.wrap(limits=1)
    @usual_defaults()
    @torch.inference_mode()
    def fit(self, X: np.ndarray, y: Any, dev: Labelled | None = None) -> Probe:
        """Fit (N, D) vectors and N labels; the strength is chosen on `dev`, or else on a random tenth of the items.

        Warns (ConvergenceWarning) if the chosen strength has not converged; ValueError for invalid arrays or a single
        class.
        """
        X, y = self._valid(X, y)
        check_classification_targets(y)
        self.classes_: np.ndarray = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"All labels are of one class, '{self.classes_[0]}': a probe needs two.")
        random = check_random_state(self.random_state)
        strengths = sorted(self.strengths)
        if dev is None and len(y) >= MIN_ITEMS:
            held_out, kept = np.split(random.permutation(len(y)), [round(HELD_OUT * len(y))])
            if len(np.unique(y[kept])) == len(self.classes_):
                X, y, dev = X[kept], y[kept], (X[held_out], y[held_out])
        self.mean_, self.scale_ = X.mean(0, dtype=np.float64), X.std(0, dtype=np.float64)
        self.scale_[self.scale_ <= 1e-7 * np.abs(self.mean_)] = 1.0  # constant columns
        if dev is None or not np.isin(dev[1], self.classes_).any():
            dev, strengths = None, strengths[:1]
        train = self._tensors(X, y)
        choosing = train if dev is None else self._tensors(self._valid(dev[0], reset=False), np.asarray(dev[1]))
        fits = self._train(train, choosing, strengths, random.randint(2**31))

        self.dev_losses_ = np.array([] if dev is None else [_loss(fit.layers, *choosing) for fit in fits])
        best = int(self.dev_losses_.argmin()) if dev is not None else 0  # the strongest penalty if several tie
        self.strength_, (self.layers_, self.converged_) = strengths[best], fits[best]
        if not self.converged_:
            warnings.warn(
                f"The probe of strength {self.strength_:g} did not converge.", ConvergenceWarning, stacklevel=2
            )
        return self

    def predict_log_proba(self, X: np.ndarray) -> np.ndarray:
        """Natural logarithms of the probabilities of `classes_`, (N, K)."""
        check_is_fitted(self)
        X = self._valid(X, reset=False)
        return log_softmax(_scores(self.layers_, (X - self.mean_) / self.scale_), axis=1)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities of `classes_`, (N, K)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The most probable classes, (N,)."""
        most_probable = self.predict_log_proba(X).argmax(1)
        return self.classes_[most_probable]

    def _valid(self, *given: Any, **settings: Any) -> Any:
        """scikit-learn's check, whose sum of large float32 numbers may be infinity less infinity."""
        with np.errstate(invalid="ignore"):
            return validate_data(self, *given, **settings)

    def _train(
        self, train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor], strengths: Sequence[float], seed: int
    ) -> list[FittedStrength]:
        """Fit each strength to `train`, standardised vectors and numbers of classes; `dev` may stop it."""
        raise NotImplementedError

    def _tensors(self, vectors: np.ndarray, labels: np.ndarray) -> tuple[Tensor, Tensor]:
        """Standardised float32 vectors and numbers of classes, of the items whose label occurs in train."""
        known = np.flatnonzero(np.isin(labels, self.classes_))
        standard = np.empty((len(known), vectors.shape[1]), np.float32)
        for start in range(0, len(known), BLOCK):
            part = slice(start, start + BLOCK)
            standard[part] = (vectors[known[part]] - self.mean_) / self.scale_
        return torch.from_numpy(standard), torch.from_numpy(np.searchsorted(self.classes_, labels[known]))


class LinearProbe(Probe):
    """Multinomial logistic regression at its optimum; the seed only matters without dev items."""

    def __init__(
        self,
        strengths: Sequence[float] = STRENGTHS,
        tolerance: float = 3e-5,
        max_evaluations: int | None = None,
        random_state: Seed = 0,
    ):
        self.strengths = strengths
        self.tolerance = tolerance  # expected decrease in nats per item below which it has converged
        self.max_evaluations = max_evaluations  # of the loss; None: MAX_EVALUATIONS. Warns if not converged by then
        self.random_state = random_state

    def _train(
        self, train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor], strengths: Sequence[float], seed: int
    ) -> list[FittedStrength]:
        evaluations = MAX_EVALUATIONS if self.max_evaluations is None else self.max_evaluations
        optimum = minimise(*train, len(self.classes_), strengths, self.tolerance, evaluations)
        weights, biases = optimum.weights.double().numpy(), optimum.biases.double().numpy()
        converged = optimum.converged.tolist()
        return [
            FittedStrength([(weight, bias)], done)
            for weight, bias, done in zip(weights, biases, converged, strict=True)
        ]


def held_out_hits(vectors: np.ndarray, labels: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Test a linear probe on each fold: the next fold chooses its strength, the others train it.

    With fewer than `MIN_ITEMS` to train and choose on, all of these train the strongest penalty.

    Args:
        vectors: (N, D), in any units.
        labels: (N,).
        folds: Fold of each item, (N,), from 0 on; items that belong together are in one fold.

    Returns:
        Whether the probe is right about each item, (N,) of 0 and 1.
    """
    hits = np.zeros(len(labels))
    for fold in np.unique(folds):
        test, dev = folds == fold, folds == (fold + 1) % (folds.max() + 1)
        train = ~(test | dev)
        chooses = (~test).sum() >= MIN_ITEMS and dev.any() and len(np.unique(labels[train])) > 1
        if not chooses:
            train = dev = ~test
        if len(known := np.unique(labels[train])) < 2:
            hits[test] = np.isin(labels[test], known)
            continue
        probe = LinearProbe(STRENGTHS if chooses else STRENGTHS[:1])
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # close to its optimum all the same
            probe.fit(vectors[train], labels[train], (vectors[dev], labels[dev]))
        hits[test] = probe.predict(vectors[test]) == labels[test]
    return hits


def _scores(layers: Layers, vectors: np.ndarray) -> np.ndarray:
    """(N, D) -> (N, K)."""
    *hidden, (weight, bias) = layers
    for hidden_weight, hidden_bias in hidden:
        vectors = expit(vectors @ hidden_weight + hidden_bias)
    return vectors @ weight + bias


def _loss(layers: Layers, vectors: Tensor, labels: Tensor) -> float:
    """Cross-entropy in nats per item."""
    logs = log_softmax(_scores(layers, vectors.double().numpy()), axis=1)
    return -float(logs[np.arange(len(labels)), labels.numpy()].mean())
