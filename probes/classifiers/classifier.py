"""The probes: logistic regression and a network with one hidden layer, as scikit-learn estimators.

Both standardise by what they are fitted on, train every strength of the L2 penalty at once and keep the one whose
cross-entropy on dev is least, so that accuracy, codelength and V-information speak of one probe.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

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

STRENGTHS = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)  # C, the inverse of the L2 penalty, as scikit-learn counts it
FEW = 50  # items below which none is spared to choose a strength: the strongest penalty is taken
SPARED = 0.1  # share of the items that choose, where no dev is given

Seed = int | np.random.RandomState | None  # as scikit-learn takes it
Labelled = tuple[np.ndarray, np.ndarray]  # (N, D) vectors and their (N,) labels
Layers = list[tuple[np.ndarray, np.ndarray]]  # weight (in, out) and bias (out,), float64


class Fit(NamedTuple):
    """What training one strength gives."""

    layers: Layers
    converged: bool


class _Probe(ClassifierMixin, BaseEstimator):
    """What both probes share: checks, standardising, the choice of a strength, prediction.

    After `fit`: `classes_` (K,), `layers_` on standardised vectors, `strength_` (the one kept), `dev_losses_` (nats an
    item, of each strength; empty where there were too few items to choose), `converged_`, `n_features_in_`.
    """

    @threadpool_limits.wrap(
        limits=1
    )  # on a busy machine more threads lose minutes, and matrices this small gain little
    @torch.inference_mode()
    def fit(self, X: np.ndarray, y: Sequence[object], dev: Labelled | None = None) -> _Probe:
        """Fit (N, D) vectors and N labels; `dev` chooses the strength, or else a tenth of the items, drawn by the seed.

        Warns (ConvergenceWarning) where the strength kept had not converged; ValueError for bad arrays or one class.
        """
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"All labels are of one class, '{self.classes_[0]}': a probe needs two.")
        random = check_random_state(self.random_state)
        strengths = sorted(self.strengths)
        if dev is None and len(y) >= FEW:
            there, here = np.split(random.permutation(len(y)), [round(SPARED * len(y))])
            if len(np.unique(y[here])) == len(self.classes_):
                X, y, dev = X[here], y[here], (X[there], y[there])
        self.mean_, self.scale_ = X.mean(0, dtype=np.float64), X.std(0, dtype=np.float64)
        self.scale_[self.scale_ <= 1e-7 * np.abs(self.mean_)] = 1.0  # constant columns
        if dev is None or not np.isin(dev[1], self.classes_).any():
            dev, strengths = None, strengths[:1]
        train = self._tensors(X, y)
        choosing = train if dev is None else self._tensors(validate_data(self, dev[0], reset=False), np.asarray(dev[1]))
        fits = self._train(train, choosing, strengths, random.randint(2**31))

        self.dev_losses_ = np.array([] if dev is None else [_loss(fit.layers, *choosing) for fit in fits])
        place = int(self.dev_losses_.argmin()) if dev is not None else 0  # the strongest penalty of equals
        self.strength_, (self.layers_, self.converged_) = strengths[place], fits[place]
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
        places = self.predict_log_proba(X).argmax(1)
        return self.classes_[places]

    def _tensors(self, vectors: np.ndarray, labels: np.ndarray) -> tuple[Tensor, Tensor]:
        """Standardised float32 vectors and numbers of classes, of the items whose label was trained on."""
        known = np.isin(labels, self.classes_)
        standard = (vectors[known] - self.mean_.astype(np.float32)) / self.scale_.astype(np.float32)
        return torch.from_numpy(standard.astype(np.float32, copy=False)), torch.from_numpy(
            np.searchsorted(self.classes_, labels[known])
        )


class LinearProbe(_Probe):
    """Multinomial logistic regression at its optimum; the seed matters only where no dev is given."""

    def __init__(
        self, strengths: Sequence[float] = STRENGTHS, gain: float = 3e-5, evaluations: int = 200, random_state: Seed = 0
    ):
        self.strengths = strengths
        self.gain = gain  # nats an item that a further step may promise once it has converged
        self.evaluations = evaluations  # of the loss; one that has not converged by then is reported
        self.random_state = random_state

    def _train(self, train: tuple[Tensor, Tensor], dev: object, strengths: list[float], seed: int) -> list[Fit]:
        found = minimise(*train, len(self.classes_), strengths, self.gain, self.evaluations)
        parts = zip(
            found.weights.double().numpy(), found.biases.double().numpy(), found.converged.tolist(), strict=True
        )
        return [Fit([(weight, bias)], converged) for weight, bias, converged in parts]


class MLPProbe(_Probe):
    """Linear, sigmoid, linear; Adam on minibatches, and each strength stops once dev stops improving."""

    def __init__(
        self,
        hidden: int = 50,
        strengths: Sequence[float] = STRENGTHS[2:],
        rate: float = 3e-3,
        batch_size: int = 128,
        patience: int = 5,
        passes: int = 200,
        random_state: Seed = 0,
    ):
        self.hidden = hidden
        self.strengths = strengths
        self.rate = rate
        self.batch_size = batch_size
        self.patience = patience  # passes without a better dev loss that end the training
        self.passes = passes  # one that has not stopped by then has not converged
        self.random_state = random_state

    def _train(
        self, train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor], strengths: list[float], seed: int
    ) -> list[Fit]:
        vectors, labels = train[0], train[1].numpy()
        penalties = [1 / (strength * len(labels)) for strength in strengths]
        stack = Stack([vectors.shape[1], self.hidden, len(self.classes_)], penalties, seed, self.rate)
        order = np.random.default_rng(seed)
        best: dict[int, tuple[float, int, Layers]] = {}  # strength -> its least loss, the pass, what it was then
        running = list(range(len(strengths)))
        for number in range(self.passes):
            stack.train(vectors, labels, order.permutation(len(labels)), self.batch_size)
            scores = forward(stack.parameters, dev[0])[-1]  # (S, K, N)
            losses = torch.nn.functional.cross_entropy(scores, dev[1].expand(len(running), -1), reduction="none").mean(
                1
            )
            for place, (strength, loss) in enumerate(zip(running, losses.tolist(), strict=True)):
                if strength not in best or loss < best[strength][0]:
                    best[strength] = loss, number, _layers([part[place] for part in stack.parameters])
            places = [place for place, strength in enumerate(running) if number - best[strength][1] < self.patience]
            if len(places) < len(running):
                running = [running[place] for place in places]
                if not running:
                    break
                stack.keep(places)
        return [Fit(best[strength][2], strength not in running) for strength in range(len(strengths))]


def _layers(parameters: Sequence[Tensor]) -> Layers:
    """Weight (out, in), bias (out, 1), ... -> copies in the form of `Layers`."""
    arrays = [part.double().numpy() for part in parameters]
    return [(weight.T, bias[:, 0]) for weight, bias in zip(arrays[::2], arrays[1::2], strict=True)]


def _scores(layers: Layers, vectors: np.ndarray) -> np.ndarray:
    """(N, D) -> (N, K)."""
    *hidden, (weight, bias) = layers
    for inside, offset in hidden:
        vectors = expit(vectors @ inside + offset)
    return vectors @ weight + bias


def _loss(layers: Layers, vectors: Tensor, labels: Tensor) -> float:
    """Cross-entropy in nats an item."""
    logs = log_softmax(_scores(layers, vectors.double().numpy()), axis=1)
    return -float(logs[np.arange(len(labels)), labels.numpy()].mean())
