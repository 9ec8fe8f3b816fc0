"""Systems side by side in one or more scores: intervals, which differences are more than chance, and marks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Generic, TypeVar

import numpy as np

from bgt_core.errors import UsageError
from bgt_core.evaluation.bootstrap import holm, interval, two_sided_p
from bgt_core.tables import Estimate

Key = TypeVar("Key")  # what names a score


@dataclass(frozen=True)
class PairwiseDifference(Generic[Key]):
    """How much more `first` has than `second` in one score of the table."""

    key: Key
    first: str
    second: str
    difference: Estimate
    p: float  # two-sided
    p_holm: float  # corrected for all differences of the table


def check_bootstrap(resamples: int, level: float) -> None:
    """UsageError for fewer than 100 resamples or a level that is not from 0.5 to 1."""
    if resamples < 100 or not 0.5 <= level < 1:
        raise UsageError(f"`resamples` {resamples}, `level` {level}: expected 100 or more, and a level from 0.5 to 1.")


def estimates(values: np.ndarray, draws: np.ndarray, level: float) -> list[Estimate]:
    """Of S systems: (S,), (B, S)."""
    parts = zip(values, *interval(draws, level), strict=True)
    return [Estimate(float(value), float(low), float(high)) for value, low, high in parts]


def differences(
    names: Sequence[str], values: Mapping[Key, np.ndarray], draws: Mapping[Key, np.ndarray], level: float
) -> list[PairwiseDifference[Key]]:
    """All differences between two of S systems in each score, (S,), from its paired resamples, (B, S)."""
    compared: list[tuple[Key, str, str, Estimate, float]] = []
    for first, second in combinations(range(len(names)), 2):
        for key, value in values.items():
            gain, gains = value[first] - value[second], draws[key][:, first] - draws[key][:, second]
            low, high = interval(gains, level)
            difference = Estimate(float(gain), float(low), float(high))
            compared.append((key, names[first], names[second], difference, float(two_sided_p(gain, gains))))
    adjusted = holm(np.array([p for *_, p in compared]))
    return [PairwiseDifference(*row, float(p)) for row, p in zip(compared, adjusted, strict=True)]


def marked(
    systems: Sequence[str],
    table: Mapping[Key, Sequence[Estimate]],
    compared: Sequence[PairwiseDifference[Key]],
    level: float,
    lower_is_better: Collection[Key] = (),
) -> dict[Key, list[Estimate]]:
    """The same scores, "best" and "tied" written on them; with one system there is nothing to mark."""
    same = {(gap.key, frozenset((gap.first, gap.second))) for gap in compared if gap.p_holm >= 1 - level}
    with_marks = {}
    for key, cells in table.items():
        sign = -1 if key in lower_is_better else 1
        best = max((sign * cell.value, name) for cell, name in zip(cells, systems, strict=True))[1]
        tied = {name for name in systems if (key, frozenset((best, name))) in same}
        marks = dict.fromkeys(tied | {best}, "tied") if tied else {best: "best"} if len(systems) > 1 else {}
        with_marks[key] = [cell._replace(mark=marks.get(name, "")) for cell, name in zip(cells, systems, strict=True)]
    return with_marks
