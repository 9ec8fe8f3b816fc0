"""One update: the gradient of its rows, and a step of the optimiser."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from bgt_core.contracts import Batch, Model
from bgt_core.data.batching import StepBatch
from bgt_core.device import autocast, seed_everything
from bgt_core.objectives.combine import Sum
from bgt_core.training.config import TrainConfig
from bgt_core.training.penalty import Penalty
from bgt_core.training.workers import Workers


@dataclass(frozen=True, eq=False)
class Trainer:
    """What every update moves and reads: the model and its optimiser, on one of some workers."""

    model: Model
    optimizer: torch.optim.Optimizer
    objective: Sum
    config: TrainConfig
    device: torch.device
    workers: Workers
    penalty: Penalty | None = None


@dataclass(eq=False)
class Sums:
    """Sums over this worker's rows: of each term of the loss, and of the rows in which it occurs (in a mixture of
    corpora, not all)."""

    terms: dict[str, Tensor] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    tokens: int = 0
    inner_updates: int | None = None  # of the encoders alone; None in ordinary training
    gradient_norm: Tensor | None = None  # of the newest update, before it was clipped, nats per row
    micro_batches: dict[int, Mapping[str, Tensor]] = field(default_factory=dict)  # the newest update's terms

    def add(self, number: int, terms: Mapping[str, Tensor], batch: Batch) -> None:
        """The terms of one more micro-batch."""
        self.micro_batches[number] = terms
        for name, value in terms.items():
            self.terms[name] = self.terms[name] + value if name in self.terms else value
            self.rows[name] += len(batch)
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


def train_step(trainer: Trainer, step: int, update: StepBatch, *inner: int) -> Sums:
    """Move the parameters that want a gradient; what is drawn follows from (seed, step, micro-batch, inner)."""
    config, sums = trainer.config, Sums()
    for number, batch in update.batches.items():
        seed_everything(config.seed, step, number, *inner)
        with autocast(trainer.device, config.precision):
            loss = trainer.objective(trainer.model(batch.to(trainer.device)), step)
        if trainer.penalty:
            loss = trainer.penalty.added_to(loss, len(batch))
        (loss.total / update.pairs).backward()
        sums.add(number, {"loss": loss.total.detach(), **loss.terms}, batch)
    trainer.workers.sum_gradients(trainer.model)
    sums.gradient_norm = nn.utils.clip_grad_norm_(trainer.model.parameters(), config.clip)
    trainer.optimizer.step()
    trainer.optimizer.zero_grad()
    return sums


@contextmanager
def frozen(parameters: Iterable[nn.Parameter]) -> Iterator[None]:
    """No gradient is made for these parameters, and nothing moves them."""
    moving = [parameter for parameter in parameters if parameter.requires_grad]
    for parameter in moving:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in moving:
            parameter.requires_grad_(True)
