"""The separation of properties: the sign of semantic minus language on each task, and the paper's.

The paper's claim is a pattern of signs, so it is reported cell by cell, with intervals, and not as one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.errors import UsageError
from bgt_core.tables import Estimate, Table, Value, p_text
from probes.measures.significance import correct
from probes.result import Difference, ProbeScore, is_baseline
from probes.results.published import Published, published
from probes.results.store import Cell


@dataclass(frozen=True, eq=False)
class Line:
    """One task in one language, of one encoder."""

    cell: Cell
    semantic: ProbeScore
    language: ProbeScore
    difference: Difference  # semantic minus language, points; the adjusted p is over all lines
    baseline: ProbeScore | None  # the best one
    paper: Published | None
    alpha: float

    @property
    def p(self) -> float:
        """Of the difference, adjusted over all lines."""
        adjusted = self.difference.adjusted_p
        return self.difference.p if adjusted is None else adjusted

    @property
    def holds(self) -> str:
        """The latent that holds more, or "neither" if they do not differ significantly."""
        if self.p >= self.alpha:
            return "neither"
        return SEMANTIC if self.difference.points > 0 else LANGUAGE

    @property
    def against_paper(self) -> str:
        """Compare the sign with the paper's: "as the paper", "not as the paper", "undecided", or "" without one."""
        if self.paper is None:
            return ""
        if self.holds == "neither":
            return "undecided"
        return "as the paper" if (self.paper.gap > 0) == (self.holds == SEMANTIC) else "not as the paper"


def separation(cells: Sequence[Cell], correction: str = "holm") -> list[Line]:
    """Make a line for each cell with both latents; UsageError if no cell has both."""
    gaps = [(cell, latent_gap(cell.result.difference)) for cell in cells]
    both = [(cell, gap) for cell, gap in gaps if gap]
    if not both:
        raise UsageError("No result has both latents: probe the semantic and the language latent of one of our models.")
    lines = []
    adjusted = correct([gap for _, gap in both], correction)
    for (cell, _), difference in zip(both, adjusted, strict=True):
        rest = [row for row in cell.result.rows if is_baseline(row.latent, cell.trail["latents"])]
        best = max(rest, key=lambda row: row.accuracy, default=None)
        task, lang, _ = cell.setting
        paper = published(_beside_english(cell), task, lang)
        rows = cell.row(SEMANTIC), cell.row(LANGUAGE)
        lines.append(Line(cell, *rows, difference, best, paper, 1 - cell.result.level))
    return lines


def latent_gap(difference: Difference | None) -> Difference | None:
    """Semantic minus language, whichever was measured first; None for other predictors."""
    names = (difference.first, difference.second) if difference else ()
    if difference and names == (LANGUAGE, SEMANTIC):
        low, high = -difference.ci_high, -difference.ci_low
        points = -difference.points
        return replace(difference, first=SEMANTIC, second=LANGUAGE, points=points, ci_low=low, ci_high=high)
    return difference if names == (SEMANTIC, LANGUAGE) else None


def _beside_english(cell: Cell) -> str:
    """The other language of an encoder of English and one more; "" for others, which the paper does not have."""
    langs = set(cell.trail["langs"]) - {"en"}
    return langs.pop() if len(langs) == 1 else ""


def as_table(lines: Sequence[Line]) -> Table:
    """One row per line, for LaTeX and display."""
    rows: list[list[Value]] = []
    for line in lines:
        gap, both = line.difference, (line.semantic, line.language)
        rows.append(
            [
                line.difference.task,
                line.difference.lang,
                *(Estimate(100 * row.accuracy, 100 * row.ci_low, 100 * row.ci_high) for row in both),
                Estimate(gap.points, gap.ci_low, gap.ci_high),
                p_text(line.p),
                line.holds,
                None if line.paper is None else line.paper.semantic,
                None if line.paper is None else line.paper.language,
                line.against_paper or "no such cell",
                "" if line.baseline is None else line.baseline.latent,
                None if line.baseline is None else 100 * line.baseline.accuracy,
            ]
        )
    correction = lines[0].difference.correction
    columns = [
        "task",
        "lang",
        "semantic",
        "language",
        "difference",
        f"p ({correction})",
        "holds more",
        "paper semantic",
    ]
    return Table([*columns, "paper language", "sign", "best baseline", "its accuracy"], rows)


def counts(lines: Sequence[Line]) -> str:
    """The signs, counted, in a sentence."""
    kinds = [line.against_paper for line in lines if line.paper]
    if not kinds:
        return "The paper has none of these cells."
    return (
        f"Cells that the paper has too: {kinds.count('as the paper')} with its sign, "
        f"{kinds.count('not as the paper')} with the other, {kinds.count('undecided')} where the latents can't be "
        "told apart."
    )
