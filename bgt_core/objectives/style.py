"""Sort language latents by style (supervised contrast: Khosla et al. 2020, eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from bgt_core.contracts import Loss, Outputs
from bgt_core.errors import UsageError
from bgt_core.objectives.part import Part, total


@dataclass(frozen=True)
class StyleContrast(Part):
    """Put a sentence's language latent nearer to those of its style than to a paraphrase in another style.

    For each sentence that shares its style (`data.properties.signature`) with another of the batch and its language:
    the mean over those others t of -log softmax over all t' of cos(s, t') / temperature, in nats, of the means of
    language latents. The candidates are those of the micro-batch, so the value depends on its size.
    """

    temperature: float = 0.1
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise UsageError(f"style.temperature {self.temperature} must be above 0")

    def __call__(self, out: Outputs, step: int) -> Loss:
        costs = [self.cost(styled.mean, styled.number) for styled in out.styles.values()]
        nats = total(out, costs)
        return Loss(nats, {"style": nats.detach()} if costs else {})

    def cost(self, mean: Tensor, number: Tensor) -> Tensor:
        """Of the sentences of one language: their means (B, L), and the numbers of their styles (B,)."""
        latent = F.normalize(mean.float(), dim=-1)
        itself = torch.eye(len(latent), dtype=torch.bool, device=latent.device)
        scores = (latent @ latent.T / self.temperature).masked_fill(itself, -torch.inf)
        same = (number[:, None] == number) & ~itself  # (B, B)
        chances = scores.log_softmax(1).masked_fill(~same, 0).sum(1)  # (B,)
        return -(chances / same.sum(1).clamp_min(1)).sum()
