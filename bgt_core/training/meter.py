"""What is reported of training: means of the loss's terms, and speed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from bgt_core.training.step import Sums
from bgt_core.training.workers import Workers

REPORT_SECONDS = 10.0


class Meter:
    """Sums since the last report, and the seconds they took without the pauses."""

    def __init__(self, workers: Workers):
        self.workers = workers
        self.sums, self.since = Sums(), time.perf_counter()

    def add(self, sums: Sums) -> None:
        """Those of one more update."""
        self.sums += sums

    @property
    def due(self) -> bool:
        """Whether it is time to report."""
        return time.perf_counter() - self.since >= REPORT_SECONDS

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The seconds within do not count."""
        began = time.perf_counter()
        yield
        self.since += time.perf_counter() - began

    def row(self, learning_rate: float) -> dict[str, object]:
        """Means of all workers' terms in nats per row, and tokens a second; then everything starts from zero."""
        seconds = time.perf_counter() - self.since
        counts = {f"rows {name}": torch.as_tensor(count) for name, count in self.sums.rows.items()}
        tokens = torch.as_tensor(self.sums.tokens)
        totals = self.workers.sum_over_ranks({**self.sums.terms, **counts, "tokens": tokens})
        means = {name: (totals[name] / totals[f"rows {name}"]).item() for name in totals if f"rows {name}" in totals}
        norm = self.sums.gradient_norm
        row = {**means, "learning_rate": learning_rate, "gradient_norm": float(norm) if norm is not None else 0.0}
        inner = {} if self.sums.inner_updates is None else {"inner_steps": self.sums.inner_updates}
        self.sums, self.since = Sums(), time.perf_counter()
        return {**row, **inner, "tokens_per_second": totals["tokens"].item() / seconds}
