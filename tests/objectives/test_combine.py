"""Sums of named parts: weights, roles, terms."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from bgt_core.contracts import Outputs
from bgt_core.errors import UsageError
from bgt_core.objectives.combine import Sum
from bgt_core.objectives.cross_entropy import CrossEntropy
from bgt_core.objectives.elbo import Elbo
from bgt_core.objectives.margin import Margin
from bgt_core.objectives.part import Part


@dataclass
class Says:
    """A prediction of two sentences with known nats."""

    role: str
    column: str
    nats: list[float]

    @property
    def name(self) -> str:
        return f"{self.role}/{self.column}"

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        nats = torch.tensor(self.nats)
        return nats.sum(), nats


OUT = Outputs(
    {},
    {},
    [  # type: ignore[arg-type]
        Says("reconstruct", "a", [1.0, 2.0]),
        Says("paraphrase", "a", [10.0, 20.0]),
        Says("paraphrase", "b", [30.0, 40.0]),
        Says("position", "a", [100.0, 200.0]),
    ],
)


@pytest.mark.parametrize(
    ("paraphrase", "position", "total"),
    [(1.0, 1.0, 3 + 100 + 300), (0.5, 1.0, 3 + 50 + 300), (1.0, 0.1, 3 + 100 + 30), (0.0, 0.0, 3)],
)
def test_each_part_pays_for_its_roles_and_one_of_weight_0_is_left_out(
    paraphrase: float, position: float, total: float
) -> None:
    parts: dict[str, Part] = {
        "elbo": Elbo(average_predictions=True),  # the mean of the predictions that it pays for: one
        "paraphrase": CrossEntropy(("paraphrase",), paraphrase),
        "position": CrossEntropy(("position",), position),
    }
    loss = Sum(parts)(OUT, step=0)
    assert loss.total.item() == pytest.approx(total)
    terms = {name: value.sum().item() for name, value in loss.terms.items()}
    weighted = {"paraphrase/a": 30.0, "paraphrase/b": 70.0} if paraphrase else {}
    weighted |= {"position/a": 300.0} if position else {}
    assert terms == {"reconstruct/a": 3.0, **weighted}
    assert dict(Sum(parts)) == parts  # those of weight 0 too


def test_nothing_to_predict_costs_nothing() -> None:
    loss = CrossEntropy(("position",))(Outputs({}, {}, []), 0)
    assert loss.total == 0 and loss.terms == {}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "nothing to minimise"),
        ({"margin": Margin(weight=0.0)}, "nothing to minimise"),
        ({"margin": Margin(weight=-1.0)}, r"objective\.margin\.weight -1.0 must not be negative"),
        (
            {"elbo": Elbo(), "again": CrossEntropy(("translate",))},
            "elbo and again share the role 'translate'",
        ),
    ],
)
def test_impossible_sums_are_refused(parts: dict[str, Part], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Sum(parts)
