"""What an outside encoder taught (multilingual distillation: Reimers and Gurevych 2020)."""

from __future__ import annotations

from dataclasses import dataclass

from bgt_core.contracts import Loss, Outputs
from bgt_core.objectives.part import Part, total


@dataclass(frozen=True)
class Distillation(Part):
    """The semantic mean of every column, mapped, points where the teacher's vector of the row does.

    1 - cosine, added over columns and rows: a translation is taught what the sentence that the teacher read is. The
    paper takes the squared distance; vectors that are compared by cosine have no length to agree with. Unitless;
    `weight` says how many nats one unit is worth beside the ELBO. Rows without a vector cost nothing.
    """

    weight: float = 200.0

    def __call__(self, out: Outputs, step: int) -> Loss:
        costs = {f"distillation/{column}": (1 - cosines).sum() for column, cosines in out.agreement.items()}
        return Loss(total(out, costs.values()), {name: cost.detach() for name, cost in costs.items()})
