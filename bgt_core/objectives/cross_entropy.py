"""Cross-entropy of what a model predicts, and nothing beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add

from bgt_core.contracts import Loss, Outputs
from bgt_core.errors import UsageError


@dataclass(frozen=True)
class CrossEntropy:
    """NLL of every prediction, added up, in nats; labels smoothed as by Szegedy et al. (2016).

    The terms reported are without smoothing.
    """

    label_smoothing: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise UsageError(f"label_smoothing {self.label_smoothing} must be from 0 to below 1")

    def __call__(self, out: Outputs, step: int) -> Loss:
        costs = {prediction.name: prediction.nll(self.label_smoothing) for prediction in out.predictions}
        total = reduce(add, [loss for loss, _ in costs.values()])
        return Loss(total, {name: nats.sum() for name, (_, nats) in costs.items()})
