"""What an outside encoder taught (multilingual distillation: Reimers and Gurevych 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add

import torch

from bgt_core.contracts import Loss, Outputs


@dataclass(frozen=True)
class Distillation:
    """The semantic mean of every column, mapped, points where the teacher's vector of the row does.

    1 - cosine, added over columns and rows: a translation is taught what the sentence that the teacher read is. The
    paper takes the squared distance; vectors that are compared by cosine have no length to agree with. Unitless;
    `weight` says how many nats one unit is worth beside the ELBO. Rows without a vector cost nothing.
    """

    weight: float = 200.0

    def __call__(self, out: Outputs, step: int) -> Loss:
        if not out.agreement:
            return Loss(torch.zeros(()), {})
        costs = {f"distillation/{column}": (1 - cosines).sum() for column, cosines in out.agreement.items()}
        return Loss(self.weight * reduce(add, costs.values()), {name: cost.detach() for name, cost in costs.items()})
