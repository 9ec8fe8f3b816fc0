"""The interface of a named part of an objective."""

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

    `roles` are the roles of the predictions whose negative log-likelihood it includes; no two parts share a role.
    """

    weight: float
    roles: tuple[Role, ...] = ()
    both_sides: bool = False  # whether the search for hard negatives includes the own side

    def check(self, columns: Sequence[str], mega_batch: int) -> None:
        """Raise UsageError if this part can't learn from these columns, or with mega-batches of that size."""

    def __call__(self, out: Outputs, step: int) -> Loss:
        """The loss of a batch before the weight, summed over its rows, and its terms."""
        raise NotImplementedError


def total(out: Outputs, costs: Iterable[Tensor]) -> Tensor:
    """The sum of scalars; 0, on the device of the latents, if there are no costs."""
    device = next((posterior.mean.device for posterior in out.semantic.values()), None)
    return reduce(add, costs, torch.zeros((), device=device))


def check_compared(columns: Sequence[str]) -> None:
    """Raise UsageError if there are not two columns of text to compare."""
    if len(columns) < 2:
        raise UsageError(
            f"columns {', '.join(columns)}: similarity needs two columns; add one, or set the weight of its loss to 0"
        )
