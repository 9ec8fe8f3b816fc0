"""The probes: logistic regression and a network with one hidden layer, as scikit-learn estimators.

Both standardise by their training items, train all strengths of the L2 penalty at once and keep the one with
the least cross-entropy on dev, so that accuracy, codelength and V-information describe the same probe.
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

from probes.classifiers.lbfgs import minimise
from probes.classifiers.senteval import Stack, forward

STRENGTHS = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)  # C, the inverse of the L2 penalty, as in scikit-learn
MIN_ITEMS = 50  # with fewer, none is held out to choose a strength: the strongest penalty is used
HELD_OUT = 0.1  # fraction of the items for choosing, without dev items
MAX_EVALUATIONS = 200  # of a linear probe's loss

Seed = int | np.random.RandomState | None  # as scikit-learn takes it
Labelled = tuple[np.ndarray, np.ndarray]  # (N, D) vectors and their (N,) labels
Layers = list[tuple[np.ndarray, np.ndarray]]  # weight (in, out) and bias (out,), float64


class FittedStrength(NamedTuple):
    """The result of training one strength."""

    layers: Layers
    converged: bool


class _Probe(ClassifierMixin, BaseEstimator):
    """The common part of both probes: checks, standardising, the choice of a strength, prediction.

    After `fit`: `classes_` (K,), `layers_` on standardised vectors, `strength_` (the chosen one), `dev_losses_` (nats
    per item of each strength; empty if there were too few items to choose), `converged_`, `n_features_in_`.
    """

    strengths: Sequence[float]
    random_state: Seed

    # One thread: on a busy machine several waste minutes, and small matrices gain little.
    @threadpool_limits.wrap(limits=1)
    @torch.inference_mode()
    def fit(self, X: np.ndarray, y: Any, dev: Labelled | None = None) -> _Probe:
        """Fit (N, D) vectors and N labels; the strength is chosen on `dev`, or else on a random tenth of the items.

        Warns (ConvergenceWarning) if the chosen strength has not converged; ValueError for invalid arrays or a single
        class.
        """
        X, y = validate_data(self, X, y)
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
        choosing = train if dev is None else self._tensors(validate_data(self, dev[0], reset=False), np.asarray(dev[1]))
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
        X = validate_data(self, X, reset=False)
        return log_softmax(_scores(self.layers_, (X - self.mean_) / self.scale_), axis=1)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities of `classes_`, (N, K)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The most probable classes, (N,)."""
        most_probable = self.predict_log_proba(X).argmax(1)
        return self.classes_[most_probable]

    def _train(
        self, train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor], strengths: Sequence[float], seed: int
    ) -> list[FittedStrength]:
        """Fit each strength to `train`, standardised vectors and numbers of classes; `dev` may stop it."""
        raise NotImplementedError

    def _tensors(self, vectors: np.ndarray, labels: np.ndarray) -> tuple[Tensor, Tensor]:
        """Standardised float32 vectors and numbers of classes, of the items whose label occurs in train."""
        known = np.isin(labels, self.classes_)
        standard = (vectors[known] - self.mean_.astype(np.float32)) / self.scale_.astype(np.float32)
        return torch.from_numpy(standard.astype(np.float32, copy=False)), torch.from_numpy(
            np.searchsorted(self.classes_, labels[known])
        )


class LinearProbe(_Probe):
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


class MLPProbe(_Probe):
    """Linear, sigmoid, linear; Adam on minibatches, and each strength stops once dev stops improving."""

    def __init__(
        self,
        hidden: int = 50,
        strengths: Sequence[float] = STRENGTHS[2:],
        learning_rate: float = 3e-3,
        batch_size: int = 128,
        patience: int = 5,
        max_epochs: int = 200,
        random_state: Seed = 0,
    ):
        self.hidden = hidden
        self.strengths = strengths
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.patience = patience  # epochs without a better dev loss until training ends
        self.max_epochs = max_epochs  # a strength that has not stopped by then has not converged
        self.random_state = random_state

    def _train(
        self, train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor], strengths: Sequence[float], seed: int
    ) -> list[FittedStrength]:
        vectors, labels = train[0], train[1].numpy()
        penalties = [1 / (strength * len(labels)) for strength in strengths]
        stack = Stack([vectors.shape[1], self.hidden, len(self.classes_)], penalties, seed, self.learning_rate)
        order = np.random.default_rng(seed)
        best: dict[int, tuple[float, int, Layers]] = {}  # strength -> its least loss, the epoch, the layers then
        running = list(range(len(strengths)))  # running[i] is the strength of network i of the stack
        for epoch in range(self.max_epochs):
            stack.train(vectors, labels, order.permutation(len(labels)), self.batch_size)
            scores = forward(stack.parameters, dev[0])  # (S, K, N)
            targets = dev[1].expand(len(running), -1)  # (S, N)
            losses = torch.nn.functional.cross_entropy(scores, targets, reduction="none").mean(1)
            for network, (strength, loss) in enumerate(zip(running, losses.tolist(), strict=True)):
                if strength not in best or loss < best[strength][0]:
                    best[strength] = loss, epoch, _layers([part[network] for part in stack.parameters])
            survivors = [i for i, strength in enumerate(running) if epoch - best[strength][1] < self.patience]
            if len(survivors) < len(running):
                running = [running[network] for network in survivors]
                if not running:
                    break
                stack.keep(survivors)
        return [FittedStrength(best[strength][2], strength not in running) for strength in range(len(strengths))]


def _layers(parameters: Sequence[Tensor]) -> Layers:
    """Weight (out, in), bias (out, 1), ... -> copies as `Layers`."""
    arrays = [part.double().numpy() for part in parameters]
    return [(weight.T, bias[:, 0]) for weight, bias in zip(arrays[::2], arrays[1::2], strict=True)]


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
