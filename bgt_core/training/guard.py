"""Detect divergence: a loss, a term or a gradient that is NaN or infinite, or a loss that explodes."""

from __future__ import annotations

import math
from collections import deque
from statistics import fmean

import torch

from bgt_core.training.meter import Sums

WINDOW = 20  # updates whose mean loss is compared


class Guard:
    """Check each update of this process.

    A finite loss explodes if the mean loss per row of the last 20 updates is more than `explosion` times that of the
    first 20 since the run began or was resumed, provided that is above 0. 0 turns the check off.
    """

    def __init__(self, explosion: float, device: torch.device):
        self.explosion, self.device = explosion, device
        self.first: list[torch.Tensor] = []
        self.last: deque[torch.Tensor] = deque(maxlen=WINDOW)
        self.reason = ""  # why the training has diverged

    def add(self, sums: Sums) -> None:
        """Add an update's sums. Values on a GPU are not read yet, so that nothing waits."""
        self.newest = sums
        if "loss" not in sums.terms:  # a worker without a micro-batch
            return
        loss = sums.terms["loss"] / sums.rows["loss"]
        if len(self.first) < WINDOW:
            self.first.append(loss)
        self.last.append(loss)

    def diverged(self, due: bool) -> bool:
        """Whether this process has diverged; on a GPU only checked if `due`."""
        if due or self.device.type == "cpu":
            self.reason = self.reason or not_finite(self.newest) or self.exploded()
        return bool(self.reason)

    def exploded(self) -> str:
        """Check whether the loss exploded; "" if not."""
        if not self.explosion or len(self.last) < WINDOW:
            return ""
        before, now = (fmean(map(float, losses)) for losses in (self.first, self.last))
        if before <= 0 or now <= self.explosion * before:
            return ""
        return f"the loss per row, {now:.4g}, is more than {self.explosion:g} times its initial value, {before:.4g}"


def not_finite(sums: Sums) -> str:
    """The first term that is NaN or infinite, and its micro-batch; "" if all are finite."""
    for number, terms in sums.micro_batches.items():
        for name, value in terms.items():
            if not math.isfinite(value):
                return f"{name} of micro-batch {number} is {float(value)}"
    norm = sums.gradient_norm
    return f"the norm of the gradient is {float(norm)}" if norm is not None and not math.isfinite(norm) else ""
