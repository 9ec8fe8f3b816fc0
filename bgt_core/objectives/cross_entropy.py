"""The negative log-likelihood of predictions."""

from __future__ import annotations

from dataclasses import dataclass

from bgt_core.contracts import Loss, Outputs, Role
from bgt_core.errors import UsageError
from bgt_core.objectives.part import Part, total


@dataclass(frozen=True)
class CrossEntropy(Part):
    """NLL of the predictions of some roles, in nats; labels smoothed as by Szegedy et al. (2016).

    The terms reported are without smoothing.
    """

    roles: tuple[Role, ...] = ("auxiliary",)
    weight: float = 1.0
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise UsageError(f"label_smoothing {self.label_smoothing} must be from 0 to below 1")

    def __call__(self, out: Outputs, step: int) -> Loss:
        own = [prediction for prediction in out.predictions if prediction.role in self.roles]
        costs = {prediction.name: prediction.nll(self.label_smoothing) for prediction in own}
        return Loss(total(out, [loss for loss, _ in costs.values()]), {name: nats for name, (_, nats) in costs.items()})
