"""Dropout from 16 random bits per unit, several times faster than torch's on a CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

STEPS = 1 << 16  # a 16-bit draw decides each unit, four draws per random word


def dropout(x: Tensor, probability: float) -> Tensor:
    """Zero each unit with this probability, and scale the others so that the expectation stays.

    The probability is rounded to a multiple of 1/65536; the scale uses the rounded one.
    """
    if x.device.type != "cpu":
        return F.dropout(x, probability)
    words = torch.randint(-(2**63), 2**63 - 1, ((x.numel() + 3) // 4,))
    draws = words.view(torch.int16)[: x.numel()].view(x.shape)
    dropped = round(probability * STEPS)
    kept = draws.ge_(dropped - STEPS // 2).to(x.dtype).mul_(STEPS / (STEPS - dropped))
    return x * kept
