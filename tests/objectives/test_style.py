"""The contrast of styles, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from bgt_core.contracts import Outputs, Styled
from bgt_core.errors import BgtError
from bgt_core.objectives.style import StyleContrast


def styled(rows: list[list[float]], numbers: list[int]) -> Styled:
    return Styled(torch.tensor(rows, dtype=torch.float64, requires_grad=True), torch.tensor(numbers))


def outputs(**styles: Styled) -> Outputs:
    return Outputs({}, {}, styles=styles)


def test_two_of_a_style_and_one_of_another_by_hand() -> None:
    """Directions: x, the diagonal and y. The first two share a style; their cosine is h, the root of a half."""
    h, t = math.sqrt(0.5), 0.5
    near, far = math.exp(h / t), math.exp(0 / t)
    nats = -math.log(near / (near + far)) - math.log(near / (near + near))  # by the first, and by the second
    loss = StyleContrast(temperature=t)(outputs(en=styled([[3.0, 0.0], [2.0, 2.0], [0.0, 0.1]], [4, 4, 0])), step=0)
    assert loss.total.item() == pytest.approx(nats, rel=1e-6)
    assert loss.terms["style"].item() == pytest.approx(nats, rel=1e-6) and not loss.terms["style"].requires_grad


def test_each_of_several_is_found_by_the_mean_over_the_others() -> None:
    """Four alike, three of one style: each of the three finds either other by one chance in three."""
    loss = StyleContrast()(outputs(en=styled([[1.0, 2.0]] * 4, [1, 1, 1, 0])), 0)
    assert loss.total.item() == pytest.approx(3 * math.log(3), rel=1e-6)


def test_languages_are_not_compared() -> None:
    one, other = styled([[1.0, 0.0]] * 2, [1, 1]), styled([[1.0, 0.0]] * 3, [1, 1, 1])
    loss = StyleContrast()(outputs(en=one, fr=other), 0)
    assert loss.total.item() == pytest.approx(3 * math.log(2), rel=1e-6)


def test_its_gradient_draws_a_style_together_and_away_from_others() -> None:
    given = styled([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]], [1, 1, 0])  # the third is nearer to the first than the second
    StyleContrast()(outputs(en=given), 0).total.backward()
    moved = given.mean.detach() - 0.01 * given.mean.grad  # type: ignore[operator]
    before, after = (torch.nn.functional.normalize(rows, dim=1) for rows in (given.mean.detach(), moved))
    assert after[0] @ after[1] > before[0] @ before[1]
    assert after[0] @ after[2] < before[0] @ before[2]


@pytest.mark.parametrize("numbers", [[0, 1], [0]])
def test_styles_that_occur_once_cost_nothing(numbers: list[int]) -> None:
    given = styled([[1.0, 0.0], [0.5, 0.5]][: len(numbers)], numbers)
    loss = StyleContrast()(outputs(en=given), 0)
    loss.total.backward()
    assert loss.total.item() == 0 and given.mean.grad is not None and given.mean.grad.isfinite().all()


def test_a_model_without_styles_costs_nothing() -> None:
    loss = StyleContrast()(outputs(), 0)
    assert loss.total.item() == 0 and loss.terms == {}


def test_a_temperature_without_meaning_is_refused() -> None:
    with pytest.raises(BgtError, match=r"style\.temperature 0 must be above 0"):
        StyleContrast(temperature=0)
