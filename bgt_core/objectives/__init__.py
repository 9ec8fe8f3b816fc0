"""Objectives: `(Outputs, step) -> Loss`. A recipe has a `Sum` of named parts, which use outputs only.

A new one is a subclass of `Part` in one file, listed in `PARTS` of `recipes.recipe`; a recipe names it. Its own data
are columns of text, labels or vectors of the rows: it reads them from the batch of the outputs, `Outputs.batch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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


class Sum(Mapping[str, Part]):
    """Named parts, each multiplied by its weight; their terms are reported separately.

    The names are those of settings: the margin of the part "margin" is `objective.margin.margin`.

    Args:
        parts: Each part under its name. A part of weight 0 is not computed.

    Raises:
        UsageError: All weights are 0, a weight is negative, or two parts have the same role.
    """

    def __init__(self, parts: Mapping[str, Part]):
        self.all = dict(parts)
        self.counting = {name: part for name, part in parts.items() if part.weight}
        if not self.counting:
            raise UsageError("objective: there is nothing to minimise; give a part a weight above 0")
        payers: dict[str, str] = {}
        for name, part in self.counting.items():
            if part.weight < 0:
                raise UsageError(f"objective.{name}.weight {part.weight} must not be negative")
            for role in part.roles:
                if role in payers:
                    raise UsageError(
                        f"objective: {payers[role]} and {name} share the role '{role}'; set one weight to 0"
                    )
                payers[role] = name

    def __getitem__(self, name: str) -> Part:
        return self.all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def __call__(self, out: Outputs, step: int) -> Loss:
        losses = [(part.weight, part(out, step)) for part in self.counting.values()]
        terms = {name: value for _, loss in losses for name, value in loss.terms.items()}
        return Loss(reduce(add, [weight * loss.total for weight, loss in losses]), terms)
