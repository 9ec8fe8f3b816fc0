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
    """A sentence's semantic mean is nearer to its translation's than to a wrong one's.

    For each side of each two languages: max(0, margin - cos(s, t) + cos(s, t')). t' is the negative that came with
    the batch, or where none came the hardest of the other side's sentences in it; with `both_sides` the hardest of
    both sides' (Wieting et al. 2017, eq. 1), which two languages rarely ask for: there the own side is the nearer one.
    With `mined_only` a batch that came without pays nothing. No sentence of its own row is ever a negative. Unitless;
    `weight` says how many nats one unit is worth beside the ELBO.
    """

    margin: float = 0.4
    weight: float = 1.0
    both_sides: bool = False  # where negatives are looked for, in mega-batches too
    mined_only: bool = False  # as before `train.mega_batch_start`

    def __post_init__(self) -> None:
        if not 0 < self.margin < 2:
            raise UsageError(f"margin {self.margin} must be above 0 and below 2, the most that cosines differ by")

    def check(self, columns: Sequence[str], mega_batch: int) -> None:
        """See `Part.check`."""
        if self.mined_only and not mega_batch:
            raise UsageError(
                "mega_batch 0: margin.mined_only waits for negatives that nobody searches for; set train.mega_batch, "
                "or objective.margin.mined_only=false for the hardest of each batch"
            )
        check_compared(columns)

    def __call__(self, out: Outputs, step: int) -> Loss:
        means, negatives = (
            {lang: F.normalize(posterior.mean.float(), dim=-1) for lang, posterior in of.items()}  # (B, L)
            for of in (out.semantic, out.negatives)
        )
        if len(means) < 2 or (self.mined_only and not negatives):  # of one column: nothing to compare
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
    """(B, B), sentences of one row on the diagonal -> the highest of the others in each row and in each column, (B,).

    A sentence alone in its batch has none, and no loss: minus infinity.
    """
    own = torch.eye(len(cosine), dtype=torch.bool, device=cosine.device)
    others = cosine.masked_fill(own, -torch.inf)
    return [others.amax(dim) for dim in (1, 0)]
