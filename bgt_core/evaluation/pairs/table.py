"""What comes of scoring labelled pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bgt_core.evaluation.comparison import PairwiseDifference
from bgt_core.evaluation.pairs.measures import RATES
from bgt_core.tables import Estimate, Table, Value, p_text

LEGEND = "* is the best of its column; = are the best and what can't be told apart from it"


@dataclass(frozen=True, eq=False)
class RocCurve:
    """The true positive rate at each of 101 false positive rates (`measures.RATES`), and the ends of its interval."""

    true: np.ndarray  # (101,)
    low: np.ndarray  # (101,)
    high: np.ndarray  # (101,)


@dataclass(frozen=True, eq=False)
class PairsTable:
    """Measures x 100 of S systems on the same pairs. Where a system has no threshold, it has no accuracy and no F1."""

    systems: Sequence[str]
    thresholds: Sequence[float | None]
    measures: Mapping[str, Sequence[Estimate | None]]  # one for each system
    curves: Mapping[str, RocCurve]  # by system
    scores: Mapping[str, np.ndarray]  # by system: of every pair, (N,)
    differences: Sequence[PairwiseDifference[str]]
    pairs: int
    duplicates: int  # pairs labelled 1
    level: float  # of the intervals
    resamples: int
    seed: int
    about: str  # how the numbers came about

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it: schema bgt-pairs/1; not the score of every pair."""
        settings = {"level": self.level, "resamples": self.resamples, "seed": self.seed}
        systems = [
            {"system": name, "threshold": self.thresholds[row]}
            | {measure: entry(cells[row]) for measure, cells in self.measures.items()}
            | {"roc": self._curve(name)}
            for row, name in enumerate(self.systems)
        ]
        differences = [
            {"measure": gap.key, "first": gap.first, "second": gap.second}
            | (entry(gap.difference) or {})
            | {"p": gap.p, "p_holm": gap.p_holm}
            for gap in self.differences
        ]
        head = {"schema": "bgt-pairs/1", "about": self.about, **settings}
        return {**head, "pairs": self.pairs, "duplicates": self.duplicates, "systems": systems} | {
            "differences": differences
        }

    def _curve(self, system: str) -> dict[str, list[float]]:
        curve = self.curves[system]
        return {
            "false_positive_rate": RATES.tolist(),
            "true_positive_rate": curve.true.tolist(),
            "ci_low": curve.low.tolist(),
            "ci_high": curve.high.tolist(),
        }

    def table(self) -> Table:
        """A row per system, a column per measure."""
        rows: list[list[Value]] = [
            [name, *(cells[row] for cells in self.measures.values()), threshold_text(self.thresholds[row])]
            for row, name in enumerate(self.systems)
        ]
        return Table(["system", *self.measures, "threshold"], rows)

    def roc_table(self) -> Table:
        """A row per system and false positive rate: the curves with their bands, as fractions."""
        rows: list[list[Value]] = [
            [name, float(rate), float(true), float(low), float(high)]
            for name, curve in self.curves.items()
            for rate, true, low, high in zip(RATES, curve.true, curve.low, curve.high, strict=True)
        ]
        return Table(["system", "false positive rate", "true positive rate", "ci_low", "ci_high"], rows, digits=4)

    def difference_table(self) -> Table:
        """A row per difference."""
        rows: list[list[Value]] = [
            [gap.key, f"{gap.first} - {gap.second}", gap.difference, p_text(gap.p), p_text(gap.p_holm)]
            for gap in self.differences
        ]
        return Table(["measure", "difference", "points", "p", "p (Holm)"], rows)


def threshold_text(threshold: float | None) -> str | None:
    """Four digits after the point."""
    return None if threshold is None else f"{threshold:.4f}"


def entry(estimate: Estimate | None) -> dict[str, float | str] | None:
    if estimate is None:
        return None
    value, low, high, mark = estimate
    return {"value": value, "ci_low": low, "ci_high": high, "mark": mark}
