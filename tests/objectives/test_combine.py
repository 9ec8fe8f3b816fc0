"""Sums of objectives."""

from __future__ import annotations

import torch

from bgt_core.contracts import Loss, Outputs
from bgt_core.objectives.combine import Sum


def test_totals_add_up_and_terms_stand_side_by_side() -> None:
    asked = []

    def part(name: str, value: float) -> object:
        def objective(out: Outputs, step: int) -> Loss:
            asked.append(step)
            return Loss(torch.tensor(value), {name: torch.tensor(value)})

        return objective

    loss = Sum((part("a", 1.0), part("b", 20.0)))(Outputs({}, {}, []), step=9)  # type: ignore[arg-type]
    assert loss.total.item() == 21
    assert {name: value.item() for name, value in loss.terms.items()} == {"a": 1, "b": 20}
    assert asked == [9, 9]
