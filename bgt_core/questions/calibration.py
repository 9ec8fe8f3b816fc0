"""Turn scores of pairs into calibrated probabilities: Platt's scaling (1999)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from bgt_core.errors import DataError


@dataclass(frozen=True)
class Platt:
    """probability = 1 / (1 + exp(-(slope score + offset)))."""

    slope: float
    offset: float

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Scores (N,) -> probabilities, (N,)."""
        return expit(self.slope * scores + self.offset)


UNCALIBRATED = Platt(1.0, 0.0)  # for scores that are log odds already


def fit_platt(scores: np.ndarray, labels: np.ndarray) -> Platt:
    """Fit the slope and offset that maximise the likelihood of labels (N,) bool of pairs with these scores (N,).

    As in Platt's paper, a label of the P positive pairs counts as (P + 1) / (P + 2), and one of the N others as 1 / (N
    + 2), so that the slope stays finite if a score separates both kinds. Raises DataError if scores do not rise with
    labels, because they then give no probability.
    """
    positive = int(labels.sum())
    targets = np.where(labels, (positive + 1) / (positive + 2), 1 / (len(labels) - positive + 2))
    centre, spread = float(scores.mean()), float(scores.std()) or 1.0
    scaled = (scores - centre) / spread  # both parameters get a similar scale, for Newton's steps

    def nats(numbers: np.ndarray) -> tuple[float, np.ndarray]:
        logits = numbers[0] * scaled + numbers[1]
        errors = expit(logits) - targets
        loss = np.logaddexp(0, logits) - targets * logits
        return float(loss.mean()), np.array([(errors * scaled).mean(), errors.mean()])

    slope, offset = minimize(nats, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    if not slope > 0:
        raise DataError(
            f"On {len(labels)} labelled pairs the model's scores do not rise with the labels (slope {slope:.3g}); "
            "label pairs that mean the same 1, or give another model."
        )
    return Platt(float(slope / spread), float(offset - slope * centre / spread))
