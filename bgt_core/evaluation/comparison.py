"""Compare systems: intervals of their scores, tests of their differences, and marks of the best.

Statistic -> `compare` -> Result
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from bgt_core.errors import UsageError, check_least
from bgt_core.evaluation.bootstrap import ItemSample, bootstrap, holm, interval, share, two_sided_p, wilson
from bgt_core.evaluation.result import Cell, Curve, Difference, Key, Result
from bgt_core.tables import Estimate


@dataclass(frozen=True, eq=False, kw_only=True)
class Statistic:
    """A statistic of S systems; every score is named by a NamedTuple, whose last field is the number of items.

    `scores` takes weights, (B, N) for each of `samples`, and returns scores, (B, S), or curves, (B, S, K); NaN for a
    system without a score. `hits` are further scores, x 100, the shares of N items that are right, (S, N) from 0 to 1:
    their intervals are Wilson's, and their differences are tested by an exact sign test.
    """

    systems: Sequence[str]
    scores: Callable[[Sequence[np.ndarray]], Mapping[Key, np.ndarray]] = lambda weights: {}
    samples: Sequence[ItemSample] = ()
    hits: Mapping[Key, np.ndarray] = field(default_factory=dict)
    numbers: Mapping[Key, Sequence[float | None]] = field(default_factory=dict)  # for each system, without an interval
    about: str = ""  # the measure and the data, in words
    warnings: Sequence[str] = ()  # reasons why scores may differ from published ones
    counts: Mapping[str, int] = field(default_factory=dict)  # numbers of items, by kind
    compared: Sequence[str] | None = None  # systems whose differences are tested; None for all
    lower_is_better: Collection[Key] = ()
    families: Mapping[Key, str] = field(default_factory=dict)  # groups of scores for Holm's correction
    write_items: Callable[[Path], None] | None = None  # writes the score of every item to a Parquet file


def compare(statistic: Statistic, *, resamples: int = 2_000, level: float = 0.95, seed: int = 0) -> Result:
    """Resample the items, the same for every system, and test which systems differ.

    Args:
        statistic: The statistic to compare.
        resamples: Number of bootstrap resamples, at least 100.
        level: Level of the intervals, from 0.5 to below 1.
        seed: Seed of the resamples.

    Returns:
        Scores with intervals, and the paired differences of all systems that are compared, with p-values corrected by
        Holm's method. In each score the best system is marked "best" if it differs from all others; otherwise it and
        those that it does not differ from are "tied".

    Raises:
        UsageError: Too few resamples, or a level out of range.
    """
    check_bootstrap(resamples, level)
    values, draws = bootstrapped(statistic, resamples, seed)
    curves = {key: Curve(value, *interval(draws[key], level)) for key, value in values.items() if value.ndim > 1}
    values = {key: value for key, value in values.items() if key not in curves}
    scores: dict[Key, list[Cell]] = {
        key: estimates(value, draws[key], level, statistic.hits.get(key)) for key, value in values.items()
    }
    gaps = differences(statistic, values, draws, level)
    scores = marked(statistic, scores, gaps, level) | {key: list(row) for key, row in statistic.numbers.items()}
    ways = ["Wilson's"] * bool(statistic.hits) + [f"from {resamples} resamples"] * bool(statistic.samples)
    return Result(
        systems=list(statistic.systems),
        scores=scores,
        differences=gaps,
        curves=curves,
        counts=statistic.counts,
        about=f"{statistic.about}; {100 * level:g}% intervals {' and '.join(ways)}"
        + ("; differences: paired, p with Holm's correction" if gaps else ""),
        warnings=statistic.warnings,
        level=level,
        resamples=resamples,
        seed=seed,
        write_items=statistic.write_items,
    )


def bootstrapped(
    statistic: Statistic, resamples: int, seed: int
) -> tuple[dict[Key, np.ndarray], dict[Key, np.ndarray]]:
    """All scores, (S,) each, and in each of B resamples, (B, S); hits of equally many items share resamples."""
    sizes = list(dict.fromkeys(rows.shape[1] for rows in statistic.hits.values()))
    own = len(statistic.samples)

    def scores(weights: Sequence[np.ndarray]) -> dict[Key, np.ndarray]:
        of_hits = {key: weights[own + sizes.index(rows.shape[1])] for key, rows in statistic.hits.items()}
        shares = {key: share(of_hits[key], rows, np.ones_like(rows)) for key, rows in statistic.hits.items()}
        return {**statistic.scores(weights[:own]), **shares}

    samples = [*statistic.samples, *(ItemSample(size, (1,)) for size in sizes)]
    return bootstrap(scores, samples, resamples=resamples, seed=seed)


def check_bootstrap(resamples: int, level: float) -> None:
    """Raise UsageError for fewer than 100 resamples, or a level that is not from 0.5 to below 1."""
    check_least(100, resamples=resamples)
    if not 0.5 <= level < 1:
        raise UsageError(f"{level} must be at least 0.5 and below 1", parameter="level")


def estimates(values: np.ndarray, draws: np.ndarray, level: float, hits: np.ndarray | None = None) -> list[Cell]:
    """Scores of S systems with intervals, from (S,), (B, S) and, for shares, (S, N); None for a missing score."""
    if hits is None:
        low, high = interval(draws, level)
    else:
        values = 100 * hits.mean(1)
        ends = [wilson(float(row.sum()), len(row), level) if np.isfinite(row).all() else (0.0, 0.0) for row in hits]
        low, high = 100 * np.array(ends).T
    parts = zip(values, low, high, strict=True)
    return [None if np.isnan(value) else Estimate(float(value), float(low), float(high)) for value, low, high in parts]


def differences(
    statistic: Statistic, values: Mapping[Key, np.ndarray], draws: Mapping[Key, np.ndarray], level: float
) -> list[Difference]:
    """All differences between two systems in each score, (S,), from its paired resamples, (B, S)."""
    names = list(statistic.systems)
    compared = [names.index(name) for name in (names if statistic.compared is None else statistic.compared)]
    gaps = []
    for first, second in combinations(compared, 2):
        for key, value in values.items():
            gain, gains = value[first] - value[second], draws[key][:, first] - draws[key][:, second]
            if np.isnan(gain):
                continue
            rows = statistic.hits.get(key)
            p = float(two_sided_p(gain, gains)) if rows is None else sign_test(rows[first], rows[second])
            low, high = interval(gains, level)
            estimate = Estimate(float(gain), float(low), float(high))
            gaps.append(Difference(key, names[first], names[second], estimate, p, p))
    families = [statistic.families.get(gap.key, "") for gap in gaps]
    for family in dict.fromkeys(families):
        members = [row for row, of in enumerate(families) if of == family]
        for row, p in zip(members, holm(np.array([gaps[row].p for row in members])), strict=True):
            gaps[row] = gaps[row]._replace(p_holm=float(p))
    return gaps


def sign_test(first: np.ndarray, second: np.ndarray) -> float:
    """p that two systems are equally often ahead of each other, (N,) and (N,): exact, from the items in which they
    differ.

    One system may be right in all items and another in none. All resamples of such a difference are equal, so it has no
    standard error to test with.
    """
    gain = first - second
    differing = int((gain != 0).sum())
    return float(binomtest(int((gain > 0).sum()), differing).pvalue) if differing else 1.0


def marked(
    statistic: Statistic, scores: Mapping[Key, Sequence[Cell]], gaps: Sequence[Difference], level: float
) -> dict[Key, list[Cell]]:
    """Mark the scores of the compared systems with "best" and "tied"; no marks for a single system."""
    same = {(gap.key, frozenset((gap.first, gap.second))) for gap in gaps if gap.p_holm >= 1 - level}
    compared = statistic.systems if statistic.compared is None else statistic.compared
    with_marks = {}
    for key, cells in scores.items():
        sign = -1 if key in statistic.lower_is_better else 1
        of_systems = dict(zip(statistic.systems, cells, strict=True))
        values = {name: sign * cell.value for name in compared if isinstance(cell := of_systems[name], Estimate)}
        best = max(((value, name) for name, value in values.items()), default=(0.0, ""))[1]
        tied = {name for name in values if (key, frozenset((best, name))) in same}
        marks = dict.fromkeys(tied | {best}, "tied") if tied else {best: "best"} if len(values) > 1 else {}
        with_marks[key] = [
            cell._replace(mark=marks.get(name, "")) if isinstance(cell, Estimate) else cell
            for name, cell in of_systems.items()
        ]
    return with_marks
