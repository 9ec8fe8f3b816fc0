"""The training loop, and what it is composed of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import torch

from bgt_core.contracts import Model
from bgt_core.data.batching import Batching, StepBatch, prefetch, validation
from bgt_core.data.columns import parse_weights
from bgt_core.data.corpus import Corpus, Mixture
from bgt_core.device import release_memory
from bgt_core.errors import Diverged
from bgt_core.training.aggressive import Aggressive
from bgt_core.training.config import TrainConfig
from bgt_core.training.guard import Guard
from bgt_core.training.meter import Meter
from bgt_core.training.negatives import mined
from bgt_core.training.schedule import learning_rate
from bgt_core.training.step import Sums, Trainer, train_step
from bgt_core.training.validate import information_of, validate

INFORMED = 2_000  # held-out rows whose information says how long to be aggressive

Row = dict[str, object]  # of metrics
Step = Callable[[int, StepBatch], Sums]  # one update: its number and its batches -> this worker's sums


@dataclass(frozen=True)
class Hooks:
    """What the loop calls while it runs."""

    report: Callable[[Row], None]  # a row of metrics: "train" or "valid", with its step
    save: Callable[[int], None]  # the model and optimiser after that many steps
    stopped: Callable[[], bool]  # asked after each step: save and leave?


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


def batching(config: TrainConfig) -> Batching:
    """How a corpus becomes updates."""
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
    """Updates in the whole run; none of no epochs."""
    return max(1, round(config.epochs * batching(config).updates(corpus))) if config.epochs else 0


def train(
    trainer: Trainer,
    corpus: Corpus | Mixture,
    held_out: Corpus | Mixture,
    hooks: Hooks,
    start: int = 0,
    informations: Sequence[float] = (),
) -> int:
    """Train from step `start` to the end, or until `hooks.stopped`; returns the steps done.

    Everything random (batches, anchors, dropout, latent noise) follows from the seed, the step and the number of the
    micro-batch alone: a run that starts again from a saved step ends in the same weights, and any number of workers
    draws the same. One step = one update: the rows of `batch_tokens` tokens in micro-batches, the loss divided by
    the number of those rows, whoever computes them. Nothing in a step waits for a GPU; reports do, and the search for
    negatives. With mega-batches a run is saved, and stops, only between two of them: what comes then follows from the
    weights alone.

    With `aggressive_steps` training begins aggressively (see `aggressive`): a step is then updates of the encoders
    alone, and one of all else. `informations` are those that the run reported before `start`.
    """
    config, workers = trainer.config, trainer.workers
    steps, plan = total_steps(corpus, config), batching(config)
    rank, ranks = (0, 1) if config.mega_batch else (workers.rank, workers.count)  # negatives are searched among all

    def make(step: int) -> StepBatch:
        update = plan.update(corpus, step, rank, ranks)
        return update if trainer.device.type == "cpu" else update.pin()

    def fresh(step: int) -> Iterator[StepBatch]:  # of epochs past the run's own
        first = steps + step * config.aggressive_steps
        return prefetch(make, range(first, first + config.aggressive_steps))

    evaluate = partial(validation_rows, trainer, held_out, steps)
    if not steps:  # the model as it starts is a result too
        for row in evaluate(0):
            hooks.report(row)
        hooks.save(0)
        return 0
    updates = prefetch(make, range(start, steps))
    if config.mega_batch:
        updates = mined(updates, start, trainer, round(config.mega_batch_start * plan.updates(corpus)))
    if not config.aggressive_steps:
        return loop(trainer, updates, partial(train_step, trainer), evaluate, hooks, start, steps)
    information_of(trainer, islice(validation(held_out, config.micro_tokens), 1))  # refuses a model without any, early
    ahead = Aggressive(trainer, fresh, informations)
    epoch = plan.updates(corpus)

    def evaluate_both(done: int) -> Iterator[Row]:
        yield from evaluate(done)
        if ahead.active and done % epoch == 0:
            yield information_row(trainer, held_out, ahead, done, steps)

    return loop(trainer, updates, ahead, evaluate_both, hooks, start, steps)


def loop(
    trainer: Trainer,
    updates: Iterable[StepBatch],
    step_fn: Step,
    evaluate: Callable[[int], Iterable[Row]],
    hooks: Hooks,
    start: int,
    steps: int,
) -> int:
    """One `step_fn` for each of `updates`, from number `start` on; returns how many of all `steps` are done.

    Raises Diverged, in all workers, where one of them sees it (`Guard`): before anything of that update is saved.
    """
    config, meter, unsaved = trainer.config, Meter(trainer.workers), False
    guard = Guard(config.explosion, trainer.device)
    for step, update in enumerate(updates, start):
        # One update, at its learning rate.
        for group in trainer.optimizer.param_groups:
            group["lr"] = learning_rate(step, steps, config)
        sums = step_fn(step, update)
        meter.add(sums)
        guard.add(sums)

        # Is it the last? All workers agree.
        done = step + 1
        looked = meter.due or done == steps or done % config.save_every == 0
        due, stopped, diverged = trainer.workers.any(meter.due, hooks.stopped(), guard.diverged(looked))
        if diverged:
            raise Diverged(f"update {done}: {guard.reason or 'another worker has diverged'}")
        last = done == steps or (stopped and update.closes_mega_batch)

        # Report every few seconds what was trained; validate when it is time. That time does not count.
        if due or last:
            rate = trainer.optimizer.param_groups[0]["lr"]
            hooks.report({"kind": "train", "step": done, "steps": steps, **meter.row(rate)})
            release_memory()
        with meter.paused():
            for row in evaluate(done):
                hooks.report(row)

        # Save where a run can continue from.
        unsaved |= done % config.save_every == 0
        if (unsaved and update.closes_mega_batch) or last:
            hooks.save(done)
            unsaved = False
        if last:
            return done
    return steps


def validation_rows(trainer: Trainer, held_out: Corpus | Mixture, steps: int, done: int) -> Iterator[Row]:
    """A row of validation, after every `valid_every` steps and the last."""
    if not done or done % trainer.config.valid_every == 0 or done == steps:
        scores = validate(trainer, validation(held_out, trainer.config.micro_tokens))
        yield {"kind": "valid", "step": done, "steps": steps, **scores}


def information_row(trainer: Trainer, held_out: Corpus | Mixture, ahead: Aggressive, done: int, steps: int) -> Row:
    """What the latents tell of the sentence after an epoch; it decides whether the encoders stay ahead."""
    by_latent = information_of(trainer, validation(held_out, trainer.config.micro_tokens, INFORMED))
    ahead.informations.append(sum(by_latent.values()))
    return {"kind": "information", "step": done, "steps": steps, "information": ahead.informations[-1], **by_latent}
