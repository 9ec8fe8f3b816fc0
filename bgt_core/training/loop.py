"""The training loop. `train_model` calls `train_step` for each update, and validates, reports and saves.

`Aggressive` replaces the ordinary training step, to prevent posterior collapse. No recipe uses it by default.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import cast

import torch
from torch import Tensor, nn

from bgt_core.backend import autocast, release_memory, seed_everything
from bgt_core.contracts import Batch, Loss, Model
from bgt_core.data.batching import Batching, StepBatch, prefetch, validation
from bgt_core.data.columns import parse_weights
from bgt_core.data.store import Corpus, Mixture
from bgt_core.errors import Diverged
from bgt_core.nets.bound import WithoutLanguage
from bgt_core.nets.decoder import DecoderLayer
from bgt_core.nets.layers import EncoderLayer
from bgt_core.objectives import Sum
from bgt_core.recipes.recipe import TrainConfig
from bgt_core.training.negatives import mined
from bgt_core.training.validate import information_of, validate
from bgt_core.training.workers import Workers

REPORT_SECONDS = 10.0  # seconds between two reports of the training loss
WINDOW = 20  # number of updates over which `Guard` averages the loss
LONG = 1_000  # runs on a GPU with at least this many updates compile their layers, which takes a minute or two
GROUP = 10  # aggressive training updates only encoders until the mean loss of this many updates stops falling

Row = dict[str, object]  # the metrics of a report, by name


@dataclass(frozen=True, eq=False)
class Trainer:
    """The model, its optimiser and its settings in one worker process."""

    model: Model
    optimizer: torch.optim.Optimizer
    objective: Sum
    config: TrainConfig
    device: torch.device
    workers: Workers
    penalty: Penalty | None = None


@dataclass(frozen=True)
class Hooks:
    """The functions that the loop calls to report, to save, and to find out whether to stop."""

    report: Callable[[Row], None]  # called with metrics, whose "kind" is "train", "valid" or "information"
    save: Callable[[int], None]  # save the model and optimiser; the argument is the number of steps done
    stopped: Callable[[], bool]  # called after each step; if true, the run saves and stops


def make_optimizer(model: Model, config: TrainConfig) -> torch.optim.AdamW:
    """Make AdamW with decoupled weight decay (p -= rate * decay * p), as in the BGT paper."""
    learns = [parameter for parameter in model.parameters() if parameter.requires_grad]
    rate, decay = config.learning_rate, config.weight_decay
    return torch.optim.AdamW(learns, lr=rate, betas=(0.9, 0.98), eps=1e-8, weight_decay=decay, fused=True)


def learning_rate(step: int, steps: int, config: TrainConfig) -> float:
    """Return the learning rate of a step: linear warm-up, then 1 / sqrt(step) (Vaswani et al. 2017); constant if there
    is no warm-up. With `cooldown`, it falls linearly to 0 at the end of the run."""
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
    """Train from step `start` to the end, or until `hooks.stopped()` is true; return the number of steps done.

    All random draws (batches, anchors, dropout, latent noise) depend only on the seed, the step and the index of the
    micro-batch. So a run that restarts from a saved step ends with the same weights, whatever the number of workers.
    One step is one update. Its rows are split into micro-batches, and its loss is divided by the number of rows in all
    workers. A run with mega-batches can save or stop only between two mega-batches, because inside a mega-batch, the
    negatives of the next update were found with earlier weights.

    `informations` are the values of the mutual information that an aggressive run reported before `start`. If training
    diverges in one worker (`Guard`), all workers raise Diverged before the update is saved.
    """
    config, steps, ahead = trainer.config, total_steps(corpus, trainer.config), None
    compile_layers(trainer.model, config.compile, trainer.device, steps)
    if config.aggressive_steps and steps:
        information_of(trainer, held_out, batches=1)  # fail now, not after an epoch, if the posteriors have no density
        ahead = Aggressive(trainer, partial(encoder_updates, trainer, corpus, steps), informations)
    if not steps:  # with 0 epochs, the untrained model is the result
        evaluate(trainer, corpus, held_out, hooks, 0)
        hooks.save(0)
    guard, unsaved = Guard(config.explosion, trainer.device), False
    unreported, reported = Sums(), time.perf_counter()
    for step, update in enumerate(updates_of(trainer, corpus, range(start, steps)), start):
        rate = learning_rate(step, steps, config)
        for group in trainer.optimizer.param_groups:
            group["lr"] = rate
        sums = ahead(step, update) if ahead else train_step(trainer, step, update)
        unreported += sums
        guard.add(sums)

        # All workers must agree on whether to report, whether to stop, and whether training has diverged.
        done = step + 1
        unsaved |= done % config.save_every == 0
        stopped, saves = hooks.stopped(), done == steps or (unsaved and update.closes_mega_batch)
        due = time.perf_counter() - reported >= REPORT_SECONDS
        due, stopped, diverged = trainer.workers.any(due, stopped, guard.diverged(due or stopped or saves))
        if diverged:
            raise Diverged(f"update {done}: {guard.reason or 'another worker has diverged'}")
        last = done == steps or (stopped and update.closes_mega_batch)

        # Report every few seconds, and validate when it is due. The reported speed excludes the time of validation.
        if due or last:
            row = training_row(trainer.workers, unreported, time.perf_counter() - reported)
            hooks.report({"kind": "train", "step": done, "steps": steps, **row, "learning_rate": rate})
            unreported, reported = Sums(), time.perf_counter()
            release_memory()
        began = time.perf_counter()
        evaluate(trainer, corpus, held_out, hooks, done, ahead)
        reported += time.perf_counter() - began

        # Save only between mega-batches, because a run can't continue from a step inside a mega-batch.
        if saves or last:
            hooks.save(done)
            unsaved = False
        if last:
            return done
    return steps


def evaluate(
    trainer: Trainer,
    corpus: Corpus | Mixture,
    held_out: Corpus | Mixture,
    hooks: Hooks,
    done: int,
    ahead: Aggressive | None = None,
) -> None:
    """Validate the model if this is due after `done` steps. After an epoch of aggressive training (more
    updates of the encoders, He et al. 2019), measure the mutual information of sentences and latents: if it did not
    rise, further steps are ordinary steps."""
    config, steps = trainer.config, total_steps(corpus, trainer.config)
    where: Row = {"step": done, "steps": steps}
    if not done or done % config.valid_every == 0 or done == steps:
        scores = validate(trainer, validation(held_out, config.micro_tokens))
        hooks.report({"kind": "valid", **where, **scores})
    if ahead and ahead.active and done % batching(config).updates(corpus) == 0:
        by_latent = information_of(trainer, held_out)
        ahead.informations.append(sum(by_latent.values()))
        hooks.report({"kind": "information", **where, "information": ahead.informations[-1], **by_latent})


def updates_of(trainer: Trainer, corpus: Corpus | Mixture, steps: range) -> Iterator[StepBatch]:
    """Yield this worker's micro-batches of each update. With mega-batches, the micro-batches contain hard negatives."""
    config, plan, workers = trainer.config, batching(trainer.config), trainer.workers
    share = (0, 1) if config.mega_batch else (workers.rank, workers.count)  # mega-batches need all workers' rows

    def make_update(step: int) -> StepBatch:
        update = plan.update(corpus, step, *share)
        return update if trainer.device.type == "cpu" else update.pin()

    updates = prefetch(make_update, steps)
    if not config.mega_batch:
        return updates
    return mined(updates, steps.start, trainer, round(config.mega_batch_start * plan.updates(corpus)))


def encoder_updates(trainer: Trainer, corpus: Corpus | Mixture, steps: int, step: int) -> Iterator[StepBatch]:
    """Yield the encoder-only updates before `step`. Their batches are those of steps after the end of the run."""
    count = trainer.config.aggressive_steps
    return updates_of(trainer, corpus, range(steps + step * count, steps + (step + 1) * count))


def compile_layers(model: Model, setting: str, device: torch.device, steps: int) -> None:
    """Compile each Transformer layer, for any number of tokens, if `setting` is "on", or "auto" for a run of at least
    `LONG` steps on a GPU. On a CPU, compiled layers take 1.13 times as long, because they multiply with MKL."""
    if setting == "on" or (setting == "auto" and device.type == "cuda" and steps >= LONG):
        for layer in model.modules():
            if isinstance(layer, (EncoderLayer, DecoderLayer)):
                layer.compile(dynamic=True)


def batching(config: TrainConfig) -> Batching:
    """Return the settings by which a corpus is divided into updates and micro-batches."""
    sizes, kinds = (config.batch_tokens, config.micro_tokens), parse_weights(config.kind_weights)
    return Batching(*sizes, config.seed, config.scramble, config.micro_batches, config.sampling_temperature, kinds)


def total_steps(corpus: Corpus | Mixture, config: TrainConfig) -> int:
    """Return the number of updates in the whole run; 0 if `epochs` is 0."""
    return max(1, round(config.epochs * batching(config).updates(corpus))) if config.epochs else 0


class Aggressive:
    """A training step that updates the encoders first, while this raises the mutual information of texts and latents.

    This prevents posterior collapse (He et al. 2019). Early in training, q(z | sentence) lags behind the true
    posterior, because decoders change with every update. Decoders then learn to ignore the latent, and the KL removes
    information from it. So a step first trains only the encoders until the loss stops falling, then all else once.
    `more_batches` returns the encoder updates of a step; `informations` has the mutual information after each epoch.
    """

    def __init__(
        self, trainer: Trainer, more_batches: Callable[[int], Iterable[StepBatch]], informations: Sequence[float] = ()
    ):
        self.trainer, self.more_batches, self.informations = trainer, more_batches, list(informations)
        self.inference, self.generation = inference_and_generation_parameters(trainer.model)

    @property
    def active(self) -> bool:
        """Whether steps still update the encoders first: as long as the mutual information has risen in every epoch."""
        return all(later > earlier for earlier, later in pairwise([0.0, *self.informations]))

    def __call__(self, step: int, update: StepBatch) -> Sums:
        """If `active`, update the encoders several times, then all other parameters once; else update all of them."""
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
        """Update the encoders until the mean loss per token of the last `GROUP` updates is no longer below that of the
        `GROUP` updates before (He et al. 2019, alg. 1). Return (number of updates, number of tokens in this worker)."""
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
    """Return the parameters that only encoders use, and all others, such as token embeddings that decoders use too."""
    encoders = {model.encoder(latent, lang) for latent in model.latents for lang in model.langs}

    def outside(module: nn.Module) -> Iterator[nn.Parameter]:
        if module not in encoders:
            yield from module.parameters(recurse=False)
            for child in module.children():
                yield from outside(child)

    others = {id(parameter): parameter for parameter in outside(cast(nn.Module, model))}
    return [parameter for parameter in model.parameters() if id(parameter) not in others], list(others.values())


def train_step(trainer: Trainer, step: int, update: StepBatch, *inner: int) -> Sums:
    """Make one update of all parameters that require a gradient. Random draws depend on the seed, the step and the
    micro-batch's index; in aggressive training, also on `inner`, the index of the encoder update."""
    config, sums = trainer.config, Sums()
    # Only `bgt-bound` has these modules, which track the mean vector of each language and remove the differences.
    erasing = [part for part in trainer.model.modules() if isinstance(part, WithoutLanguage)]
    for number, batch in update.batches.items():
        seed_everything(config.seed, step, number, *inner)
        batch = batch.to(trainer.device)
        with autocast(trainer.device, config.precision):
            loss = trainer.objective(replace(trainer.model(batch), batch=batch), step)
        if trainer.penalty:
            loss = trainer.penalty.added_to(loss, len(batch))
        if loss.total.requires_grad:  # false if, by chance, a batch uses only frozen parameters
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
    """Freeze these parameters within a `with` block."""
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
    """The sums of the metrics over the rows of this worker's micro-batches, and the number of rows with each metric.
    If corpora with different columns are mixed, some rows lack some metrics."""

    terms: dict[str, Tensor] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    tokens: int = 0  # number of tokens in all columns, without padding
    inner_updates: int | None = None  # number of encoder-only updates; None in ordinary training
    gradient_norm: Tensor | None = None  # norm in the newest update, before clipping, in nats per row
    micro_batches: dict[int, Mapping[str, Tensor]] = field(default_factory=dict)  # index in the update -> metrics

    def add(self, number: int, terms: Mapping[str, Tensor], batch: Batch) -> None:
        """Add the metrics of a micro-batch, which has the index `number` in its update."""
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


def training_row(workers: Workers, sums: Sums, seconds: float) -> Row:
    """Return the metrics to report: means over the rows of all workers, in nats, and the tokens per second."""
    counts = {f"rows {name}": torch.as_tensor(count) for name, count in sums.rows.items()}
    totals = workers.sum_over_ranks({**sums.terms, **counts, "tokens": torch.as_tensor(sums.tokens)})
    means = {name: (totals[name] / totals[f"rows {name}"]).item() for name in totals if f"rows {name}" in totals}
    norm = float(sums.gradient_norm) if sums.gradient_norm is not None else 0.0
    inner = {} if sums.inner_updates is None else {"inner_steps": sums.inner_updates}
    return {**means, "gradient_norm": norm, **inner, "tokens_per_second": totals["tokens"].item() / seconds}


class Guard:
    """Detect that training diverges: the loss, a metric or a gradient is NaN or infinite, or the loss explodes.

    A loss explodes if its mean per row over the last 20 updates is more than `explosion` times its mean over the first
    20 updates since the run began or was resumed. This is not checked if `explosion` or the first mean is 0 or below.
    """

    def __init__(self, explosion: float, device: torch.device):
        self.explosion, self.device = explosion, device
        self.first: list[Tensor] = []
        self.last: deque[Tensor] = deque(maxlen=WINDOW)
        self.reason = ""  # why training has diverged; "" if it has not

    def add(self, sums: Sums) -> None:
        """Record the metrics of an update. Values on a GPU are not read yet, because reading would wait for the GPU."""
        self.newest = sums
        if "loss" not in sums.terms:  # this worker had no micro-batch in the update
            return
        loss = sums.terms["loss"] / sums.rows["loss"]
        if len(self.first) < WINDOW:
            self.first.append(loss)
        self.last.append(loss)

    def diverged(self, due: bool) -> bool:
        """Return whether training has diverged in this process. On a GPU, check it only if a report is `due`."""
        if due or self.device.type == "cpu":
            self.reason = self.reason or self.not_finite() or self.exploded()
        return bool(self.reason)

    def exploded(self) -> str:
        """Return a description of how the loss exploded; "" if it did not."""
        if not self.explosion or len(self.last) < WINDOW:
            return ""
        before, now = (fmean(map(float, losses)) for losses in (self.first, self.last))
        if before <= 0 or now <= self.explosion * before:
            return ""
        return f"the loss per row, {now:.4g}, is more than {self.explosion:g} times its initial value, {before:.4g}"

    def not_finite(self) -> str:
        """Describe the first NaN or infinite metric of the newest update; "" if all metrics are finite."""
        for number, terms in self.newest.micro_batches.items():
            for name, value in terms.items():
                if not math.isfinite(value):
                    return f"{name} of micro-batch {number} is {float(value)}"
        norm = self.newest.gradient_norm
        return f"the norm of the gradient is {float(norm)}" if norm is not None and not math.isfinite(norm) else ""


class Penalty:
    """An L2 penalty: lambda_c / 2 ||W_c||^2 + lambda_w / 2 ||W - W_start||^2 per update (Wieting et al. 2017, eq. 4).
    W_c are all parameters except the token embeddings W. The factor 1/2 is in the authors' code, but not in the paper.
    `start` has the initial embeddings W_start by name. lambda_c and lambda_w are `composition_l2` and `table_l2`.
    """

    def __init__(self, model: nn.Module, config: TrainConfig, start: Mapping[str, Tensor]):
        tables = token_tables(model)
        of_tables = {id(table) for table in tables.values()}
        self.config = config
        self.composition = [parameter for parameter in model.parameters() if id(parameter) not in of_tables]
        self.tables = [(tables[name], began.to(tables[name].device)) for name, began in start.items()]

    def added_to(self, loss: Loss, rows: int) -> Loss:
        """Add the penalty to the loss of a micro-batch once per row, because the loss is a sum over rows."""
        squares = [parameter.square().sum() for parameter in self.composition]
        distances = [(table - began).square().sum() for table, began in self.tables]
        weighted = {
            "penalty/composition": (self.config.composition_l2, squares),
            "penalty/tables": (self.config.table_l2, distances),
        }
        zero = torch.zeros(())
        terms = {name: rows * (0.5 * weight * sum(of, zero)) for name, (weight, of) in weighted.items() if weight}
        detached = {name: cost.detach() for name, cost in terms.items()}
        return Loss(sum(terms.values(), loss.total), {**loss.terms, **detached})


def token_tables(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the weights of all token embeddings by parameter name. Shared weights are listed once."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    return {name: parameter for name, parameter in model.named_parameters() if id(parameter) in tables}
