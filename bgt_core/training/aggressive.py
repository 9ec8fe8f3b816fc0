"""Aggressive training of the encoders, against posterior collapse (He et al. 2019).

Early on, q(z | sentence) trails the true posterior of decoders that change with every update; decoders then learn to
do without the latent, and the KL takes what is left of it. So, while it helps, the encoders alone are trained until
the loss stops falling, and only then do the decoders take one step.

What a run needs to go on is the information measured at the ends of its epochs, which its metrics keep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from bgt_core.data.batching import Update
from bgt_core.training.step import add
from bgt_core.training.workers import Workers

GROUP = 10  # updates whose mean loss is compared with that of the group before


def mi_increases(informations: Sequence[float]) -> bool:
    """Whether the latents have told more of the sentence, nats, at the end of each epoch than of the one before."""
    return all(later > earlier for earlier, later in pairwise([0.0, *informations]))


def split(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Parameters of the encoders alone, and all others: a table that both use goes with the decoders."""
    named = list(model.named_parameters(remove_duplicate=False))
    others = {id(parameter): parameter for name, parameter in named if not name.startswith("encoders.")}
    return [parameter for parameter in model.parameters() if id(parameter) not in others], list(others.values())


def train_inference_network(
    train_step: Callable[[Update, int], tuple[dict[str, Tensor | int], Tensor]],
    updates: Iterable[Update],
    workers: Workers,
) -> dict[str, Tensor | int]:
    """`train_step` each update, numbered from 1, until a group's loss a token is no less than that of the group before.

    Gives how many "updates" and "tokens" that took.
    """
    before, spent = math.inf, {"updates": 0, "tokens": 0}
    group: dict[str, Tensor | int] = {}
    for number, update in enumerate(updates, 1):
        found, _ = train_step(update, number)
        add(group, {"loss": 0, **found})
        add(spent, {"updates": 1, "tokens": found["tokens"]})
        if number % GROUP == 0:
            total = workers.totals({name: torch.as_tensor(group[name]) for name in ("loss", "tokens")})
            loss = float(total["loss"] / total["tokens"])
            if loss >= before:
                break
            before, group = loss, {}
    return spent
