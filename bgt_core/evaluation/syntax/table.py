"""What comes of comparing systems by the syntax of what they find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bgt_core.evaluation.comparison import PairwiseDifference
from bgt_core.tables import Estimate, Table, Value, p_text

LEGEND = "* is the best of its column but for the upper bound; = are the best and what can't be told apart from it"


@dataclass(frozen=True, eq=False)
class SyntaxTable:
    """Shares x 100 of S rows: random neighbours, systems, and the upper bound; one estimate for each, by measure."""

    systems: Sequence[str]
    scores: Mapping[str, Sequence[Estimate]]
    differences: Sequence[PairwiseDifference[str]]  # of all rows but the upper bound
    queries: int
    candidates: int
    left_out: Mapping[str, int]  # sentences, by the reason
    level: float  # of the intervals
    resamples: int
    seed: int
    about: str  # how the numbers came about

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it: schema bgt-syntax/1."""
        settings = {"level": self.level, "resamples": self.resamples, "seed": self.seed}
        sizes = {"queries": self.queries, "candidates": self.candidates, "left_out": dict(self.left_out)}
        scores = [
            {"score": measure, "systems": dict(zip(self.systems, map(entry, row), strict=True))}
            for measure, row in self.scores.items()
        ]
        differences = [
            {"score": gap.key, "first": gap.first, "second": gap.second, **entry(gap.difference)}
            | {"p": gap.p, "p_holm": gap.p_holm}
            for gap in self.differences
        ]
        head = {"schema": "bgt-syntax/1", "about": self.about, **settings, **sizes}
        return {**head, "scores": scores, "differences": differences}

    def table(self) -> Table:
        """A row per system, a column per measure."""
        rows: list[list[Value]] = [list(row) for row in zip(self.systems, *self.scores.values(), strict=True)]
        return Table(["nearest by", *self.scores], rows)

    def difference_table(self) -> Table:
        """A row per difference."""
        rows: list[list[Value]] = [
            [gap.key, f"{gap.first} - {gap.second}", gap.difference, p_text(gap.p), p_text(gap.p_holm)]
            for gap in self.differences
        ]
        return Table(["score", "difference", "points", "p", "p (Holm)"], rows)


def entry(estimate: Estimate) -> dict[str, float | str]:
    value, low, high, mark = estimate
    return {"value": value, "ci_low": low, "ci_high": high, "mark": mark}
