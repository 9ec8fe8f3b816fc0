"""One update: the gradient of its pairs, and a step of the optimiser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from bgt_core.contracts import Objective
from bgt_core.data.batching import Update
from bgt_core.device import autocast, seed_everything
from bgt_core.training.config import TrainConfig
from bgt_core.training.workers import Workers


def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    objective: Objective,
    config: TrainConfig,
    device: torch.device,
    workers: Workers,
    step: int,
    update: Update,
    *inner: int,
) -> tuple[dict[str, Tensor | int], Tensor]:
    """Moves the parameters that want a gradient; what is drawn follows from (seed, step, micro-batch, inner).

    Gives the sums of this worker's pairs, "loss", the loss's terms, "tokens" and "pairs", and the gradient's norm
    before it was clipped, nats a pair.
    """
    sums: dict[str, Tensor | int] = {"tokens": 0, "pairs": 0}
    for number, batch in update.batches.items():
        seed_everything(config.seed, step, number, *inner)
        with autocast(device, config.precision):
            loss = objective(model(batch.to(device)), step)
        (loss.total / update.pairs).backward()
        counts = {"tokens": sum(len(side.places) for side in batch.sides.values()), "pairs": len(batch)}
        add(sums, {"loss": loss.total.detach(), **loss.terms, **counts})
    workers.sum_gradients(model)
    norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip)
    optimizer.step()
    optimizer.zero_grad()
    return sums, norm


def add(sums: dict[str, Tensor | int], found: dict[str, Tensor | int]) -> None:
    """Each number onto its sum."""
    for name, value in found.items():
        sums[name] = sums.get(name, 0) + value


@contextmanager
def frozen(parameters: Iterable[nn.Parameter]) -> Iterator[None]:
    """No gradient is made for these parameters, and nothing moves them."""
    parameters = list(parameters)
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)
