"""The margin loss over translations (Wieting et al. 2019, as in the paper's SP baseline) and paraphrases (2017)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
import torch.nn.functional as F
from torch import Tensor

from bgt_core.contracts import Loss, Outputs
from bgt_core.errors import UsageError
from bgt_core.objectives.part import Part, check_compared, total


@dataclass(frozen=True)
class Margin(Part):
    """Put a sentence's semantic mean nearer to that of its translation than to that of a wrong one.

    For each side of each two languages: max(0, margin - cos(s, t) + cos(s, t')). t' is the negative that came with the
    batch, or without one the hardest sentence of the other side of the batch. With `both_sides` it is the hardest of
    both sides (Wieting et al. 2017, eq. 1), which is rarely useful for two languages, because the own side is nearer.
    With `mined_only` a batch without negatives costs nothing. A sentence of the same row is never a negative. Unitless;
    `weight` converts it to nats beside the ELBO.
    """

    margin: float = 0.4
    weight: float = 1.0
    both_sides: bool = False  # search both sides for negatives, in mega-batches too
    mined_only: bool = False  # as before `train.mega_batch_start`

    def __post_init__(self) -> None:
        if not 0 < self.margin < 2:
            raise UsageError(f"margin {self.margin} must be above 0 and below 2, the largest difference of cosines")

    def check(self, columns: Sequence[str], mega_batch: int) -> None:
        """See `Part.check`."""
        if self.mined_only and not mega_batch:
            raise UsageError(
                "mega_batch 0: margin.mined_only needs negatives from mega-batches; set train.mega_batch, "
                "or objective.margin.mined_only=false for the hardest of each batch"
            )
        check_compared(columns)

    def __call__(self, out: Outputs, step: int) -> Loss:
        means, negatives = (
            {lang: F.normalize(posterior.mean.float(), dim=-1) for lang, posterior in of.items()}  # (B, L)
            for of in (out.semantic, out.negatives)
        )
        if len(means) < 2 or (self.mined_only and not negatives):  # with one column there is nothing to compare
            return Loss(total(out, []), {})
        hinges = []
        for left, right in combinations(means, 2):
            cosine = means[left] @ means[right].T  # (B, B), translations on the diagonal
            true = cosine.diagonal()
            both_ways = ((left, right), (right, left))
            if negatives:
                wrong = [(means[column] * negatives[other]).sum(-1) for column, other in both_ways]
            else:
                wrong = hardest(cosine)
                if self.both_sides:
                    own = [hardest(side @ side.T)[0] for side in (means[left], means[right])]
                    wrong = list(map(torch.maximum, wrong, own))
            hinges += [F.relu(self.margin - true + cos) for cos in wrong]
        hinge = torch.stack(hinges).sum()
        return Loss(hinge, {"margin": hinge.detach()})


def hardest(cosine: Tensor) -> list[Tensor]:
    """The highest off-diagonal value in each row and in each column of (B, B), (B,) each; the diagonal holds sentences
    of one row.

    A sentence alone in its batch gets minus infinity, and so no loss.
    """
    own = torch.eye(len(cosine), dtype=torch.bool, device=cosine.device)
    others = cosine.masked_fill(own, -torch.inf)
    return [others.amax(dim) for dim in (1, 0)]
