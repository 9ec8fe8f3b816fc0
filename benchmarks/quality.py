"""Training time to quality: held-out reconstruction and STS Benchmark's dev set against processor time.

    python -m benchmarks.quality --data pairs.tsv.xz --stsb dev.tsv                # about a quarter of an hour
    python -m benchmarks.quality --data pairs.tsv.xz --stsb dev.tsv --minutes 30   # of each form; about two hours

Equal: the recipe (`bgt-plus` at d=256, but for three settings: the straight form knows no word dropout, no weights of
the KL and no samples), the weights at the start, the updates of 1,000 tokens and their order, the learning rate of
each. The straight form takes an update in batches by length, the best of three sizes, measured first; its margin loss
finds negatives in those. The forms train in turn, until each has had the same processor time; scoring does not count.

A ratio is the straight form's time to one of its last checkpoints over the time in which ours was as good, read off
our checkpoints, between which the score moves evenly with the logarithm of time; where ours is better at its first
one, that one's time stands. STSb is Spearman x 100 of its pairs before 2016, by the semantic latent; there is no ratio
where the straight form ends below its start, as it does in short runs: the average begins high, and falls at first.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks import straight
from benchmarks.forms import straight_form
from benchmarks.measure import Measurement, page
from benchmarks.workload import (
    CLIP,
    SMALL,
    Pair,
    batch_of,
    best_of,
    our_batches,
    real_pairs,
    released_batches,
    updates_of,
)
from bgt_core import recipes
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.data.batching import StepBatch
from bgt_core.data.text import Tokenizer
from bgt_core.embedder import Embedder
from bgt_core.errors import DataError
from bgt_core.evaluation.sts.score import StsSet
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.sts import Sts
from bgt_core.models.bgt import BGT
from bgt_core.objectives.combine import Sum
from bgt_core.posterior import READOUTS
from bgt_core.recipes import Recipe
from bgt_core.training.loop import Trainer, train_step
from bgt_core.training.schedule import learning_rate
from bgt_core.training.wiring import make_optimizer
from bgt_core.training.workers import SINGLE_PROCESS

READ, HELD_OUT = 60_000, 400  # pairs
UPDATE = 1_000  # tokens of the longer side
SHARES = tuple(2.0**-power for power in range(6, -1, -1))  # shares of the time at which all forms are scored
COMPARED = 3  # checkpoints of the straight form, the last ones
LATER = ("/2016", "/2017")


@dataclass(frozen=True)
class Score:
    """A checkpoint."""

    seconds: float
    updates: int
    nats: float  # reconstruction loss of a held-out token
    stsb: float


@dataclass(eq=False)
class Learner:
    """A form in training."""

    model: BGT
    step: Callable[[int], object]  # one update, by its number
    settle: Callable[[], object]  # before the model is scored
    seconds: float = 0.0
    updates: int = 0
    scores: list[Score] = field(default_factory=list)

    def train(self, until: float) -> None:
        """Updates until that much processor time is spent."""
        self.model.train()
        while self.seconds < until:
            begun = time.process_time()
            self.step(self.updates)
            self.seconds += time.process_time() - begun
            self.updates += 1
        self.settle()


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    if not (options.data and options.stsb):
        print("Time to quality is not measured: it takes real pairs (--data) and STS Benchmark's dev.tsv (--stsb).")
        return
    tokenizer, pairs, held_out = real_pairs(options.data, READ, HELD_OUT, SMALL.vocab)
    sets = [stsb_of(options.stsb)]
    learners = learners_of(tokenizer, updates_of(pairs, UPDATE))
    beginning = stsb(learners["straight"].model, tokenizer, sets)
    print(f"at the start STSb {beginning:.1f}")
    for share in SHARES:
        for learner in learners.values():
            learner.train(60 * options.minutes * share)
            nats, score = reconstruction(learner.model, held_out), stsb(learner.model, tokenizer, sets)
            learner.scores.append(Score(learner.seconds, learner.updates, nats, score))
        newest = {name: learner.scores[-1] for name, learner in learners.items()}
        print(f"after {60 * options.minutes * share:.0f} s: " + "; ".join(f"{n} {line(s)}" for n, s in newest.items()))
    peer = learners.pop("straight").scores
    compared = [("nats", -1), ("stsb", 1)]
    if peer[-1].stsb <= beginning:
        print(f"The straight form's STSb ends at {peer[-1].stsb:.1f}, below its start: no ratio; --minutes takes more.")
        compared.pop()
    for name, learner in learners.items():
        for quality, sign in compared:
            yield Measurement(
                work=f"{'held-out reconstruction' if sign < 0 else 'STSb dev'} of a training run, d=256, {name}",
                against="the straight form, fp32: its time to the same",
                ratios=speedups(learner.scores, peer[-COMPARED:], quality, sign),
                target=">= 1",
                ours=f"at the end {line(learner.scores[-1])}",
                peer=line(peer[-1]),
                error="the same updates from the same start",
                bottleneck="see the training step",
            )


def own_options(arguments: argparse.ArgumentParser) -> None:
    arguments.add_argument("--minutes", type=float, default=2.0, help="processor time for each form, in minutes")


def line(score: Score) -> str:
    """A checkpoint in words."""
    return f"{score.updates} updates, {score.nats:.2f} nats a token, STSb {score.stsb:.1f}"


def learners_of(tokenizer: Tokenizer, updates: Sequence[Sequence[Pair]]) -> dict[str, Learner]:
    """Ours in both precisions and the straight form, from one start."""
    rates = {"train.learning_rate": 1e-3, "train.warmup_steps": 100, "train.batch_tokens": UPDATE}
    plain = {
        "model.readout": "mean",
        "model.word_dropout": 0.0,
        **{f"objective.elbo.weights.{z}": 1.0 for z in (SEMANTIC, LANGUAGE)},
    }
    sizes = {**SMALL.arguments, "data.vocab_size": SMALL.vocab, "model.dropout": 0.1}
    recipe = recipes.build("bgt-plus", rates | plain | sizes)
    torch.manual_seed(0)
    start = recipe.build(tokenizer)
    learners = {name: our_learner(copy.deepcopy(start), recipe, updates, name) for name in ("bf16", "fp32")}
    return learners | {"straight": straight_learner(copy.deepcopy(start), recipe, updates)}


def our_learner(model: BGT, recipe: Recipe, updates: Sequence[Sequence[Pair]], precision: str) -> Learner:
    config = recipes.build(recipe.name, {**(recipe.arguments or {}), "train.precision": precision}).train
    optimizer = make_optimizer(model, config)
    trainer = Trainer(model, optimizer, recipe.objective, config, torch.device("cpu"), SINGLE_PROCESS)

    def step(number: int) -> None:
        pairs = updates[number % len(updates)]
        optimizer.param_groups[0]["lr"] = learning_rate(number, number + 1, config)
        train_step(trainer, number, StepBatch(len(pairs), dict(enumerate(our_batches(pairs, config.micro_tokens)))))

    return Learner(model, step, lambda: None)


def straight_learner(model: BGT, recipe: Recipe, updates: Sequence[Sequence[Pair]]) -> Learner:
    elbo = recipe.objective["elbo"]
    auxiliary = [Sum({name: part}) for name, part in recipe.objective.counting.items() if name != "elbo"]
    reference = straight.StraightBGT(model, recipe.model.dropout, auxiliary).train()
    parameters = reference.parameters_used()
    forms = {tokens: straight_form(reference, updates[0], tokens) for tokens in (250, 500, UPDATE)}
    tokens = best_of(forms, time.process_time)
    reference.zero_grad()
    optimizer = straight.optimizer(parameters)

    def step(number: int) -> None:
        pairs = updates[number % len(updates)]
        optimizer.param_groups[0]["lr"] = learning_rate(number, number + 1, recipe.train)
        torch.manual_seed(number)
        for turn, rows in enumerate(released_batches(pairs, tokens), number):
            loss = reference(batch_of(rows, turn), min(1.0, number / elbo.warmup_steps), elbo.label_smoothing)
            (loss / len(pairs)).backward()
        nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        optimizer.zero_grad()

    return Learner(model, step, reference.write_back)


def reconstruction(model: BGT, held_out: Sequence[Pair]) -> float:
    """Nats of a token, from posterior means."""
    model.eval()
    nats = tokens = 0.0
    with torch.no_grad():
        for batch in our_batches(held_out, 4_000):
            out = model(batch, READOUTS["mean"])
            nats += sum(part.nll()[1].sum().item() for part in out.predictions if part.role == "reconstruct")
            tokens += sum(len(side.flat_index) for side in batch.sides.values())
    return nats / tokens


def stsb_of(path: Path) -> StsSet:
    """Its pairs before 2016. Raises DataError for a file of other columns."""
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    if any(len(columns) != 4 for columns in lines):
        raise DataError(f"--stsb {path}: expected 4 columns, gold, two sentences and their origin")
    kept = [columns for columns in lines if not any(year in columns[3] for year in LATER)]
    gold, left, right, _ = zip(*kept, strict=True)
    return StsSet("stsb", "dev", np.array(gold, dtype=float), left, right)


def stsb(model: BGT, tokenizer: Tokenizer, sets: Sequence[StsSet]) -> float:
    """Spearman x 100."""
    task = Sts(latent="semantic", aggregate="concatenated")
    result = evaluate(task, Embedder(model, tokenizer, ("en", "fr"), "fp32"), sets, resamples=100)
    return result.value(("stsb", "dev", "Spearman"))


def speedups(ours: Sequence[Score], peer: Sequence[Score], quality: str, sign: int) -> list[float]:
    """The peer's time to each of its checkpoints over ours to the same; 0 where ours was never as good."""
    best = np.maximum.accumulate([sign * getattr(score, quality) for score in ours])
    times = np.log([score.seconds for score in ours])
    ratios = []
    for score in peer:
        level = sign * getattr(score, quality)
        reached = np.interp(level, best, times) if level <= best[-1] else np.inf
        ratios.append(float(score.seconds / np.exp(reached)))
    return ratios


if __name__ == "__main__":
    page(rows, __doc__, own_options)
