"""The training loop, the step that it repeats, and what it reports."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import fmean

import torch
from torch import Tensor, nn

from bgt_core.backend import autocast, release_memory, seed_everything
from bgt_core.contracts import Batch, Loss, Model
from bgt_core.data.batching import StepBatch
from bgt_core.errors import Diverged
from bgt_core.nets.bound import WithoutLanguage
from bgt_core.objectives import Sum
from bgt_core.recipes.recipe import TrainConfig
from bgt_core.training.workers import Workers

REPORT_SECONDS = 10.0
WINDOW = 20  # updates whose mean loss is compared

Row = dict[str, object]  # of metrics
Step = Callable[[int, StepBatch], "Sums"]  # one update: its number and its batches -> this worker's sums


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


def make_optimizer(model: Model, config: TrainConfig) -> torch.optim.AdamW:
    """AdamW as in the paper: betas (0.9, 0.98), eps 1e-8, decay decoupled (p -= rate * decay * p)."""
    return torch.optim.AdamW(
        [parameter for parameter in model.parameters() if parameter.requires_grad],
        lr=config.learning_rate,
        betas=(0.9, 0.98),
        eps=1e-8,
        weight_decay=config.weight_decay,
        fused=True,
    )


def learning_rate(step: int, steps: int, config: TrainConfig) -> float:
    """Linear to the peak, then 1 / sqrt (Vaswani et al. 2017), or constant without warm-up; `cooldown` adds a linear
    fall to 0 at the end."""
    done, warmup, falling = step + 1, config.warmup_steps, config.cooldown * steps
    rate = config.learning_rate * (min(done / warmup, (warmup / done) ** 0.5) if warmup else 1.0)
    return rate * min(1.0, (steps - step) / falling) if falling else rate


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
        rate = learning_rate(step, steps, config)
        for group in trainer.optimizer.param_groups:
            group["lr"] = rate
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
        batch = batch.to(trainer.device)
        with autocast(trainer.device, config.precision):
            loss = trainer.objective(trainer.model(batch).of(batch), step)
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


class Guard:
    """Detect divergence: a loss, a term or a gradient that is NaN or infinite, or a loss that explodes.

    A finite loss explodes if the mean loss per row of the last 20 updates is more than `explosion` times that of the
    first 20 since the run began or was resumed, provided that is above 0. 0 turns the check off.
    """

    def __init__(self, explosion: float, device: torch.device):
        self.explosion, self.device = explosion, device
        self.first: list[Tensor] = []
        self.last: deque[Tensor] = deque(maxlen=WINDOW)
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
            self.reason = self.reason or self.not_finite() or self.exploded()
        return bool(self.reason)

    def exploded(self) -> str:
        """Check whether the loss exploded; "" if not."""
        if not self.explosion or len(self.last) < WINDOW:
            return ""
        before, now = (fmean(map(float, losses)) for losses in (self.first, self.last))
        if before <= 0 or now <= self.explosion * before:
            return ""
        return f"the loss per row, {now:.4g}, is more than {self.explosion:g} times its initial value, {before:.4g}"

    def not_finite(self) -> str:
        """The newest update's first term that is NaN or infinite, and its micro-batch; "" if all are finite."""
        for number, terms in self.newest.micro_batches.items():
            for name, value in terms.items():
                if not math.isfinite(value):
                    return f"{name} of micro-batch {number} is {float(value)}"
        norm = self.newest.gradient_norm
        return f"the norm of the gradient is {float(norm)}" if norm is not None and not math.isfinite(norm) else ""


class Penalty:
    """lambda_c / 2 ||W_c||^2 + lambda_w / 2 ||W - W_start||^2, once per update (Wieting et al. 2017, eq. 4).

    W_c are all parameters except the token tables W. The factor 1/2 is the released code's; the paper does not have it.

    Args:
        model: The model.
        config: The weights, `composition_l2` (lambda_c) and `table_l2` (lambda_w).
        start: The initial token tables, by name; only needed if `table_l2` is above 0.
    """

    def __init__(self, model: nn.Module, config: TrainConfig, start: Mapping[str, Tensor]):
        tables = token_tables(model)
        of_tables = {id(table) for table in tables.values()}
        self.config = config
        self.composition = [parameter for parameter in model.parameters() if id(parameter) not in of_tables]
        self.tables = [(tables[name], began.to(tables[name].device)) for name, began in start.items()]

    def terms(self) -> dict[str, Tensor]:
        """The two penalties, scalars with gradient, by the names of their metrics; one with weight 0 is left out."""
        zero, terms = torch.zeros(()), {}
        if self.config.composition_l2:
            squares = [parameter.square().sum() for parameter in self.composition]
            terms["penalty/composition"] = 0.5 * self.config.composition_l2 * sum(squares, zero)
        if self.config.table_l2:
            distances = [(table - began).square().sum() for table, began in self.tables]
            terms["penalty/tables"] = 0.5 * self.config.table_l2 * sum(distances, zero)
        return terms

    def added_to(self, loss: Loss, rows: int) -> Loss:
        """Add the penalty to the loss of a micro-batch once per row: over all rows of the update, it counts once."""
        terms = {name: rows * cost for name, cost in self.terms().items()}
        detached = {name: cost.detach() for name, cost in terms.items()}
        return Loss(sum(terms.values(), loss.total), {**loss.terms, **detached})


def token_tables(model: nn.Module) -> dict[str, nn.Parameter]:
    """The weights of all token tables, by the names of their parameters; a shared table counts once."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    return {name: parameter for name, parameter in model.named_parameters() if id(parameter) in tables}
