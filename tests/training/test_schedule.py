"""The learning rate of each step."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bgt_core.training.config import TrainConfig
from bgt_core.training.schedule import learning_rate

STEPS = 1000


def rates(cooldown: float) -> list[float]:
    config = TrainConfig(learning_rate=0.5, warmup_steps=100, cooldown=cooldown)
    return [learning_rate(step, STEPS, config) for step in range(STEPS)]


def test_it_rises_in_a_line_and_falls_with_the_root() -> None:
    by_step = rates(cooldown=0.0)
    assert by_step[0] == pytest.approx(0.005)
    assert by_step[49] == pytest.approx(0.25)
    assert by_step[99] == max(by_step) == pytest.approx(0.5)
    assert by_step[399] == pytest.approx(0.25)  # 4 times the warm-up: half the peak
    assert by_step[899] == pytest.approx(0.5 / 3)


def test_without_a_warmup_the_rate_is_fixed() -> None:
    config = TrainConfig(learning_rate=1e-3, warmup_steps=0)
    assert {learning_rate(step, STEPS, config) for step in range(STEPS)} == {1e-3}
    cooled = TrainConfig(learning_rate=1e-3, warmup_steps=0, cooldown=0.25)
    assert learning_rate(750, STEPS, cooled) == 1e-3
    assert learning_rate(875, STEPS, cooled) == pytest.approx(5e-4)


def test_a_cooldown_ends_near_zero_and_changes_nothing_before() -> None:
    plain, cooled = rates(cooldown=0.0), rates(cooldown=0.25)
    assert cooled[:751] == plain[:751]
    assert cooled[875] == pytest.approx(plain[875] / 2)
    assert cooled[-1] == pytest.approx(plain[-1] / 250)
    assert all(later < earlier for earlier, later in pairwise(cooled[750:]))
