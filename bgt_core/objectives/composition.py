"""Composed parts of translations agree, and differ from those of the same words in another order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import permutations
from operator import add

import torch
import torch.nn.functional as F

from bgt_core.contracts import Loss, Outputs, Posterior
from bgt_core.errors import UsageError


@dataclass(frozen=True)
class Composition:
    """The composed part of a sentence's semantic mean picks out its translation's among all of the batch.

    For each two columns: -log softmax over t' of cos(s, t') / temperature at the true t, in nats, as `Contrast`, of the
    composed units alone. Altered sentences are candidates too: same words in other roles, or with a negation.
    """

    weight: float = 1.0
    temperature: float = 0.1

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise UsageError(f"composition.temperature {self.temperature} must be above 0")

    def __call__(self, out: Outputs, step: int) -> Loss:
        def composed(posterior: Posterior) -> torch.Tensor:
            return F.normalize(posterior.mean[:, out.composed].float(), dim=-1)

        parts = {column: composed(posterior) for column, posterior in out.meaning.items()}  # (B, K) each
        altered = {column: composed(posterior) for column, posterior in out.altered.items()}
        costs = [torch.zeros((), device=next(iter(parts.values())).device)]
        for source, target in permutations(parts, 2):
            candidates = [parts[target], *([altered[target]] if target in altered else [])]
            scores = parts[source] @ torch.cat(candidates).T / self.temperature  # (B, B or 2 B)
            own = torch.arange(len(scores), device=scores.device)
            costs.append(F.cross_entropy(scores, own, reduction="sum"))
        total = reduce(add, costs)
        return Loss(self.weight * total, {"composition": total.detach()})
