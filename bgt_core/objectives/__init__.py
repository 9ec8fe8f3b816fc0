"""Training objectives: functions `(Outputs, step) -> Loss`. The objective of a recipe is a weighted `Sum` of losses.

To add a loss, write a subclass of `Part`, list it in `PARTS` of `recipes.recipe`, and name it in a recipe. If a loss
needs other data about the sentence pairs, such as labels or vectors, it reads them from `Outputs.batch`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add

import torch
from torch import Tensor

from bgt_core.contracts import Loss, Outputs, Role
from bgt_core.errors import UsageError


class Part:
    """A loss in a weighted `Sum` of losses. Subclasses are frozen dataclasses; fields, such as `weight`, are settings.

    The loss includes the negative log-likelihood of all predictions whose role, such as "reconstruct", is in `roles`.
    Two losses of a sum can't have the same role.
    """

    weight: float
    roles: tuple[Role, ...] = ()
    both_sides: bool = False  # if true, hard negatives may also be in the sentence's own language

    def check(self, columns: Sequence[str], mega_batch: int) -> None:
        """Raise UsageError if these columns or the setting `train.mega_batch` do not allow this loss."""

    def __call__(self, out: Outputs, step: int) -> Loss:
        """Return the loss of a batch, summed over its rows, before `weight` is applied."""
        raise NotImplementedError


def total(out: Outputs, costs: Iterable[Tensor]) -> Tensor:
    """Add up scalars. If `costs` is empty, return 0 on the device of the latents."""
    device = next((posterior.mean.device for posterior in out.semantic.values()), None)
    return reduce(add, costs, torch.zeros((), device=device))


def check_compared(columns: Sequence[str]) -> None:
    """Raise UsageError if the data have fewer than two text columns, so that there are no pairs to compare."""
    if len(columns) < 2:
        raise UsageError(
            f"columns {', '.join(columns)}: this loss compares two columns; add a column, or set the loss's weight to 0"
        )


class Sum(Mapping[str, Part]):
    """A weighted sum of losses with names. The metrics of each loss are reported separately, without its weight.

    The names are used in settings: `objective.margin.margin` is the field `margin` of the loss named "margin".

    Args:
        parts: Maps names to losses. A loss of weight 0 is not computed.

    Raises:
        UsageError: All weights are 0, a weight is negative, or two losses include predictions with the same role.
    """

    def __init__(self, parts: Mapping[str, Part]):
        self.all = dict(parts)
        self.counting = {name: part for name, part in parts.items() if part.weight}
        if not self.counting:
            raise UsageError("objective: there is nothing to minimise; set the weight of at least one loss above 0")
        owners: dict[str, str] = {}
        for name, part in self.counting.items():
            if part.weight < 0:
                raise UsageError(f"objective.{name}.weight {part.weight} must not be negative")
            for role in part.roles:
                if role in owners:
                    raise UsageError(
                        f"objective: {owners[role]} and {name} share the role '{role}'; set the weight of one loss to 0"
                    )
                owners[role] = name

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
