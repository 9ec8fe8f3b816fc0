"""The training loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import torch
from torch import Tensor, nn

from bgt_core.contracts import Batch, Objective
from bgt_core.data.batching import Batching, Update, ahead, validation
from bgt_core.data.store import Corpus
from bgt_core.device import release_memory
from bgt_core.training.aggressive import mi_increases, split, train_inference_network
from bgt_core.training.config import TrainConfig
from bgt_core.training.mining import mined
from bgt_core.training.schedule import learning_rate
from bgt_core.training.step import add, frozen, train_step
from bgt_core.training.validate import information_of, validate
from bgt_core.training.workers import SINGLE_PROCESS, Workers

REPORT_SECONDS = 10.0
INFORMED = 2_000  # held-out pairs whose information says how long to be aggressive


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
    return Batching(config.batch_tokens, config.micro_tokens, config.seed, config.scramble)


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
    workers: Workers = SINGLE_PROCESS,
    informations: Sequence[float] = (),
) -> int:
    """Train from step `start` to the end, or until `hooks.stopped`; returns the steps done.

    Everything random (batches, anchors, dropout, latent noise) follows from the seed, the step and the number of the
    micro-batch alone: a run that starts again from a saved step ends in the same weights, and any number of workers
    draws the same. One step = one update: the pairs of `batch_tokens` tokens in micro-batches, the loss divided by
    the number of those pairs, whoever computes them. Nothing in a step waits for a GPU; reports do, and the search for
    negatives. With mega-batches a run is saved, and stops, only between two of them: what comes then follows from the
    weights alone.

    With `inner_steps` training begins aggressively (see `aggressive`): a step is then updates of the encoders alone,
    and one of all else. `informations` are those that the run reported before `start`.
    """
    plan, steps = batching(config), total_steps(corpus, config)
    share = (0, 1) if config.mega_batch else (workers.rank, workers.count)  # who mines looks at all pairs

    def score(done: int) -> None:
        batches = validation(held_out, config.micro_tokens)
        scores = validate(model, batches, device, config.precision, config.seed, workers)
        hooks.report({"kind": "valid", "step": done, "steps": steps, **scores})

    if not steps:  # the model as it starts is a result too
        score(0)
        hooks.save(0)

    def make(step: int) -> Update:
        update = plan.update(corpus, step, *share)
        return update if device.type == "cpu" else update.pin()

    def measure(batches: Iterable[Batch]) -> dict[str, float]:
        return information_of(model, batches, device, config.precision, config.seed, workers)

    informations, (inference, generation) = list(informations), split(model)
    if config.inner_steps:
        measure(islice(validation(held_out, config.micro_tokens), 1))  # refuses a model that has none, before the work
    updates = ahead(make, range(start, steps))
    if config.mega_batch:
        updates = mined(updates, start, model, config, device, workers)
    advance = partial(train_step, model, optimizer, objective, config, device, workers)
    sums: dict[str, Tensor | int] = {}
    inner, since, unsaved = {"updates": 0, "tokens": 0}, time.perf_counter(), False
    for step, update in enumerate(updates, start):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps, config)
        aggressive = bool(config.inner_steps) and mi_increases(informations)
        if aggressive:
            first = steps + step * config.inner_steps  # fresh batches: of epochs past the run's own
            fresh = ahead(make, range(first, first + config.inner_steps))
            with frozen(generation):
                add(inner, train_inference_network(partial(advance, step), fresh, workers))
        with frozen(inference if aggressive else []):
            found, norm = advance(step, update)
        add(sums, found)

        done, elapsed = step + 1, time.perf_counter() - since
        due, stopped = workers.any(elapsed >= REPORT_SECONDS, hooks.stopped())
        last = done == steps or (stopped and update.ends)
        if due or last:
            sums["tokens"] += inner["tokens"]
            totals = workers.totals({name: torch.as_tensor(value) for name, value in sums.items()})
            rate, seen = totals.pop("tokens").item() / elapsed, totals.pop("pairs").item()
            means = {name: value.item() / seen for name, value in totals.items()}
            row = {"kind": "train", "step": done, "steps": steps, **means}
            row |= {"learning_rate": optimizer.param_groups[0]["lr"], "gradient_norm": float(norm)}
            row |= {"inner_steps": inner["updates"]} if config.inner_steps else {}
            hooks.report(row | {"tokens_per_second": rate})
            sums.clear()
            release_memory()
            inner, since = {"updates": 0, "tokens": 0}, time.perf_counter()
        if done % config.valid_every == 0 or done == steps:
            paused = time.perf_counter()
            score(done)
            since += time.perf_counter() - paused
        if aggressive and done % plan.updates(corpus) == 0:
            paused = time.perf_counter()
            told = measure(validation(held_out, config.micro_tokens, INFORMED))
            informations.append(sum(told.values()))
            hooks.report({"kind": "information", "step": done, "steps": steps, "information": informations[-1], **told})
            since += time.perf_counter() - paused
        unsaved |= done % config.save_every == 0
        if (unsaved and update.ends) or last:
            hooks.save(done)
            unsaved = False
        if last:
            return done
    return steps
