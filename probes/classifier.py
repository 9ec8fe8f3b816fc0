"""The probe: logistic regression on standardised vectors, its strength chosen on dev."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

STRENGTHS = (0.001, 0.01, 0.1, 1.0)  # C, the inverse of the L2 penalty

Make = Callable[[float], Pipeline]


def logistic(strength: float) -> Pipeline:
    """(N, D) vectors -> labels; means and scales come from the training items only."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1_000, tol=1e-3))


@threadpool_limits.wrap(limits=1)  # matrices this small gain nothing from threads, and on a busy machine lose minutes
def predict(
    make: Make,
    inputs: np.ndarray,
    labels: np.ndarray,
    split: tuple[Sequence[int], Sequence[int], Sequence[int]],
    strengths: Sequence[float] = STRENGTHS,
) -> tuple[np.ndarray, bool]:
    """Labels predicted for the test rows, and whether the chosen fit converged.

    The strength with the best dev accuracy is taken, the strongest penalty among equals; test labels are
    never looked at.
    """
    train, dev, test = split
    best, chosen, converged = -1.0, None, True
    for strength in strengths:
        probe = make(strength)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            probe.fit(inputs[train], labels[train])
        accuracy = float((probe.predict(inputs[dev]) == labels[dev]).mean())
        if accuracy > best:
            best, chosen = accuracy, probe
            converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return chosen.predict(inputs[test]), converged
