"""STS systems side by side: an interval on every score, and which differences are more than chance."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from zlib import crc32

import numpy as np

from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.bootstrap import Estimate, holm, interval, resample, two_sided_p
from bgt_core.evaluation.sts.score import AGGREGATES, Row, StsScores, StsSet, rows

CHUNK = 100  # resamples made at once, to bound memory


@dataclass(frozen=True)
class Gap:
    """How much better `first` is than `second` in one row of the table."""

    row: Row
    first: str
    second: str
    difference: Estimate
    p: float  # two-sided
    p_holm: float  # corrected for all gaps of the table


@dataclass(frozen=True)
class StsTable:
    """Scores x 100 of S systems: for each row, an estimate a system, marked where there are several."""

    systems: Sequence[str]
    scores: Mapping[Row, Sequence[Estimate]]
    gaps: Sequence[Gap]
    level: float
    resamples: int
    seed: int


def compare(
    systems: Mapping[str, StsScores],
    aggregates: Collection[str] = ("mean",),
    *,
    resamples: int = 2_000,
    level: float = 0.95,
    seed: int = 0,
) -> StsTable:
    """A paired bootstrap of all systems: pairs are drawn again within each data set, the same ones for each system.

    Intervals are percentiles, and tell nothing of how sets or models would vary. A set's resamples depend on its name
    and the seed, not on what is scored beside it. In a row, systems that Holm's correction over all the table can't
    tell from its best one are "tied", it too; alone it is "best". Raises BgtError where systems' pairs differ.
    """
    check_settings(aggregates, resamples, level)
    sets = next(iter(systems.values())).sets
    systems = aligned(systems, sets)
    values, draws = drawn(list(systems.values()), aggregates, resamples=resamples, seed=seed)
    scores = {row: estimates(value, draws[row], level) for row, value in values.items()}

    names = list(systems)
    found = []
    for one, two in combinations(range(len(names)), 2):
        for row, value in values.items():
            gain, gains = value[one] - value[two], draws[row][:, one] - draws[row][:, two]
            difference = Estimate(float(gain), *map(float, interval(gains, level)))
            found.append((row, names[one], names[two], difference, float(two_sided_p(gain, gains))))
    adjusted = holm(np.array([gap[-1] for gap in found]))
    gaps = [Gap(*gap, float(p)) for gap, p in zip(found, adjusted, strict=True)]
    return StsTable(names, marked(names, scores, gaps, level), gaps, level, resamples, seed)


def drawn(
    systems: Sequence[StsScores], aggregates: Collection[str] = ("mean",), *, resamples: int, seed: int
) -> tuple[dict[Row, np.ndarray], dict[Row, np.ndarray]]:
    """Scores x 100 of S systems on the same sets, (S,), and in each of B resamples of each set's pairs, (B, S)."""
    sets = systems[0].sets
    cosines = [np.stack(parts) for parts in zip(*(system.cosines for system in systems), strict=True)]
    values = rows(sets, cosines, [np.ones((1, len(data.gold))) for data in sets], aggregates)
    streams = [np.random.default_rng([seed, crc32(str(data).encode())]) for data in sets]
    parts = []
    for start in range(0, resamples, CHUNK):
        count = min(CHUNK, resamples - start)
        weights = [resample(stream, len(data.gold), count) for stream, data in zip(streams, sets, strict=True)]
        parts.append(rows(sets, cosines, weights, aggregates))
    return {row: value[0] for row, value in values.items()}, {
        row: np.concatenate([part[row] for part in parts]) for row in values
    }


def check_settings(aggregates: Collection[str], resamples: int, level: float) -> None:
    """BgtError where `compare` can't do with them; a command asks before it embeds."""
    if unknown := [name for name in aggregates if name not in AGGREGATES]:
        raise UsageError(f"There is no aggregation '{unknown[0]}'; choose from {', '.join(AGGREGATES)}.")
    if resamples < 100 or not 0.5 <= level < 1:
        raise UsageError(f"{resamples} resamples, level {level}: expected 100 or more, and a level from 0.5 to 1.")


def estimates(values: np.ndarray, draws: np.ndarray, level: float) -> list[Estimate]:
    """Of S systems: (S,), (B, S)."""
    return [Estimate(*map(float, parts)) for parts in zip(values, *interval(draws, level), strict=True)]


def marked(
    systems: Sequence[str], scores: Mapping[Row, Sequence[Estimate]], gaps: Sequence[Gap], level: float
) -> dict[Row, list[Estimate]]:
    """The same scores, "best" and "tied" written on them; with one system there is nothing to mark."""
    same = {(gap.row, frozenset((gap.first, gap.second))) for gap in gaps if gap.p_holm >= 1 - level}
    found = {}
    for row, cells in scores.items():
        best = max(zip(cells, systems, strict=True))[1]
        tied = {name for name in systems if (row, frozenset((best, name))) in same}
        marks = dict.fromkeys(tied | {best}, "tied") if tied else {best: "best"} if len(systems) > 1 else {}
        found[row] = [cell._replace(mark=marks.get(name, "")) for cell, name in zip(cells, systems, strict=True)]
    return found


def aligned(systems: Mapping[str, StsScores], sets: Sequence[StsSet]) -> dict[str, StsScores]:
    """Each system's scores on these sets alone; BgtError where it has none of a set, or of other pairs."""
    found = {}
    for name, scores in systems.items():
        places = {str(data): place for place, data in enumerate(scores.sets)}
        for data in sets:
            if str(data) not in places:
                raise DataError(f"'{name}' has no scores of {data}; it has {', '.join(places)}.")
            if not same_pairs(data, scores.sets[places[str(data)]]):
                raise DataError(f"{data}: '{name}' was scored on other pairs, or in another order.")
        found[name] = StsScores(sets, [scores.cosines[places[str(data)]] for data in sets])
    return found


def same_pairs(one: StsSet, two: StsSet) -> bool:
    """Whether row by row the sentences and the gold scores are the same."""
    same_text = list(one.left) == list(two.left) and list(one.right) == list(two.right)
    return same_text and np.array_equal(one.gold, two.gold)
