"""Compose a training: updates, steps and evaluations, which the loop runs; ordinary, or aggressive at first.

Aggressive training (He et al. 2019) works against posterior collapse. Early on, q(z | sentence) lags behind the true
posterior, as decoders change with every update; decoders then learn to ignore the latent, and the KL removes its
information. So, while it helps, only the encoders are trained until the loss stops falling, and only then do the
decoders take one step. To continue, a run only needs the mutual information at the ends of its epochs, which is in its
metrics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import cast

import torch
from torch import nn

from bgt_core.contracts import Model
from bgt_core.data.batching import Batching, StepBatch, prefetch, validation
from bgt_core.data.columns import parse_weights
from bgt_core.data.corpus import Corpus, Mixture
from bgt_core.nets.decoder import DecoderLayer
from bgt_core.nets.layers import EncoderLayer
from bgt_core.recipes.recipe import TrainConfig
from bgt_core.training.loop import Hooks, Row, Sums, Trainer, frozen, loop, train_step
from bgt_core.training.negatives import mined
from bgt_core.training.validate import information_of, validate

LONG = 1_000  # updates from which on a run on a GPU compiles its layers: that takes a minute or two
INFORMED = 2_000  # held-out rows whose information decides how long training is aggressive
GROUP = 10  # updates whose mean loss is compared with that of the group before


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


def train_model(
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

    With `aggressive_steps` training begins aggressively: a step is then several updates of the encoders, and one of
    everything else. `informations` are those that the run reported before `start`.
    """
    course = Course(trainer, corpus, held_out)
    if not course.steps:  # the untrained model is a result too
        for row in course.evaluate(0):
            hooks.report(row)
        hooks.save(0)
        return 0
    step_fn: Callable[[int, StepBatch], Sums] = partial(train_step, trainer)
    if trainer.config.aggressive_steps:
        course.information(1)  # fail early if the model has no density
        step_fn = course.ahead = Aggressive(trainer, course.encoder_updates, informations)
    return loop(trainer, course.updates(start), step_fn, course.evaluate, hooks, start, course.steps)


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


class Aggressive:
    """A training step that updates the encoders first, as long as that raises the mutual information.

    `fresh` gives the batches for the encoders of a step, at most `aggressive_steps` of them; `informations` are those
    that the run reported so far, and grow.
    """

    def __init__(
        self, trainer: Trainer, fresh: Callable[[int], Iterable[StepBatch]], informations: Sequence[float] = ()
    ):
        self.trainer, self.fresh, self.informations = trainer, fresh, list(informations)
        self.inference, self.generation = inference_and_generation_parameters(trainer.model)

    @property
    def active(self) -> bool:
        """Whether the encoders are still updated first: I(x; z), nats, was higher at the end of each epoch than at the
        end of the one before."""
        return all(later > earlier for earlier, later in pairwise([0.0, *self.informations]))

    def __call__(self, step: int, update: StepBatch) -> Sums:
        """Update the encoders several times, then everything else once; later, make ordinary steps."""
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
        """Run `train_step` on fresh updates, numbered from 1, until the mean loss per token of `GROUP` of them is not
        below that of the group before (He et al. 2019, alg. 1). Returns the number of updates, and the number of tokens
        that this worker used."""
        before, updates, tokens, group = math.inf, 0, 0, Sums()
        for number, update in enumerate(self.fresh(step), 1):
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
    """Parameters of the encoders only, and all others: a shared table goes with the decoders."""
    encoders = {model.encoder(latent, lang) for latent in model.latents for lang in model.langs}

    def outside(module: nn.Module) -> Iterator[nn.Parameter]:
        if module not in encoders:
            yield from module.parameters(recurse=False)
            for child in module.children():
                yield from outside(child)

    others = {id(parameter): parameter for parameter in outside(cast(nn.Module, model))}
    return [parameter for parameter in model.parameters() if id(parameter) not in others], list(others.values())
