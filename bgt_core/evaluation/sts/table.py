"""What comes of comparing STS systems: scores with intervals, and the differences between systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bgt_core.evaluation.comparison import PairwiseDifference
from bgt_core.evaluation.sts.score import ScoreKey, StsScores
from bgt_core.tables import Estimate, Table, Value, p_text


@dataclass(frozen=True, eq=False)
class StsTable:
    """Scores x 100 of S systems: for each key one estimate per system, marked where there are several."""

    systems: Sequence[str]
    scores: Mapping[ScoreKey, Sequence[Estimate]]
    differences: Sequence[PairwiseDifference[ScoreKey]]
    level: float  # of the intervals
    resamples: int
    seed: int
    about: str = ""  # how the numbers came about, in one line
    warnings: Sequence[str] = ()  # why they may differ from published ones, and what Hard STS was cut from
    pairs: Mapping[str, StsScores] = field(default_factory=dict)  # each system's similarity of every pair

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict per score and system: ScoreKey's four fields, system, value, ci_low, ci_high, mark."""
        return [
            {**key._asdict(), "system": system, **_entry(estimate)}
            for key, estimates in self.scores.items()
            for system, estimate in zip(self.systems, estimates, strict=True)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Everything but the pairs, as JSON can hold it: schema bgt-sts/2."""
        scores = [
            {**key._asdict(), "systems": dict(zip(self.systems, map(_entry, estimates), strict=True))}
            for key, estimates in self.scores.items()
        ]
        differences = [
            {**gap.key._asdict(), "first": gap.first, "second": gap.second, **_entry(gap.difference)}
            | {"p": gap.p, "p_holm": gap.p_holm}
            for gap in self.differences
        ]
        settings = {"level": self.level, "resamples": self.resamples, "seed": self.seed}
        head = {"schema": "bgt-sts/2", "about": self.about, **settings, "odd": list(self.warnings)}
        return {**head, "scores": scores, "differences": differences}

    def table(self) -> Table:
        """A row per score, a column per system."""
        rows: list[list[Value]] = [
            [f"{key.year} {key.dataset}", key.score, key.pairs, *cells] for key, cells in self.scores.items()
        ]
        return Table(["STS", "score", "pairs", *self.systems], rows)

    def difference_table(self) -> Table:
        """A row per difference."""
        rows: list[list[Value]] = []
        for gap in self.differences:
            compared = f"{gap.first} - {gap.second}"
            ps = (p_text(gap.p), p_text(gap.p_holm))
            rows.append([f"{gap.key.year} {gap.key.dataset}", gap.key.score, compared, gap.difference, *ps])
        return Table(["STS", "score", "difference", "points", "p", "p (Holm)"], rows)


def _entry(estimate: Estimate) -> dict[str, float | str]:
    value, low, high, mark = estimate
    return {"value": value, "ci_low": low, "ci_high": high, "mark": mark}
