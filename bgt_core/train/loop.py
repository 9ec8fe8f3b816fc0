"""The training loop."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from bgt_core.contracts import Batch, Objective
from bgt_core.data.batching import Batching, Update, ahead, validation
from bgt_core.data.store import Corpus
from bgt_core.precision import autocast
from bgt_core.train.config import TrainConfig
from bgt_core.train.device import release_memory, seed_everything
from bgt_core.train.schedule import learning_rate
from bgt_core.train.validate import validate
from bgt_core.train.workers import ALONE, Workers

REPORT_SECONDS = 10.0


@dataclass(frozen=True)
class Hooks:
    """What the loop calls while it runs."""

    report: Callable[[dict[str, object]], None]  # a row of metrics: "train" or "valid", with its step
    save: Callable[[int], None]  # the model and optimiser after that many steps
    stopped: Callable[[], bool]  # asked after each step: save and leave?


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """AdamW as in the paper: betas (0.9, 0.98), eps 1e-8, decay decoupled (p -= rate * decay * p)."""
    return torch.optim.AdamW(
        model.parameters(),
        lr=config.learning_rate,
        betas=(0.9, 0.98),
        eps=1e-8,
        weight_decay=config.weight_decay,
        fused=True,
    )


def total_steps(corpus: Corpus, config: TrainConfig) -> int:
    """Updates in the whole run; none of no epochs."""
    return max(1, round(config.epochs * batching(config).updates(corpus))) if config.epochs else 0


def batching(config: TrainConfig) -> Batching:
    return Batching(config.batch_tokens, config.micro_tokens, config.seed)


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    objective: Objective,
    corpus: Corpus,
    held_out: Corpus,
    config: TrainConfig,
    device: torch.device,
    hooks: Hooks,
    start: int = 0,
    workers: Workers = ALONE,
) -> int:
    """Train from step `start` to the end, or until `hooks.stopped`; returns the steps done.

    Everything random (batches, anchors, dropout, latent noise) follows from the seed, the step and the number of the
    micro-batch alone: a run that starts again from a saved step ends in the same weights, and any number of workers
    draws the same. One step = one update: the pairs of `batch_tokens` tokens in micro-batches, the loss divided by
    the number of those pairs, whoever computes them. Nothing in a step waits for a GPU; reports do.
    """
    plan, steps = batching(config), total_steps(corpus, config)

    def score(done: int) -> None:
        batches = validation(held_out, config.micro_tokens)
        scores = validate(model, batches, device, config.precision, config.seed, workers)
        hooks.report({"kind": "valid", "step": done, "steps": steps, **scores})

    if not steps:  # the model as it starts is a result too
        score(0)
        hooks.save(0)

    def make(step: int) -> Update:
        update = plan.update(corpus, step, workers.rank, workers.count)
        return update if device.type == "cpu" else replace(update, batches=pinned(update.batches))

    sums: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=device))
    tokens, pairs, since = 0, 0, time.perf_counter()
    for step, update in enumerate(ahead(make, range(start, steps)), start):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps, config)
        for number, batch in update.batches.items():
            seed_everything(config.seed, step, number)
            with autocast(device, config.precision):
                loss = objective(model(batch.to(device)), step)
            (loss.total / update.pairs).backward()
            sums["loss"] += loss.total.detach()
            for name, value in loss.terms.items():
                sums[name] += value
            tokens += sum(len(side.places) for side in batch.sides.values())
            pairs += len(batch)
        workers.sum_gradients(model)
        norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        optimizer.zero_grad()

        done, elapsed = step + 1, time.perf_counter() - since
        due, stopped = workers.any(elapsed >= REPORT_SECONDS, hooks.stopped())
        last = done == steps or stopped
        if due or last:
            counts = {"tokens": torch.tensor(tokens), "pairs": torch.tensor(pairs)}
            found = {name: float(value) for name, value in workers.totals(sums | counts).items()}
            rate, seen = found.pop("tokens") / elapsed, found.pop("pairs")
            means = {name: value / seen for name, value in found.items()}
            row = {"kind": "train", "step": done, "steps": steps, **means}
            row |= {"learning_rate": optimizer.param_groups[0]["lr"], "gradient_norm": float(norm)}
            hooks.report(row | {"tokens_per_second": rate})
            sums.clear()
            release_memory()
            tokens, pairs, since = 0, 0, time.perf_counter()
        if done % config.valid_every == 0 or done == steps:
            paused = time.perf_counter()
            score(done)
            since += time.perf_counter() - paused
        if done % config.save_every == 0 or last:
            hooks.save(done)
        if last:
            return done
    return steps


def pinned(batches: Mapping[int, Batch]) -> dict[int, Batch]:
    """The same batches where a GPU can fetch them while it computes."""
    return {number: batch.pin() for number, batch in batches.items()}
