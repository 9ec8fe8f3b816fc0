"""The margin loss over translations (Wieting et al. 2019, as in the paper's SP baseline)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from bgt_core.contracts import Loss, Outputs


@dataclass(frozen=True)
class Margin:
    """A sentence's semantic mean is nearer to its translation's than to any other's in the batch.

    For each side: max(0, margin - cos(s, t) + cos(s, t')), t' the hardest of the other side's
    sentences. Unitless; `weight` says how many nats one unit is worth beside the ELBO.
    """

    margin: float = 0.4
    weight: float = 1.0

    def __call__(self, out: Outputs, step: int) -> Loss:
        left, right = (F.normalize(posterior.mean.float(), dim=-1) for posterior in out.meaning.values())  # (B, L)
        cosine = left @ right.T  # (B, B), translations on the diagonal
        true = cosine.diagonal()
        own = torch.eye(len(true), dtype=torch.bool, device=true.device)
        others = cosine.masked_fill(own, -torch.inf)  # a sentence alone in its batch has none, and no loss
        hinges = [F.relu(self.margin - true + others.amax(dim)) for dim in (1, 0)]
        hinge = torch.stack(hinges).sum()
        return Loss(self.weight * hinge, {"margin": hinge.detach()})
