"""Dropout."""

from __future__ import annotations

from torch import Tensor, nn

from bgt_core.errors import UsageError
from bgt_core.nets.forms import dropout


class Dropout(nn.Module):
    """Zeros units with this probability in training, and scales the others so that the expectation stays."""

    def __init__(self, probability: float):
        super().__init__()
        if not 0 <= probability < 1:
            raise UsageError(f"dropout {probability} must be from 0 to below 1")
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.probability) if self.training and self.probability else x
