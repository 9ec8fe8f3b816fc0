"""Fit linear probes: multinomial logistic regression, with several strengths of the L2 penalty at once.

For each strength C (a small C is a strong penalty), the loss is the mean cross-entropy + ||W||² / (2 C N) for N items,
without a penalty on biases, as in scikit-learn. It is convex, so the solution does not depend on the seed. SciPy's
L-BFGS minimises the sum of the losses of all C, which can then share one matrix product with the vectors.

Vectors are rotated to their principal axes, and each axis is scaled by the curvature of the initial loss, so that
weights of axes with little variance are learnt as fast as the others. Usually, 5 to 50 evaluations of the loss suffice.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data
from threadpoolctl import threadpool_limits
from torch import Tensor

from bgt_core.backend import usual_defaults

CHUNK = 2**20  # number of logits computed at once, so that they fit into the cache


def minimise(
    vectors: Tensor, labels: Tensor, classes: int, strengths: Sequence[float], tolerance: float, max_evaluations: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Fit one probe for each of S strengths to centred vectors (N, D) float32, and labels (N,) int64 in 0..K-1.

    A probe has converged if a Newton step would lower its loss by less than about `tolerance` nats per item. Returns
    weights (S, D, K), biases (S, K), and whether each probe has converged (S,).
    """
    items, networks = len(vectors), len(strengths) * classes
    penalties = 1 / (items * torch.tensor(strengths, dtype=torch.float64))  # (S,)
    priors = torch.bincount(labels, minlength=classes).double() / items  # (K,)
    variances, axes = principal_axes(vectors)  # (A,), (D, A); weights orthogonal to these axes are 0
    curvature = (1 - priors.square().sum()) / classes  # curvature of the initial loss, averaged over classes
    curvatures = penalties[:, None] + curvature * variances.clamp_min(0)  # (S, A)
    scale = torch.cat([curvatures, curvature.expand(len(penalties), 1)], 1).rsqrt().float()[..., None]  # (S, A + 1, 1)
    turned, penalty = vectors @ axes, penalties.float()[:, None, None]
    shape = len(penalties), len(variances) + 1, classes
    size = max(64, CHUNK // networks)  # number of items per chunk
    expected = torch.empty(0)  # (S,), how much each loss can still fall, in nats per item

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the sum of the losses, and its gradient, for the scaled parameters of all strengths."""
        nonlocal expected
        parameters = torch.from_numpy(x).float().view(shape) * scale
        weights, biases = parameters[:, :-1], parameters[:, -1]
        flat = weights.mT.reshape(networks, -1)  # (S * K, A)
        loss, gradient = torch.zeros((), dtype=torch.float64), torch.zeros_like(parameters)
        weight_gradient = torch.zeros_like(flat)
        for part, of in zip(turned.split(size), labels.split(size), strict=True):
            scores = torch.addmm(biases.reshape(-1, 1), flat, part.mT).view(len(penalties), classes, -1)  # (S, K, n)
            total = scores.logsumexp(1, keepdim=True)
            targets = of.expand(len(penalties), 1, -1)
            loss += (total - scores.gather(1, targets)).sum(dtype=torch.float64)
            error = scores.sub_(total).exp_().scatter_(1, targets, -1.0, reduce="add")  # softmax minus one-hot
            weight_gradient.addmm_(error.flatten(0, 1), part)
            gradient[:, -1] += error.sum(2)
        gradient[:, :-1] = weight_gradient.view(len(penalties), classes, -1).mT
        gradient /= items
        gradient[:, :-1] += penalty * weights
        gradient *= scale
        loss = loss / items + 0.5 * (penalty * weights.square()).sum(dtype=torch.float64)
        expected = gradient.square().sum((1, 2)) / 2  # scaled parameters have a curvature of about 1
        return loss.item(), gradient.double().flatten().numpy()

    def stop_if_converged(_: np.ndarray) -> None:
        if (expected < tolerance).all():
            raise StopIteration

    start = torch.zeros(shape, dtype=torch.float64)
    start[:, -1] = priors.clamp_min(0.5 / items).log() / scale[0, -1, 0]
    limits = {"maxfun": max_evaluations, "maxiter": max_evaluations, "ftol": 0.0, "gtol": 0.0}
    result = minimize(
        evaluate, start.flatten().numpy(), jac=True, method="L-BFGS-B", callback=stop_if_converged, options=limits
    )
    evaluate(result.x)
    parameters = torch.from_numpy(result.x).float().view(shape) * scale
    return axes @ parameters[:, :-1], parameters[:, -1], expected < tolerance


def principal_axes(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return the variances (A,), ascending, and the orthonormal principal axes (D, A) of centred vectors (N, D).

    If N < D, the vectors are first mapped to the space that they span, because LAPACK's solver does not converge if
    thousands of eigenvalues are 0.
    """
    items, width = vectors.shape
    varies = vectors.any(0)
    vectors = vectors[:, varies]
    axes = torch.zeros(width, min(vectors.shape))
    if vectors.shape[1] <= items:
        variances, axes[varies] = symmetric_axes(vectors.mT @ vectors / items)
    else:
        basis, rows = torch.linalg.qr(vectors.mT)  # (columns, N), (N, N): vectors = rows.mT @ basis.mT
        variances, turned = symmetric_axes(rows @ rows.mT / items)
        axes[varies] = basis @ turned
    return variances, axes


def symmetric_axes(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues, ascending, and the eigenvectors of a symmetric float32 matrix."""
    with suppress(torch.linalg.LinAlgError):  # in float32, the solver may fail, or return NaN, if the rank is low
        values, axes = torch.linalg.eigh(matrix)
        if axes.isfinite().all() and values.isfinite().all():
            return values, axes
    values, axes = torch.linalg.eigh(matrix.double())
    return values.float(), axes.float()


# The following probes are scikit-learn estimators.

STRENGTHS = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)  # C, the inverse of the L2 penalty, as in scikit-learn
MIN_ITEMS = 50  # with fewer items, no strength is chosen on held-out items: the strongest penalty is used
HELD_OUT = 0.1  # fraction of the items that is held out to choose the strength, if no dev items are given
BLOCK = 4_096  # number of items standardised at once, in float64

Seed = int | np.random.RandomState | None  # the types of `random_state` in scikit-learn
Labelled = tuple[np.ndarray, np.ndarray]  # (N, D) vectors and their (N,) labels
Layers = list[tuple[np.ndarray, np.ndarray]]  # weight (in, out) and bias (out,), float64


class Probe(ClassifierMixin, BaseEstimator):
    """The base class of probes: it checks and standardises vectors, chooses the strength of the penalty, and predicts.

    After `fit`, `layers_` are the layers of the probe; their inputs are standardised vectors. `dev_losses_` has the
    loss for each strength, in nats per item; it is empty if there were too few items to choose a strength.
    """

    strengths: Sequence[float]
    random_state: Seed

    # Use one thread, because several threads gain little for small matrices, and waste minutes on a busy machine.
    @threadpool_limits.wrap(limits=1)
    @usual_defaults()
    @torch.inference_mode()
    def fit(self, X: np.ndarray, y: Any, dev: Labelled | None = None) -> Probe:
        """Fit the probe to vectors (N, D) and N labels. The strength is chosen on `dev`, by default on a random tenth.

        Warns (ConvergenceWarning) if the probe of the chosen strength has not converged. Raises ValueError if an array
        is invalid, or if all labels are of one class.
        """
        X, y = self._valid(X, y)
        check_classification_targets(y)
        self.classes_: np.ndarray = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"All labels are of one class, '{self.classes_[0]}'; expected two or more.")
        random = check_random_state(self.random_state)
        strengths = sorted(self.strengths)
        if dev is None and len(y) >= MIN_ITEMS:
            held_out, kept = np.split(random.permutation(len(y)), [round(HELD_OUT * len(y))])
            if len(np.unique(y[kept])) == len(self.classes_):
                X, y, dev = X[kept], y[kept], (X[held_out], y[held_out])
        self.mean_, self.scale_ = X.mean(0, dtype=np.float64), X.std(0, dtype=np.float64)
        self.scale_[self.scale_ <= 1e-7 * np.abs(self.mean_)] = 1.0  # constant columns are not scaled
        if dev is None or not np.isin(dev[1], self.classes_).any():
            dev, strengths = None, strengths[:1]
        train = self._tensors(X, y)
        choosing = train if dev is None else self._tensors(self._valid(dev[0], reset=False), np.asarray(dev[1]))
        fits = self._train(train, choosing, strengths, random.randint(2**31))

        self.dev_losses_ = np.array([] if dev is None else [_loss(layers, *choosing) for layers, _ in fits])
        best = int(self.dev_losses_.argmin()) if dev is not None else 0  # for equal losses, the strongest penalty
        self.strength_, (self.layers_, self.converged_) = strengths[best], fits[best]
        if not self.converged_:
            warnings.warn(
                f"The probe of strength {self.strength_:g} did not converge.", ConvergenceWarning, stacklevel=2
            )
        return self

    def predict_log_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the log-probabilities (natural) of `classes_`, (N, K)."""
        check_is_fitted(self)
        X = self._valid(X, reset=False)
        return log_softmax(_scores(self.layers_, (X - self.mean_) / self.scale_), axis=1)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of `classes_`, (N, K)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most probable classes, (N,)."""
        most_probable = self.predict_log_proba(X).argmax(1)
        return self.classes_[most_probable]

    def _valid(self, *given: Any, **settings: Any) -> Any:
        """Run scikit-learn's checks of arrays, and hide their warning about overflow in float32 sums."""
        with np.errstate(invalid="ignore"):
            return validate_data(self, *given, **settings)

    def _train(
        self, train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor], strengths: Sequence[float], seed: int
    ) -> list[tuple[Layers, bool]]:
        """Train one probe for each strength of the penalty; return its layers, and whether it has converged."""
        raise NotImplementedError

    def _tensors(self, vectors: np.ndarray, labels: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return standardised float32 vectors and class indices, without items whose label is not in `classes_`."""
        known = np.flatnonzero(np.isin(labels, self.classes_))
        standard = np.empty((len(known), vectors.shape[1]), np.float32)
        for start in range(0, len(known), BLOCK):
            part = slice(start, start + BLOCK)
            standard[part] = (vectors[known[part]] - self.mean_) / self.scale_
        return torch.from_numpy(standard), torch.from_numpy(np.searchsorted(self.classes_, labels[known]))


class LinearProbe(Probe):
    """Multinomial logistic regression, fitted to its optimum. The seed only matters if no dev items are given."""

    def __init__(
        self,
        strengths: Sequence[float] = STRENGTHS,
        tolerance: float = 3e-5,
        max_evaluations: int = 200,
        random_state: Seed = 0,
    ):
        self.strengths = strengths
        self.tolerance = tolerance  # a probe has converged if its loss can fall by less than this, in nats per item
        self.max_evaluations = max_evaluations  # number of evaluations of the loss after which the fit stops
        self.random_state = random_state

    def _train(
        self, train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor], strengths: Sequence[float], seed: int
    ) -> list[tuple[Layers, bool]]:
        fitted = minimise(*train, len(self.classes_), strengths, self.tolerance, self.max_evaluations)
        weights, biases = (each.double().numpy() for each in fitted[:2])
        return [([(weights[row], biases[row])], bool(done)) for row, done in enumerate(fitted[2])]


def held_out_hits(vectors: np.ndarray, labels: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Cross-validate a linear probe: for each test fold, choose the strength on the next fold, and train on the others.

    `folds` (N,) is the index of each item's fold, from 0, for vectors (N, D) and labels (N,). Returns 1 for each item
    whose label is predicted correctly, else 0, (N,). If fewer than `MIN_ITEMS` items are outside the test fold, a probe
    with the strongest penalty is trained on all of these items.
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
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # approximate fits are good enough
            probe.fit(vectors[train], labels[train], (vectors[dev], labels[dev]))
        hits[test] = probe.predict(vectors[test]) == labels[test]
    return hits


def _scores(layers: Layers, vectors: np.ndarray) -> np.ndarray:
    """Compute the logits of the classes: (N, D) -> (N, K)."""
    *hidden, (weight, bias) = layers
    for hidden_weight, hidden_bias in hidden:
        vectors = expit(vectors @ hidden_weight + hidden_bias)
    return vectors @ weight + bias


def _loss(layers: Layers, vectors: Tensor, labels: Tensor) -> float:
    """Return the mean cross-entropy, in nats per item."""
    logs = log_softmax(_scores(layers, vectors.double().numpy()), axis=1)
    return -float(logs[np.arange(len(labels)), labels.numpy()].mean())
