"""What is learnt beside the bound: each loss reads the predictions of its own role."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from bgt_core.contracts import Outputs
from bgt_core.errors import UsageError
from bgt_core.objectives.auxiliary import ParaphraseReconstruction, WordPosition
from bgt_core.objectives.combine import Sum
from bgt_core.objectives.elbo import Elbo


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
def test_each_loss_is_weighted_and_one_of_weight_0_left_out(paraphrase: float, position: float, total: float) -> None:
    parts = {"paraphrase": ParaphraseReconstruction(paraphrase), "position": WordPosition(position)}
    loss = Sum(elbo=Elbo(), **parts)(OUT, step=0)
    assert loss.total.item() == pytest.approx(total)
    terms = {name: value.item() for name, value in loss.terms.items()}
    weighted = {"paraphrase/a": 30.0, "paraphrase/b": 70.0} if paraphrase else {}
    weighted |= {"position/a": 300.0} if position else {}
    assert terms == {"reconstruct/a": 3.0, **weighted}


def test_the_mean_of_predictions_is_that_of_those_that_count() -> None:
    assert Elbo(average_predictions=True)(OUT, step=0).total.item() == pytest.approx(3)


def test_nothing_to_predict_costs_nothing_and_a_weight_is_not_negative() -> None:
    loss = WordPosition()(Outputs({}, {}, []), 0)
    assert loss.total == 0 and loss.terms == {}
    with pytest.raises(UsageError, match=r"paraphrase\.weight -1 must not be negative"):
        ParaphraseReconstruction(-1)
