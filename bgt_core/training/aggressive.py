"""Aggressive training of the encoders, against posterior collapse (He et al. 2019).

Early on, q(z | sentence) lags behind the true posterior, as decoders change with every update; decoders then learn to
ignore the latent, and the KL removes its information. So, while it helps, only the encoders are trained until
the loss stops falling, and only then do the decoders take one step.

To continue, a run only needs the mutual information at the ends of its epochs, which is in its metrics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import nn

from bgt_core.contracts import Model
from bgt_core.data.batching import StepBatch
from bgt_core.training.loop import Trainer, frozen, train_step
from bgt_core.training.meter import Sums

GROUP = 10  # updates whose mean loss is compared with that of the group before


def mi_increases(informations: Sequence[float]) -> bool:
    """Whether I(x; z), nats, was higher at the end of each epoch than at the end of the one before."""
    return all(later > earlier for earlier, later in pairwise([0.0, *informations]))


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
        """Whether the encoders are still updated first."""
        return mi_increases(self.informations)

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
