"""Sums over the updates of a training, and the reports made from them: means of the loss's terms, and speed."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from bgt_core.contracts import Batch
from bgt_core.training.workers import Workers

REPORT_SECONDS = 10.0


@dataclass(eq=False)
class Sums:
    """Sums over this worker's rows: of each term of the loss, and of the rows that have it (in a mixture of corpora,
    not all)."""

    terms: dict[str, Tensor] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    tokens: int = 0
    inner_updates: int | None = None  # updates of the encoders only; None in ordinary training
    gradient_norm: Tensor | None = None  # of the newest update, before it was clipped, nats per row
    micro_batches: dict[int, Mapping[str, Tensor]] = field(default_factory=dict)  # the newest update's terms

    def add(self, number: int, terms: Mapping[str, Tensor], batch: Batch) -> None:
        """Add the terms of one more micro-batch."""
        self.micro_batches[number] = {name: value.sum() for name, value in terms.items()}
        for name, value in self.micro_batches[number].items():
            self.terms[name] = self.terms[name] + value if name in self.terms else value
            self.rows[name] += terms[name].numel() if terms[name].dim() else len(batch)
        self.tokens += sum(len(side.flat_index) for side in batch.sides.values())

    def __iadd__(self, other: Sums) -> Sums:
        for name, value in other.terms.items():
            self.terms[name] = self.terms[name] + value if name in self.terms else value
            self.rows[name] += other.rows[name]
        self.tokens += other.tokens
        if other.inner_updates is not None:
            self.inner_updates = (self.inner_updates or 0) + other.inner_updates
        self.gradient_norm, self.micro_batches = other.gradient_norm, other.micro_batches
        return self


class Meter:
    """Sums of the updates since the last report, and the elapsed seconds without pauses."""

    def __init__(self, workers: Workers):
        self.workers = workers
        self.sums, self.since = Sums(), time.perf_counter()

    @property
    def due(self) -> bool:
        """Whether a report is due."""
        return time.perf_counter() - self.since >= REPORT_SECONDS

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the seconds within the block."""
        began = time.perf_counter()
        yield
        self.since += time.perf_counter() - began

    def row(self, learning_rate: float) -> dict[str, object]:
        """Means of all workers' terms in nats per row, and tokens per second; then reset."""
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
