"""Objectives: `(Outputs, step) -> Loss`. The objective of a recipe is a `Sum` of named parts.

To add one, subclass `Part` in one file, list it in `PARTS` of `recipes.recipe`, and name it in a recipe. If it needs
other data of the rows, such as more columns, labels or vectors, it reads them from `Outputs.batch`.
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
    both_sides: bool = False  # whether hard negatives are also searched in the sentence's own column

    def check(self, columns: Sequence[str], mega_batch: int) -> None:
        """Raise UsageError if this part can't learn from these columns, or with mega-batches of that size."""

    def __call__(self, out: Outputs, step: int) -> Loss:
        """Return the loss of a batch, summed over its rows and not yet weighted, with its terms."""
        raise NotImplementedError


def total(out: Outputs, costs: Iterable[Tensor]) -> Tensor:
    """Add up scalars; without any, return 0 on the device of the latents."""
    device = next((posterior.mean.device for posterior in out.semantic.values()), None)
    return reduce(add, costs, torch.zeros((), device=device))


def check_compared(columns: Sequence[str]) -> None:
    """Raise UsageError if there are fewer than two text columns to compare."""
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
