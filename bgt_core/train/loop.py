"""The training loop."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bgt_core.contracts import Objective
from bgt_core.data.batching import Batching, validation
from bgt_core.data.store import Corpus
from bgt_core.train.config import TrainConfig
from bgt_core.train.device import autocast, release_memory
from bgt_core.train.schedule import learning_rate
from bgt_core.train.validate import validate

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
    """Updates in the whole run."""
    return max(1, round(config.epochs * batching(config).updates(corpus)))


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
) -> int:
    """Train from step `start` to the end, or until `hooks.stopped`; returns the steps done.

    Everything random (batches, anchors, dropout, latent noise) follows from (seed, step) alone, so a run
    that starts again from a saved step ends in the same weights. One step = one update: the pairs of
    `batch_tokens` tokens in micro-batches, the loss divided by the number of those pairs.
    """
    plan, steps = batching(config), total_steps(corpus, config)
    sums: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=device))
    tokens, pairs_seen, since = 0, 0, time.perf_counter()
    for step in range(start, steps):
        torch.manual_seed(config.seed * 2**32 + step)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps, config)
        batches = plan.batches(corpus, step)
        pairs = sum(len(batch) for batch in batches)
        for batch in batches:
            with autocast(device, config.precision):
                loss = objective(model(batch.to(device)), step)
            (loss.total / pairs).backward()
            sums["loss"] += loss.total.detach()
            for name, value in loss.terms.items():
                sums[name] += value
            tokens += sum(int(side.mask.sum()) for side in batch.sides.values())
        norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        optimizer.zero_grad()

        pairs_seen += pairs
        done, elapsed = step + 1, time.perf_counter() - since
        last = done == steps or hooks.stopped()
        if elapsed >= REPORT_SECONDS or last:
            means = {name: float(value) / pairs_seen for name, value in sums.items()}
            row = {"kind": "train", "step": done, "steps": steps, **means}
            rate = optimizer.param_groups[0]["lr"]
            hooks.report(
                row | {"learning_rate": rate, "gradient_norm": float(norm), "tokens_per_second": tokens / elapsed}
            )
            sums.clear()
            release_memory()
            tokens, pairs_seen, since = 0, 0, time.perf_counter()
        if done % config.valid_every == 0 or done == steps:
            paused = time.perf_counter()
            scores = validate(model, validation(held_out, config.micro_tokens), device, config.precision, config.seed)
            hooks.report({"kind": "valid", "step": done, "steps": steps, **scores})
            since += time.perf_counter() - paused
        if done % config.save_every == 0 or last:
            hooks.save(done)
        if last:
            return done
    return steps
