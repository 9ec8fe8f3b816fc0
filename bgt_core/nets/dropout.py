"""Dropout from 16 random bits per unit, which is faster than torch's on a CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.errors import UsageError

STEPS = 1 << 16  # a 16-bit draw decides each unit, four to a random word


class Dropout(nn.Module):
    """Dropout; on a CPU from 16-bit draws, several times faster than torch's.

    Not exact: the probability is rounded to a multiple of 1/65536; the scale uses the rounded one, so
    the expectation is.
    """

    def __init__(self, probability: float):
        super().__init__()
        if not 0 <= probability < 1:
            raise UsageError(f"dropout {probability} must be from 0 to below 1")
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.probability:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.probability)
        words = torch.randint(-(2**63), 2**63 - 1, ((x.numel() + 3) // 4,))
        draws = words.view(torch.int16)[: x.numel()].view(x.shape)
        dropped = round(self.probability * STEPS)
        kept = draws.ge_(dropped - STEPS // 2).to(x.dtype).mul_(STEPS / (STEPS - dropped))
        return x * kept
