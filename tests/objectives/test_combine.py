"""Sums of objectives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from bgt_core.contracts import Loss, Outputs
from bgt_core.errors import UsageError
from bgt_core.objectives.combine import Sum, parts_of
from bgt_core.objectives.margin import Margin


class Weighted:
    """An objective that says what it weighs."""

    def __init__(self, objective: Callable[[Outputs, int], Loss], weight: float):
        self.objective, self.weight = objective, weight

    def __call__(self, out: Outputs, step: int) -> Loss:
        return self.objective(out, step)


def test_nothing_to_minimise_is_refused() -> None:
    for nothing in ({}, {"margin": Margin(weight=0.0)}):
        with pytest.raises(UsageError, match="nothing is left to minimise"):
            Sum(**nothing)


def test_totals_add_up_and_terms_stand_side_by_side() -> None:
    asked = []

    def part(name: str, value: float) -> Any:
        def objective(out: Outputs, step: int) -> Loss:
            asked.append(step)
            return Loss(torch.tensor(value), {name: torch.tensor(value)})

        return objective

    parts = Sum(elbo=part("a", 1.0), margin=Weighted(part("b", 20.0), 1.0), contrast=Weighted(part("c", 300.0), 0.0))
    loss = parts(Outputs({}, {}, []), step=9)
    assert loss.total.item() == 21  # what weighs nothing is left out
    assert {name: value.item() for name, value in loss.terms.items()} == {"a": 1, "b": 20}
    assert asked == [9, 9]


def test_the_parts_of_a_sum_are_those_that_count_and_of_anything_else_itself() -> None:
    margin = Margin()
    assert parts_of(Sum(margin=margin)) == [margin] and parts_of(margin) == [margin]
