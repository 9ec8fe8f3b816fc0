"""The in-batch softmax over translations (InfoNCE: van den Oord et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
import torch.nn.functional as F

from bgt_core.contracts import Loss, Outputs
from bgt_core.errors import UsageError
from bgt_core.objectives.part import Part, check_compared, total


@dataclass(frozen=True)
class Contrast(Part):
    """Let a sentence's semantic mean identify its translation among all sentences of the batch.

    For each side of each two languages: -log softmax over t' of cos(s, t') / temperature, at the true t; nats. The
    candidates are those of the micro-batch, so the value depends on its size.
    """

    temperature: float = 0.05
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise UsageError(f"{self.temperature} must be above 0", parameter="temperature")

    def check(self, columns: Sequence[str], mega_batch: int) -> None:
        """See `Part.check`."""
        check_compared(columns)

    def __call__(self, out: Outputs, step: int) -> Loss:
        means = [F.normalize(posterior.mean.float(), dim=-1) for posterior in out.semantic.values()]  # (B, L)
        own = torch.arange(len(means[0]), device=means[0].device)
        costs = []
        for left, right in combinations(means, 2):
            scores = left @ right.T / self.temperature  # (B, B), translations on the diagonal
            for ways in (scores, scores.T):
                costs.append(F.cross_entropy(ways, own, reduction="sum"))
        nats = total(out, costs)
        return Loss(nats, {"contrast": nats.detach()} if costs else {})
