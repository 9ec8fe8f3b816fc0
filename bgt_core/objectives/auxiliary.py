"""What is learnt beside a bound: paraphrases (Deudon 2018; Chen et al. 2019), and the places of words (the latter)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar

import torch

from bgt_core.contracts import Loss, Outputs, Role
from bgt_core.errors import UsageError


@dataclass(frozen=True)
class _OfRole:
    """NLL of the predictions of one role, nats, added up and weighted."""

    weight: float = 1.0
    role: ClassVar[Role]

    def __post_init__(self) -> None:
        if self.weight < 0:
            raise UsageError(f"{self.role}.weight {self.weight} must not be negative")

    def __call__(self, out: Outputs, step: int) -> Loss:
        own = {prediction.name: prediction.nll() for prediction in out.predictions if prediction.role == self.role}
        if not own:
            return Loss(torch.zeros(()), {})
        total = reduce(add, [loss for loss, _ in own.values()])
        return Loss(self.weight * total, {name: nats.sum() for name, (_, nats) in own.items()})


@dataclass(frozen=True)
class ParaphraseReconstruction(_OfRole):
    """Each sentence from the meaning of its paraphrase, and where there is one from its own syntax; nats."""

    role: ClassVar[Role] = "paraphrase"


@dataclass(frozen=True)
class WordPosition(_OfRole):
    """The place of each word from the word and the sentence's syntactic latent; nats."""

    role: ClassVar[Role] = "position"
