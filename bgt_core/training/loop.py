"""The training loop, and the step that it repeats."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import nn

from bgt_core.contracts import Model
from bgt_core.data.batching import StepBatch
from bgt_core.device import autocast, release_memory, seed_everything
from bgt_core.errors import Diverged
from bgt_core.nets.bound.erasing import WithoutLanguage
from bgt_core.objectives.combine import Sum
from bgt_core.training.config import TrainConfig
from bgt_core.training.meter import Meter, Sums
from bgt_core.training.penalty import Penalty
from bgt_core.training.schedule import learning_rate
from bgt_core.training.workers import Workers

Row = dict[str, object]  # of metrics
Step = Callable[[int, StepBatch], Sums]  # one update: its number and its batches -> this worker's sums


@dataclass(frozen=True, eq=False)
class Trainer:
    """The model and its optimiser, on one of several workers."""

    model: Model
    optimizer: torch.optim.Optimizer
    objective: Sum
    config: TrainConfig
    device: torch.device
    workers: Workers
    penalty: Penalty | None = None


@dataclass(frozen=True)
class Hooks:
    """Callbacks of the loop."""

    report: Callable[[Row], None]  # a row of metrics: "train" or "valid", with its step
    save: Callable[[int], None]  # the model and optimiser after that many steps
    stopped: Callable[[], bool]  # checked after each step: save and stop?


def loop(
    trainer: Trainer,
    updates: Iterable[StepBatch],
    step_fn: Step,
    evaluate: Callable[[int], Iterable[Row]],
    hooks: Hooks,
    start: int,
    steps: int,
) -> int:
    """Run `step_fn` for each of `updates`, from number `start` on; return the number of completed steps of all `steps`.

    Raises Diverged in all workers if one of them diverges (`Guard`), before that update is saved.
    """
    config, meter, unsaved = trainer.config, Meter(trainer.workers), False
    guard = Guard(config.explosion, trainer.device)
    for step, update in enumerate(updates, start):
        # One update, at its learning rate.
        for group in trainer.optimizer.param_groups:
            group["lr"] = learning_rate(step, steps, config)
        sums = step_fn(step, update)
        meter.sums += sums
        guard.add(sums)

        # Is it the last? All workers agree.
        done = step + 1
        unsaved |= done % config.save_every == 0
        due, stopped, saves = meter.due, hooks.stopped(), done == steps or (unsaved and update.closes_mega_batch)
        due, stopped, diverged = trainer.workers.any(due, stopped, guard.diverged(due or stopped or saves))
        if diverged:
            raise Diverged(f"update {done}: {guard.reason or 'another worker has diverged'}")
        last = done == steps or (stopped and update.closes_mega_batch)

        # Report every few seconds; validate when it is due. Validation is not counted in the time.
        if due or last:
            rate = trainer.optimizer.param_groups[0]["lr"]
            hooks.report({"kind": "train", "step": done, "steps": steps, **meter.row(rate)})
            release_memory()
        with meter.paused():
            for row in evaluate(done):
                hooks.report(row)

        # Save at steps from which a run can continue.
        if saves or last:
            hooks.save(done)
            unsaved = False
        if last:
            return done
    return steps


def train_step(trainer: Trainer, step: int, update: StepBatch, *inner: int) -> Sums:
    """Update the parameters that require a gradient; random draws depend on (seed, step, micro-batch, inner)."""
    config, sums = trainer.config, Sums()
    erasing = [part for part in trainer.model.modules() if isinstance(part, WithoutLanguage)]
    for number, batch in update.batches.items():
        seed_everything(config.seed, step, number, *inner)
        with autocast(trainer.device, config.precision):
            loss = trainer.objective(trainer.model(batch.to(trainer.device)), step)
        if trainer.penalty:
            loss = trainer.penalty.added_to(loss, len(batch))
        if loss.total.requires_grad:  # by chance, a batch may use frozen parts alone
            (loss.total / update.pairs).backward()
        for part in erasing:
            part.compare_languages()
        sums.add(number, {"loss": loss.total.detach(), **loss.terms}, batch)
    trainer.workers.sum_gradients(trainer.model)
    for part in erasing:
        part.settle(trainer.workers.sum(part.seen))
    sums.gradient_norm = nn.utils.clip_grad_norm_(trainer.model.parameters(), config.clip)
    trainer.optimizer.step()
    trainer.optimizer.zero_grad()
    return sums


@contextmanager
def frozen(parameters: Iterable[nn.Parameter]) -> Iterator[None]:
    """Freeze these parameters within the block."""
    moving = [parameter for parameter in parameters if parameter.requires_grad]
    for parameter in moving:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in moving:
            parameter.requires_grad_(True)


# Detect divergence: a loss, a term or a gradient that is NaN or infinite, or a loss that explodes.

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
