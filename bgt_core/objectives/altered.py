"""A margin loss over altered sentences: similarity should fall if the meaning is altered."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from bgt_core.contracts import Loss, Outputs, Posterior
from bgt_core.errors import UsageError
from bgt_core.objectives.part import Part, total


@dataclass(frozen=True)
class AlteredMargin(Part):
    """Put translations nearer to each other than an altered sentence is to either, by the cosine of semantic means.

    For each sentence s, its translation t and its altered form s': max(0, margin - cos(s, t) + cos(s, s')) and max(0,
    margin - cos(s, t) + cos(t, s')). Unitless; `weight` converts it to nats beside the ELBO. A batch without altered
    sentences costs nothing.
    """

    weight: float = 100.0
    margin: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.margin < 2:
            raise UsageError(
                f"altered.margin {self.margin} must be above 0 and below 2, the largest difference of cosines"
            )

    def __call__(self, out: Outputs, step: int) -> Loss:
        def cosine(one: Posterior, two: Posterior) -> torch.Tensor:
            return F.cosine_similarity(one.mean.float(), two.mean.float(), dim=-1)  # (B,)

        hinges = [
            F.relu(self.margin - cosine(out.semantic[column], translation) + cosine(either, altered)).sum()
            for column, altered in out.altered.items()
            for name, translation in out.semantic.items()
            if name != column
            for either in (out.semantic[column], translation)
        ]
        hinge = total(out, hinges)
        return Loss(hinge, {"altered": hinge.detach()} if hinges else {})
