"""What a named part of an objective declares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add

import torch
from torch import Tensor

from bgt_core.contracts import Loss, Outputs, Role
from bgt_core.errors import UsageError


class Part:
    """A part of a `Sum`. Subclasses are frozen dataclasses with a field `weight`; their fields are settings.

    `roles` are those of the predictions whose negative log-likelihood it pays for; no two parts pay for one role.
    """

    weight: float
    roles: tuple[Role, ...] = ()
    both_sides: bool = False  # whether the search for hard negatives looks at sentences of the own side too

    def check(self, columns: Sequence[str], mega_batch: int) -> None:
        """Raise UsageError if text with these columns, or mega-batches of that size, can't teach this part anything."""

    def __call__(self, out: Outputs, step: int) -> Loss:
        """The loss of a batch before the weight, summed over its rows, and its terms."""
        raise NotImplementedError


def total(out: Outputs, costs: Iterable[Tensor]) -> Tensor:
    """The sum of scalars; 0, where the latents are, if there are no costs."""
    device = next((posterior.mean.device for posterior in out.semantic.values()), None)
    return reduce(add, costs, torch.zeros((), device=device))


def check_compared(columns: Sequence[str]) -> None:
    """Raise UsageError if there are not two columns of text to compare."""
    if len(columns) < 2:
        raise UsageError(
            f"columns {', '.join(columns)}: similarity is learnt from two; give another, or its loss a weight of 0"
        )
