"""The objective of a recipe: a weighted sum of named parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import add

from bgt_core.contracts import Loss, Outputs
from bgt_core.errors import UsageError
from bgt_core.objectives.part import Part


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
