"""The in-batch softmax over translations (InfoNCE: van den Oord et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import add

import torch
import torch.nn.functional as F

from bgt_core.contracts import Loss, Outputs
from bgt_core.errors import UsageError


@dataclass(frozen=True)
class Contrast:
    """A sentence's semantic mean picks out its translation's among all of the batch.

    For each side of each two languages: -log softmax over t' of cos(s, t') / temperature, at the true t; nats.
    The candidates are those of the micro-batch, so the value goes with its size.
    """

    temperature: float = 0.05
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise UsageError(f"{self.temperature} must be above 0", parameter="temperature")

    def __call__(self, out: Outputs, step: int) -> Loss:
        meaning = [F.normalize(posterior.mean.float(), dim=-1) for posterior in out.meaning.values()]  # (B, L)
        if len(meaning) < 2:  # of a corpus with one column: nothing to compare
            return Loss(torch.zeros((), device=meaning[0].device), {})
        own = torch.arange(len(meaning[0]), device=meaning[0].device)
        costs = []
        for left, right in combinations(meaning, 2):
            scores = left @ right.T / self.temperature  # (B, B), translations on the diagonal
            for ways in (scores, scores.T):
                costs.append(F.cross_entropy(ways, own, reduction="sum"))
        total = reduce(add, costs)
        return Loss(self.weight * total, {"contrast": total.detach()})
