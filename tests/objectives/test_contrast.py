"""The in-batch softmax, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from bgt_core.contracts import Outputs
from bgt_core.errors import BgtError
from bgt_core.objectives.contrast import Contrast
from bgt_core.posterior import Point


def sides(*rows: list[list[float]]) -> Outputs:
    vectors = (torch.tensor(row, dtype=torch.float64, requires_grad=True) for row in rows)
    return Outputs(dict(zip(("en", "fr", "de"), map(Point, vectors), strict=False)), {}, [])


def test_two_pairs_by_hand() -> None:
    """Directions: en along x and y; fr along x and the diagonal. Cosines [[1, h], [0, h]], h the root of a half."""
    h, t = math.sqrt(0.5), 0.5
    out = sides([[3.0, 0.0], [0.0, 0.1]], [[1.0, 0.0], [2.0, 2.0]])
    nats = [
        math.log(1 + math.exp((h - 1) / t)),  # en 1 among both French
        math.log(1 + math.exp((0 - h) / t)),
        math.log(1 + math.exp((0 - 1) / t)),  # fr 1 among both English
        math.log(2),  # the diagonal is as near to either
    ]
    loss = Contrast(temperature=t)(out, step=0)
    assert loss.terms["contrast"].item() == pytest.approx(sum(nats), rel=1e-6)
    assert loss.total.item() == pytest.approx(sum(nats), rel=1e-6)
    assert not loss.terms["contrast"].requires_grad


def test_a_pair_alone_costs_nothing() -> None:
    loss = Contrast()(sides([[1.0, 2.0]], [[-1.0, 3.0]]), 0)
    loss.total.backward()
    assert loss.total.item() == 0


def test_vectors_that_say_nothing_cost_the_log_of_the_batch() -> None:
    same = [[1.0, 1.0]] * 5
    assert Contrast()(sides(same, same), 0).total.item() == pytest.approx(2 * 5 * math.log(5), rel=1e-6)
    assert Contrast()(sides(same, same, same), 0).total.item() == pytest.approx(3 * 2 * 5 * math.log(5), rel=1e-6)


@pytest.mark.parametrize("temperature", [0.0, -0.1])
def test_a_temperature_without_meaning_is_refused(temperature: float) -> None:
    with pytest.raises(BgtError, match=f"temperature {temperature} must be above 0"):
        Contrast(temperature)


def test_one_column_has_nothing_to_compare() -> None:
    Contrast().check(["en", "fr"], 0)
    with pytest.raises(BgtError, match="columns en: similarity needs two columns"):
        Contrast().check(["en"], 0)
    loss = Contrast()(sides([[1.0, 2.0], [0.5, 0.0]]), 0)
    assert loss.total.item() == 0 and loss.terms == {}
