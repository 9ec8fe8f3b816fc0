"""The training loop: `train_model` repeats `train_step`, one update of the parameters; it validates, reports and saves.

`Aggressive` is another kind of step, which no recipe uses by default.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, pairwise
from statistics import fmean
from typing import cast

import torch
from torch import Tensor, nn

from bgt_core.backend import autocast, release_memory, seed_everything
from bgt_core.contracts import Batch, Loss, Model
from bgt_core.data.batching import Batching, StepBatch, prefetch, validation
from bgt_core.data.columns import parse_weights
from bgt_core.data.corpus import Corpus, Mixture
from bgt_core.errors import Diverged
from bgt_core.nets.bound import WithoutLanguage
from bgt_core.nets.decoder import DecoderLayer
from bgt_core.nets.layers import EncoderLayer
from bgt_core.objectives import Sum
from bgt_core.recipes.recipe import TrainConfig
from bgt_core.training.negatives import mined
from bgt_core.training.validate import information_of, validate
from bgt_core.training.workers import Workers

REPORT_SECONDS = 10.0
WINDOW = 20  # updates whose mean loss is compared
LONG = 1_000  # minimum number of updates for which a run on a GPU compiles its layers, which takes a minute or two
INFORMED = 2_000  # held-out rows whose information decides how long training is aggressive
GROUP = 10  # updates whose mean loss is compared with that of the group before

Row = dict[str, object]  # of metrics


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
    save: Callable[[int], None]  # save model and optimiser; the argument is the number of steps done
    stopped: Callable[[], bool]  # checked after each step: save and stop?


def make_optimizer(model: Model, config: TrainConfig) -> torch.optim.AdamW:
    """Make AdamW as in the paper: betas (0.9, 0.98), eps 1e-8, decoupled decay (p -= rate * decay * p)."""
    return torch.optim.AdamW(
        [parameter for parameter in model.parameters() if parameter.requires_grad],
        lr=config.learning_rate,
        betas=(0.9, 0.98),
        eps=1e-8,
        weight_decay=config.weight_decay,
        fused=True,
    )


def learning_rate(step: int, steps: int, config: TrainConfig) -> float:
    """Return the rate of a step: linear to the peak, then 1 / sqrt (Vaswani et al. 2017), or constant without warm-up.
    With `cooldown` it also falls linearly to 0 at the end."""
    done, warmup, falling = step + 1, config.warmup_steps, config.cooldown * steps
    rate = config.learning_rate * (min(done / warmup, (warmup / done) ** 0.5) if warmup else 1.0)
    return rate * min(1.0, (steps - step) / falling) if falling else rate


def train_model(
    trainer: Trainer,
    corpus: Corpus | Mixture,
    held_out: Corpus | Mixture,
    hooks: Hooks,
    start: int = 0,
    informations: Sequence[float] = (),
) -> int:
    """Train from step `start` to the end, or until `hooks.stopped`; return the number of steps done.

    All random draws (batches, anchors, dropout, latent noise) depend only on the seed, the step and the number of the
    micro-batch. So a run that restarts from a saved step ends with the same weights, and any number of workers draws
    the same. One step is one update: rows with `batch_tokens` tokens, in micro-batches; the loss is divided by the
    number of rows in all workers. A step waits for a GPU only if the model selects tokens or rows (`bgt-bound`,
    `writer`, `var-siamese-reformulate`); reports and the search for negatives wait too. With mega-batches a run is
    saved, and stops, only between two of them, where the next updates depend on the weights alone.

    With `aggressive_steps`, a step is at first `Aggressive`; `informations` are the values that the run reported before
    `start`. Raises Diverged in all workers if one of them diverges (`Guard`), before that update is saved.
    """
    course = Course(trainer, corpus, held_out, informations)
    if not course.steps:  # the untrained model is a result too
        for row in course.evaluate(0):
            hooks.report(row)
        hooks.save(0)
        return 0
    meter, guard, unsaved = Meter(trainer.workers), Guard(trainer.config.explosion, trainer.device), False
    for step, update in enumerate(course.updates(start), start):
        # One update, at its learning rate.
        rate = learning_rate(step, course.steps, trainer.config)
        for group in trainer.optimizer.param_groups:
            group["lr"] = rate
        sums = course.take_step(step, update)
        meter.sums += sums
        guard.add(sums)

        # Is it the last? All workers agree.
        done = step + 1
        unsaved |= done % trainer.config.save_every == 0
        stopped, saves = hooks.stopped(), done == course.steps or (unsaved and update.closes_mega_batch)
        due = meter.due
        due, stopped, diverged = trainer.workers.any(due, stopped, guard.diverged(due or stopped or saves))
        if diverged:
            raise Diverged(f"update {done}: {guard.reason or 'another worker has diverged'}")
        last = done == course.steps or (stopped and update.closes_mega_batch)

        # Report every few seconds; validate when it is due. Validation is not counted in the time.
        if due or last:
            hooks.report({"kind": "train", "step": done, "steps": course.steps, **meter.row(rate)})
            release_memory()
        began = time.perf_counter()
        for row in course.evaluate(done):
            hooks.report(row)
        meter.since += time.perf_counter() - began

        # Save at steps from which a run can continue.
        if saves or last:
            hooks.save(done)
            unsaved = False
        if last:
            return done
    return course.steps


def compile_layers(model: Model, setting: str, device: torch.device, steps: int) -> None:
    """Compile each Transformer layer, for any number of tokens, if `setting` asks for it in a run of `steps` updates.

    "auto" does not compile on a CPU, where compiled layers take 1.13 times as long: they multiply with MKL (`backend`).
    """
    if setting == "on" or (setting == "auto" and device.type == "cuda" and steps >= LONG):
        for layer in model.modules():
            if isinstance(layer, (EncoderLayer, DecoderLayer)):
                layer.compile(dynamic=True)


def batching(config: TrainConfig) -> Batching:
    """Return the plan by which a corpus becomes updates."""
    return Batching(
        config.batch_tokens,
        config.micro_tokens,
        config.seed,
        config.scramble,
        config.micro_batches,
        config.sampling_temperature,
        parse_weights(config.kind_weights),
    )


def total_steps(corpus: Corpus | Mixture, config: TrainConfig) -> int:
    """Return the number of updates in the whole run; 0 without epochs."""
    return max(1, round(config.epochs * batching(config).updates(corpus))) if config.epochs else 0


class Course:
    """The updates of a run in order, the step for each, and the evaluations after it."""

    def __init__(
        self,
        trainer: Trainer,
        corpus: Corpus | Mixture,
        held_out: Corpus | Mixture,
        informations: Sequence[float] = (),
    ):
        self.trainer, self.corpus, self.held_out = trainer, corpus, held_out
        self.plan, self.steps = batching(trainer.config), total_steps(corpus, trainer.config)
        self.updates_per_epoch = self.plan.updates(corpus)
        compile_layers(trainer.model, trainer.config.compile, trainer.device, self.steps)
        self.take_step: Callable[[int, StepBatch], Sums] = partial(train_step, trainer)
        self.ahead: Aggressive | None = None
        if trainer.config.aggressive_steps and self.steps:
            self.information(1)  # fail early if the model has no density
            self.take_step = self.ahead = Aggressive(trainer, self.encoder_updates, informations)

    def make_update(self, step: int) -> StepBatch:
        """Make this worker's share of an update, or all of it if negatives are searched among all rows."""
        workers = self.trainer.workers
        share = (0, 1) if self.trainer.config.mega_batch else (workers.rank, workers.count)
        update = self.plan.update(self.corpus, step, *share)
        return update if self.trainer.device.type == "cpu" else update.pin()

    def updates(self, start: int) -> Iterator[StepBatch]:
        """Make the updates from step `start` on, with their negatives."""
        updates = prefetch(self.make_update, range(start, self.steps))
        if not self.trainer.config.mega_batch:
            return updates
        return mined(updates, start, self.trainer, round(self.trainer.config.mega_batch_start * self.updates_per_epoch))

    def encoder_updates(self, step: int) -> Iterator[StepBatch]:
        """Make the encoder-only updates that precede a step, with the data of epochs after the run's last one."""
        count = self.trainer.config.aggressive_steps
        first = self.steps + step * count
        return prefetch(self.make_update, range(first, first + count))

    def evaluate(self, done: int) -> Iterator[Row]:
        """Yield the rows of metrics after `done` steps: validation if it is due, and after an epoch of aggressive
        training the information, which decides whether the encoders are still updated first."""
        where: Row = {"step": done, "steps": self.steps}
        if not done or done % self.trainer.config.valid_every == 0 or done == self.steps:
            batches = validation(self.held_out, self.trainer.config.micro_tokens)
            yield {"kind": "valid", **where, **validate(self.trainer, batches)}
        if self.ahead and self.ahead.active and done % self.updates_per_epoch == 0:
            by_latent = self.information()
            self.ahead.informations.append(sum(by_latent.values()))
            yield {"kind": "information", **where, "information": self.ahead.informations[-1], **by_latent}

    def information(self, batches: int | None = None) -> dict[str, float]:
        """Measure the information of each latent about held-out sentences, in nats, in at most `batches` batches."""
        rows = validation(self.held_out, self.trainer.config.micro_tokens, INFORMED)
        return information_of(self.trainer, islice(rows, batches))


class Aggressive:
    """A training step that updates the encoders first, as long as that raises the mutual information (He et al. 2019).

    It prevents posterior collapse. Early in training, q(z | sentence) lags behind the true posterior, because decoders
    change with every update; decoders then learn to ignore the latent, and the KL removes its information. So a step
    first trains only the encoders, until the loss stops falling, and then everything else once.

    `more_batches` gives the batches for the encoders of a step, at most `aggressive_steps`. `informations` are the
    values after each epoch that the run has reported so far; a resumed run reads them from its metrics.
    """

    def __init__(
        self, trainer: Trainer, more_batches: Callable[[int], Iterable[StepBatch]], informations: Sequence[float] = ()
    ):
        self.trainer, self.more_batches, self.informations = trainer, more_batches, list(informations)
        self.inference, self.generation = inference_and_generation_parameters(trainer.model)

    @property
    def active(self) -> bool:
        """Whether the encoders are still updated first: so far, I(x; z) has risen in every epoch."""
        return all(later > earlier for earlier, later in pairwise([0.0, *self.informations]))

    def __call__(self, step: int, update: StepBatch) -> Sums:
        """Update the encoders several times, then everything else once; if no longer `active`, make ordinary steps."""
        updates = tokens = 0
        active = self.active
        if active:
            with frozen(self.generation):
                updates, tokens = self.train_inference_network(step)
        with frozen(self.inference if active else []):
            sums = train_step(self.trainer, step, update)
        sums.tokens += tokens
        sums.inner_updates = updates
        return sums

    def train_inference_network(self, step: int) -> tuple[int, int]:
        """Run `train_step` on more batches, numbered from 1, until the mean loss per token of `GROUP` of them is not
        below that of the group before (He et al. 2019, alg. 1). Returns the number of updates, and the number of tokens
        that this worker used."""
        before, updates, tokens, group = math.inf, 0, 0, Sums()
        for number, update in enumerate(self.more_batches(step), 1):
            sums = train_step(self.trainer, step, update, number)
            group += sums
            tokens += sums.tokens
            updates = number
            if number % GROUP == 0:
                parts = {"loss": group.terms.get("loss", torch.zeros(())), "tokens": torch.as_tensor(group.tokens)}
                totals = self.trainer.workers.sum_over_ranks(parts)
                loss = float(totals["loss"] / totals["tokens"])
                if loss >= before:
                    break
                before, group = loss, Sums()
        return updates, tokens


def inference_and_generation_parameters(model: Model) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return the parameters of encoders alone, and all others, which include tables shared with decoders."""
    encoders = {model.encoder(latent, lang) for latent in model.latents for lang in model.langs}

    def outside(module: nn.Module) -> Iterator[nn.Parameter]:
        if module not in encoders:
            yield from module.parameters(recurse=False)
            for child in module.children():
                yield from outside(child)

    others = {id(parameter): parameter for parameter in outside(cast(nn.Module, model))}
    return [parameter for parameter in model.parameters() if id(parameter) not in others], list(others.values())


def train_step(trainer: Trainer, step: int, update: StepBatch, *inner: int) -> Sums:
    """Update the parameters that require a gradient, once. Random draws depend on (seed, step, micro-batch, *inner)."""
    config, sums = trainer.config, Sums()
    # Only in `bgt-bound`: bodies that track the mean vector of each language, and subtract the differences.
    erasing = [part for part in trainer.model.modules() if isinstance(part, WithoutLanguage)]
    for number, batch in update.batches.items():
        seed_everything(config.seed, step, number, *inner)
        batch = batch.to(trainer.device)
        with autocast(trainer.device, config.precision):
            loss = trainer.objective(trainer.model(batch).of(batch), step)
        if trainer.penalty:
            loss = trainer.penalty.added_to(loss, len(batch))
        if loss.total.requires_grad:  # by chance, a batch may use frozen parts alone
            (loss.total / update.rows).backward()
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
    """Sums over this worker's rows: of each term of the loss, and the number of rows with that term, which in a mixture
    of corpora may be fewer than all."""

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

    def row(self, learning_rate: float) -> dict[str, object]:
        """Make a row of metrics, with the means of all workers' terms in nats per row, and tokens per second; reset."""
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
        """Add an update's sums. Values on a GPU are not read here, because that would wait for it."""
        self.newest = sums
        if "loss" not in sums.terms:  # a worker without a micro-batch
            return
        loss = sums.terms["loss"] / sums.rows["loss"]
        if len(self.first) < WINDOW:
            self.first.append(loss)
        self.last.append(loss)

    def diverged(self, due: bool) -> bool:
        """Whether training has diverged in this process; on a GPU this is only checked if `due`."""
        if due or self.device.type == "cpu":
            self.reason = self.reason or self.not_finite() or self.exploded()
        return bool(self.reason)

    def exploded(self) -> str:
        """Describe how the loss exploded; "" if it did not."""
        if not self.explosion or len(self.last) < WINDOW:
            return ""
        before, now = (fmean(map(float, losses)) for losses in (self.first, self.last))
        if before <= 0 or now <= self.explosion * before:
            return ""
        return f"the loss per row, {now:.4g}, is more than {self.explosion:g} times its initial value, {before:.4g}"

    def not_finite(self) -> str:
        """Describe the newest update's first term that is NaN or infinite; "" if all are finite."""
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
        """Compute the penalties, scalars with gradient, by the names of their metrics; without those of weight 0."""
        squares = [parameter.square().sum() for parameter in self.composition]
        distances = [(table - began).square().sum() for table, began in self.tables]
        weighted = {
            "penalty/composition": (self.config.composition_l2, squares),
            "penalty/tables": (self.config.table_l2, distances),
        }
        return {name: 0.5 * weight * sum(of, torch.zeros(())) for name, (weight, of) in weighted.items() if weight}

    def added_to(self, loss: Loss, rows: int) -> Loss:
        """Add the penalty to a micro-batch's loss once per row, so that the mean over the update's rows has it once."""
        terms = {name: rows * cost for name, cost in self.terms().items()}
        detached = {name: cost.detach() for name, cost in terms.items()}
        return Loss(sum(terms.values(), loss.total), {**loss.terms, **detached})


def token_tables(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the weights of all token tables by parameter name, a shared table once."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    return {name: parameter for name, parameter in model.named_parameters() if id(parameter) in tables}
