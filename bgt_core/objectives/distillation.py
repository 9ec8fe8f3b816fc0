"""Learn from another encoder (multilingual distillation: Reimers and Gurevych 2020)."""

from __future__ import annotations

from dataclasses import dataclass

from bgt_core.contracts import Loss, Outputs
from bgt_core.objectives.part import Part, total


@dataclass(frozen=True)
class Distillation(Part):
    """Point the mapped semantic mean of every column in the direction of the teacher's vector for the row.

    1 - cosine, summed over columns and rows: a translation learns the vector of the sentence that the teacher embedded.
    The paper uses the squared distance; for vectors compared by cosine the length does not matter. Unitless; `weight`
    converts it to nats beside the ELBO. Rows without a vector cost nothing.
    """

    weight: float = 200.0

    def __call__(self, out: Outputs, step: int) -> Loss:
        costs = {f"distillation/{column}": (1 - cosines).sum() for column, cosines in out.agreement.items()}
        return Loss(total(out, costs.values()), {name: cost.detach() for name, cost in costs.items()})
