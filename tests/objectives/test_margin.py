"""The margin loss, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from bgt_core.contracts import Outputs
from bgt_core.errors import BgtError
from bgt_core.objectives.margin import Margin
from bgt_core.posterior import Point


def angles(*degrees: float) -> Point:
    """Unit vectors at these angles, each of another length."""
    turned = torch.tensor([math.radians(degree) for degree in degrees], dtype=torch.float64)
    lengths = torch.arange(1, len(degrees) + 1, dtype=torch.float64)[:, None]
    return Point((lengths * torch.stack([turned.cos(), turned.sin()], dim=1)).requires_grad_())


def cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def outputs(left: Point, right: Point) -> Outputs:
    return Outputs({"en": left, "fr": right}, {}, [])


@pytest.mark.parametrize(("mined_only", "columns", "mega_batch", "message"), [
    (False, ["en", "fr"], 0, ""), (True, ["en", "fr"], 2, ""), (False, ["en", "fr"], 2, ""),
    (True, ["en", "fr"], 0, r"mega_batch 0: margin\.mined_only needs negatives.*mined_only=false"),
    (False, ["en"], 2, "columns en: similarity needs two columns"),
])  # fmt: skip
def test_what_it_needs_is_checked_before_training(
    mined_only: bool, columns: list[str], mega_batch: int, message: str
) -> None:
    part = Margin(mined_only=mined_only)
    if not message:
        part.check(columns, mega_batch)
        return
    with pytest.raises(BgtError, match=message):
        part.check(columns, mega_batch)


def test_three_pairs_by_hand() -> None:
    """en at 0, 60, 180; fr at 10, 80, 150: 10, 20 and 30 degrees apart, each nearest to its own."""
    loss = Margin(margin=0.6)(outputs(angles(0, 60, 180), angles(10, 80, 150)), step=0)
    hinges = [
        0,  # en 0: 0.6 - cos(10) + cos(80) is below 0
        0.6 - cos(20) + cos(50),  # en 60: the nearest wrong answer is fr 10
        0,  # en 180: 0.6 - cos(30) + cos(100) is below 0
        0.6 - cos(10) + cos(50),  # fr 10: en 60
        0,  # fr 80: 0.6 - cos(20) + cos(80) is below 0
        0,  # fr 150: 0.6 - cos(30) + cos(90) is below 0
    ]
    assert max(0.6 - cos(10) + cos(80), 0.6 - cos(30) + cos(100), 0.6 - cos(20) + cos(80), 0.6 - cos(30)) < 0
    assert loss.terms["margin"].item() == pytest.approx(sum(hinges), rel=1e-6)
    assert loss.total.item() == pytest.approx(sum(hinges), rel=1e-6)
    assert not loss.terms["margin"].requires_grad


def test_negatives_that_came_with_the_batch_by_hand() -> None:
    """They count and the batch's own others do not, though these are harder."""
    out = Outputs({"en": angles(0, 10), "fr": angles(30, 40)}, {}, [], {"en": angles(90, 15), "fr": angles(60, 130)})
    hinges = [
        0.4 - cos(30) + cos(60),  # en 0 against fr 60
        0,  # en 10 against fr 130: 0.4 - cos(30) + cos(120) is below 0
        0.4 - cos(30) + cos(60),  # fr 30 against en 90
        0.4 - cos(30) + cos(25),  # fr 40 against en 15
    ]
    assert Margin(0.4)(out, step=0).total.item() == pytest.approx(sum(hinges), rel=1e-6)


def test_negatives_of_both_sides_by_hand() -> None:
    """en at 0, 30, 180; fr at 10, 80, 150: some find the harder one across, some on their own side."""
    loss = Margin(margin=0.6, both_sides=True)(outputs(angles(0, 30, 180), angles(10, 80, 150)), step=0)
    hinges = [
        0.6 - cos(10) + cos(30),  # en 0: en 30 is nearer than fr 80
        0.6 - cos(50) + cos(20),  # en 30: fr 10 is nearer than en 0
        0,  # en 180: fr 80 is 100 away and en 30 150: 0.6 - cos(30) + cos(100) is below 0
        0.6 - cos(10) + cos(20),  # fr 10: en 30 is nearer than fr 80
        0.6 - cos(50) + cos(70),  # fr 80: fr 10 and fr 150 are 70 away, en 0 80 and en 180 100
        0.6 - cos(30) + cos(70),  # fr 150: fr 80 is nearer than en 30
    ]
    assert 0.6 - cos(30) + cos(100) < 0
    assert loss.total.item() == pytest.approx(sum(hinges), rel=1e-6)


def test_neither_of_its_own_row_is_ever_a_negative() -> None:
    """Both are nearer than any other, and every other cosine is below 0: nothing is left to pay."""
    out = outputs(angles(0, 120, 240), angles(0, 120, 240))
    assert cos(120) < 0
    for both_sides in (False, True):
        assert Margin(0.4, both_sides=both_sides)(out, 0).total.item() == 0
    two = Margin(1.9, both_sides=True)(outputs(angles(0, 180), angles(0, 180)), 0)
    assert two.total.item() == 0  # 1.9 - 1 + cos(180); a cosine of 0 for the own row would cost 0.9


def test_each_two_of_three_languages_are_compared() -> None:
    sides = {"en": angles(0, 60, 180), "fr": angles(10, 80, 150), "de": angles(5, 20, 100)}
    pairs = [("en", "fr"), ("en", "de"), ("fr", "de")]
    parts = [Margin(0.6)(outputs(sides[left], sides[right]), 0).total.item() for left, right in pairs]
    assert Margin(0.6)(Outputs(sides, {}, []), 0).total.item() == pytest.approx(sum(parts), rel=1e-6)


@pytest.mark.parametrize("margin", [-0.1, 0.0, 2.0, 3.0])
def test_a_margin_that_cosines_never_or_always_keep_is_refused(margin: float) -> None:
    with pytest.raises(BgtError, match=f"margin {margin}"):
        Margin(margin)


@pytest.mark.parametrize("both_sides", [False, True])
def test_a_pair_alone_costs_nothing_and_has_a_finite_gradient(both_sides: bool) -> None:
    left, right = angles(0), angles(90)
    loss = Margin(both_sides=both_sides)(outputs(left, right), 0)
    loss.total.backward()
    assert loss.total.item() == 0
    assert torch.isfinite(left.mean.grad).all()


def test_its_gradient_brings_translations_together() -> None:
    left, right = angles(0, 40, 80), angles(30, 75, 100)
    before = Margin()(outputs(left, right), 0)
    before.total.backward()
    with torch.no_grad():
        moved = [Point(side.mean - 0.01 * side.mean.grad) for side in (left, right)]
    assert Margin()(outputs(*moved), 0).total < before.total


def test_with_mined_negatives_only_a_batch_without_any_costs_nothing() -> None:
    """Two hinges by hand: each side against the negative of the other."""
    out = outputs(angles(0, 60), angles(20, 90))
    waiting = Margin(margin=0.6, mined_only=True)
    assert waiting(out, step=0).total == 0 and waiting(out, step=0).terms == {}
    assert Margin(margin=0.6)(out, step=0).total > 0
    given = Outputs(out.semantic, {}, [], negatives={"en": angles(35, 200), "fr": angles(10, 200)})
    hinges = [0.6 - cos(20) + cos(10), 0.6 - cos(20) + cos(15)]  # en 0 to fr 10, fr 20 to en 35; the others are far
    expected = sum(hinges) + max(0, 0.6 - cos(30) + cos(140)) + max(0, 0.6 - cos(30) + cos(110))
    assert waiting(given, step=0).total.item() == pytest.approx(expected)


def test_the_margin_is_the_papers_unless_given() -> None:
    assert Margin().margin == 0.4


def test_of_one_column_nothing_is_compared() -> None:
    loss = Margin()(Outputs({"en": angles(0, 60)}, {}, []), step=0)
    assert loss.total.item() == 0 and not loss.terms
