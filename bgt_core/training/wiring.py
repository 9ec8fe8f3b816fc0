"""Compose a training: updates, steps and evaluations, which the loop runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

import torch

from bgt_core.contracts import Model
from bgt_core.data.batching import Batching, StepBatch, prefetch, validation
from bgt_core.data.columns import parse_weights
from bgt_core.data.corpus import Corpus, Mixture
from bgt_core.nets.decoder import DecoderLayer
from bgt_core.nets.layers import EncoderLayer
from bgt_core.training.aggressive import Aggressive
from bgt_core.training.config import TrainConfig
from bgt_core.training.loop import Hooks, Row, Trainer, loop, train_step
from bgt_core.training.negatives import mined
from bgt_core.training.validate import information_of, validate

LONG = 1_000  # updates from which on a run on a GPU compiles its layers: that takes a minute or two
INFORMED = 2_000  # held-out rows whose information decides how long training is aggressive


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


def compile_layers(model: Model, setting: str, device: torch.device, steps: int) -> None:
    """Compile each Transformer layer for any number of tokens, if `train.compile` says so for `steps` updates.

    Off on a CPU, where compiled layers take 1.13 times as long, as torch multiplies by MKL there (`backend`).
    """
    if setting == "on" or (setting == "auto" and device.type == "cuda" and steps >= LONG):
        for layer in model.modules():
            if isinstance(layer, (EncoderLayer, DecoderLayer)):
                layer.compile(dynamic=True)


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
    """Updates in the whole run; 0 without epochs."""
    return max(1, round(config.epochs * batching(config).updates(corpus))) if config.epochs else 0


def train(
    trainer: Trainer,
    corpus: Corpus | Mixture,
    held_out: Corpus | Mixture,
    hooks: Hooks,
    start: int = 0,
    informations: Sequence[float] = (),
) -> int:
    """Train from step `start` to the end, or until `hooks.stopped`; return the number of steps done.

    All random draws (batches, anchors, dropout, latent noise) depend on the seed, the step and the number of the
    micro-batch alone. So a run that restarts from a saved step ends in the same weights, and any number of workers
    draws the same. One step = one update: rows of `batch_tokens` tokens in micro-batches, the loss divided by the
    number of those rows, whichever worker computes them. A step waits for a GPU only where a model selects tokens or
    rows (`bgt-bound`, `writer`, `var-siamese-reformulate`); reports and the search for negatives do. With mega-batches
    a run is saved, and stops, only between two of them, where the next updates depend on the weights alone.

    With `aggressive_steps` training begins aggressively (see `aggressive`): a step is then several updates of the
    encoders, and one of everything else. `informations` are those that the run reported before `start`.
    """
    course = Course(trainer, corpus, held_out)
    if not course.steps:  # the untrained model is a result too
        for row in course.evaluate(0):
            hooks.report(row)
        hooks.save(0)
        return 0
    if not trainer.config.aggressive_steps:
        step_fn = partial(train_step, trainer)
        return loop(trainer, course.updates(start), step_fn, course.evaluate, hooks, start, course.steps)
    course.information(1)  # fail early if the model has no density
    course.ahead = Aggressive(trainer, course.encoder_updates, informations)
    return loop(trainer, course.updates(start), course.ahead, course.evaluate, hooks, start, course.steps)


class Course:
    """The updates of a run in order, and the evaluations after each.

    Args:
        trainer: The trainer of this process.
        corpus, held_out: Training rows, and rows for evaluation.
    """

    def __init__(self, trainer: Trainer, corpus: Corpus | Mixture, held_out: Corpus | Mixture):
        self.trainer, self.corpus, self.held_out = trainer, corpus, held_out
        self.plan, self.steps = batching(trainer.config), total_steps(corpus, trainer.config)
        self.epoch = self.plan.updates(corpus)
        compile_layers(trainer.model, trainer.config.compile, trainer.device, self.steps)
        self.ahead: Aggressive | None = None  # the step during aggressive training

    def update(self, step: int) -> StepBatch:
        """This worker's share of an update; all of it if negatives are searched among all rows."""
        workers = self.trainer.workers
        share = (0, 1) if self.trainer.config.mega_batch else (workers.rank, workers.count)
        update = self.plan.update(self.corpus, step, *share)
        return update if self.trainer.device.type == "cpu" else update.pin()

    def updates(self, start: int) -> Iterator[StepBatch]:
        """The updates from step `start` on, with their negatives."""
        updates = prefetch(self.update, range(start, self.steps))
        if not self.trainer.config.mega_batch:
            return updates
        return mined(updates, start, self.trainer, round(self.trainer.config.mega_batch_start * self.epoch))

    def encoder_updates(self, step: int) -> Iterator[StepBatch]:
        """The updates for the encoders before a step: from epochs after the run's own."""
        count = self.trainer.config.aggressive_steps
        first = self.steps + step * count
        return prefetch(self.update, range(first, first + count))

    def evaluate(self, done: int) -> Iterator[Row]:
        """The rows of metrics after a number of steps: validation if it is due, and after an epoch of an aggressive
        training, the information that decides whether the encoders are still updated first."""
        where: Row = {"step": done, "steps": self.steps}
        if not done or done % self.trainer.config.valid_every == 0 or done == self.steps:
            batches = validation(self.held_out, self.trainer.config.micro_tokens)
            yield {"kind": "valid", **where, **validate(self.trainer, batches)}
        if self.ahead and self.ahead.active and done % self.epoch == 0:
            by_latent = self.information()
            self.ahead.informations.append(sum(by_latent.values()))
            yield {"kind": "information", **where, "information": self.ahead.informations[-1], **by_latent}

    def information(self, batches: int | None = None) -> dict[str, float]:
        """The information of each latent about the held-out sentences, nats; optionally of the first `batches` only."""
        rows = validation(self.held_out, self.trainer.config.micro_tokens, INFORMED)
        return information_of(self.trainer, islice(rows, batches))
