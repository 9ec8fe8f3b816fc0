"""The forms of training that are compared, the library's own and the straight one, on updates of the same pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from benchmarks import straight
from benchmarks.workload import ANNEAL, CLIP, SMOOTHING, Form, Pair, batch_of, our_batches, released_batches, tokens_of
from bgt_core.contracts import Batch
from bgt_core.device import autocast
from bgt_core.models.bgt import BGT
from bgt_core.recipes import Recipe
from bgt_core.training.wiring import make_optimizer

CPU = torch.device("cpu")
Loss = Callable[[Batch, float, float], Tensor]  # the loss of the straight form, compiled or not


def our_form(
    model: BGT, recipe: Recipe, pairs: Sequence[Pair], tokens: int, precision: str, device: torch.device = CPU
) -> Form:
    """The library's own, the shortest first like the others."""
    batches, optimizer = our_batches(pairs, tokens)[::-1], make_optimizer(model, recipe.train)
    optimizer.param_groups[0]["lr"] = 0.0

    def finish() -> None:  # as `training.loop` does
        nn.utils.clip_grad_norm_(model.parameters(), recipe.train.clip)
        optimizer.step()
        optimizer.zero_grad()

    counts = [sum(len(side.flat_index) for side in batch.sides.values()) for batch in batches]

    def step(number: int) -> None:
        fast(model, recipe, precision, batches[number].to(device), len(pairs))

    return Form(step, counts, finish, list(model.parameters()), optimizer.state.clear)


def fast(model: BGT, recipe: Recipe, precision: str, batch: Batch, pairs: int) -> Tensor:
    """Forward and backward of the library; the loss."""
    with autocast(batch.sides[batch.anchor].ids.device, precision):
        loss = recipe.objective(model(batch), 1).total / pairs
    loss.backward()
    return loss.detach()


def straight_form(
    reference: straight.StraightBGT,
    pairs: Sequence[Pair],
    tokens: int,
    precision: str = "fp32",
    device: torch.device = CPU,
    loss: Loss | None = None,
) -> Form:
    """The same, the straight way; `loss` in place of the reference's own call is that call, compiled."""
    cut, loss_of = released_batches(pairs, tokens), reference if loss is None else loss
    batches = [batch_of(rows, turn) for turn, rows in enumerate(cut)]
    parameters = reference.parameters_used()
    optimizer = straight.optimizer(parameters)
    optimizer.param_groups[0]["lr"] = 0.0

    def finish() -> None:
        nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        optimizer.zero_grad()

    def step(number: int) -> None:
        slow(loss_of, batches[number].to(device), len(pairs), precision)

    return Form(step, list(map(tokens_of, cut)), finish, parameters, optimizer.state.clear)


def slow(loss_of: Loss, batch: Batch, pairs: int, precision: str = "fp32") -> Tensor:
    """Forward and backward of the straight form; the loss."""
    with autocast(batch.sides[batch.anchor].ids.device, precision):
        loss = loss_of(batch, ANNEAL, SMOOTHING) / pairs
    loss.backward()
    return loss.detach()
