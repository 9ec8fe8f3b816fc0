"""Cells as tables: all numbers of every row, rows for display, and one row per task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple

from bgt_core.tables import Estimate, Table, Value
from probes.measures.significance import correct
from probes.result import MAJORITY, Difference, ProbeScore, is_baseline
from probes.results.compare import cell_gap
from probes.results.store import Cell

Setting = tuple[str, str, str]  # task, language, probe
TRAIL = ("data", "fingerprint", "items_sha256", "version", "measured")


def long_table(cells: Sequence[Cell]) -> Table:
    """One row per predictor, with all its numbers."""
    records = [
        {
            "model": cell.model,
            **asdict(row),
            "seeds": cell.result.seeds,
            "seed": cell.result.seed,
            "level": cell.result.level,
        }
        | {name: cell.trail[name] for name in TRAIL}
        for cell in cells
        for row in cell.result.rows
    ]
    return Table(list(records[0]), [list(record.values()) for record in records])


def short_table(cells: Sequence[Cell]) -> Table:
    """The same rows for display: accuracies in percent, and columns only for what was measured."""
    several = len({cell.model for cell in cells}) > 1
    probes = len({cell.trail["probe"] for cell in cells}) > 1
    level = f"{100 * cells[0].result.level:g}% CI"
    rows = [(cell, row) for cell in cells for row in cell.result.rows]
    optional = {
        "over best baseline": [over(cell, row.latent) for cell, row in rows],
        "selectivity": [row.selectivity for _, row in rows],
        "capacity": [None if row.capacity is None else 100 * row.capacity for _, row in rows],
        "compression": [row.compression for _, row in rows],
    }
    optional = {name: values for name, values in optional.items() if any(value is not None for value in values)}
    columns = ["task", "lang", *(["model"] if several else []), "latent", *(["probe"] if probes else [])]
    columns += ["train", "test", "classes", "accuracy", level, "sd", *optional, "note"]
    lines: list[list[Value]] = []
    for number, (cell, row) in enumerate(rows):
        names = [row.task, row.lang, *([cell.model] if several else []), row.latent]
        interval = f"{100 * row.ci_low:.1f}-{100 * row.ci_high:.1f}"
        numbers: list[Value] = [row.n_train, row.n_test, row.classes, 100 * row.accuracy, interval, 100 * row.sd]
        names += [cell.trail["probe"]] if probes else []
        lines.append([*names, *numbers, *(values[number] for values in optional.values()), row.note])
    return Table(columns, lines)


def over(cell: Cell, predictor: str) -> float | None:
    """Points above the best baseline."""
    return next((gap.points for gap in cell.result.over_baseline if gap.first == predictor), None)


def gap_table(gaps: Sequence[Difference], level: float) -> Table:
    """One row per difference, in points."""
    rows = [
        [
            gap.task,
            gap.lang,
            f"{gap.first} - {gap.second}",
            f"{gap.points:+.1f}",
            f"{gap.ci_low:+.1f} to {gap.ci_high:+.1f}",
            f"{gap.p:.2g}",
            "" if gap.adjusted_p is None else f"{gap.adjusted_p:.2g}",
        ]
        for gap in gaps
    ]
    return Table(
        ["task", "lang", "difference", "points", f"{100 * level:g}% CI", "p", f"p ({gaps[0].correction})"], rows
    )


def wide_table(cells: Sequence[Cell], correction: str = "holm") -> Table:
    """One row per task and language: each latent in percent with its interval, the best baseline, and the majority.

    The best of a row is marked, and so are those that do not differ significantly from it, by p corrected over the
    table.
    """
    several = len({cell.model for cell in cells}) > 1
    probes = len({cell.trail["probe"] for cell in cells}) > 1
    settings: dict[Setting, dict[str, Column]] = {}
    for cell in cells:
        for latent in cell.trail["latents"]:
            name = f"{cell.model} {latent}" if several else latent
            settings.setdefault(cell.setting, {})[name] = Column(cell, latent)
    best = {setting: max(row, key=lambda name, row=row: row[name].score.accuracy) for setting, row in settings.items()}  # type: ignore[misc]
    tied = _tied_with_best(settings, best, correction)
    names = list(dict.fromkeys(name for row in settings.values() for name in row))
    rows = []
    for setting, row in settings.items():
        values = [_marked(row[name], name, best[setting], tied[setting], len(row)) if name in row else None
                  for name in names]  # fmt: skip
        cell = next(iter(row.values())).cell
        others = [score for score in cell.result.rows if is_baseline(score.latent, cell.trail["latents"])]
        strongest = max(others, key=lambda score: score.accuracy, default=None)
        baseline = [None, ""] if strongest is None else [100 * strongest.accuracy, strongest.latent]
        majority = next((100 * score.accuracy for score in others if score.latent == MAJORITY), None)
        rows.append([*setting[:2], *([setting[2]] if probes else []), *values, *baseline, majority])
    return Table(["task", "lang", *(["probe"] if probes else []), *names, "best baseline", "which", "majority"], rows)


class Column(NamedTuple):
    """A latent of a cell, one value in a row of the wide table."""

    cell: Cell
    latent: str

    @property
    def score(self) -> ProbeScore:
        return self.cell.row(self.latent)


def _tied_with_best(
    settings: Mapping[Setting, Mapping[str, Column]], best: Mapping[Setting, str], correction: str
) -> dict[Setting, set[str]]:
    """The predictors of each row that do not differ significantly from its best, by p corrected over the table."""
    pairs = [(setting, name) for setting, row in settings.items() for name in row if name != best[setting]]
    gaps = correct([cell_gap(*settings[setting][best[setting]], *settings[setting][name]) for setting, name in pairs],
                   correction)  # fmt: skip
    tied: dict[Setting, set[str]] = {setting: set() for setting in settings}
    for (setting, name), gap in zip(pairs, gaps, strict=True):
        alpha = 1 - next(iter(settings[setting].values())).cell.result.level
        if gap.adjusted_p is not None and gap.adjusted_p >= alpha:
            tied[setting].add(name)
    return tied


def _marked(column: Column, name: str, best: str, tied: set[str], count: int) -> Estimate:
    """Accuracy in percent with its interval, marked if it is the best of `count` or tied with the best."""
    mark = "tied" if name in tied or (tied and name == best) else ""
    if name == best and not tied and count > 1:
        mark = "best"
    score = column.score
    return Estimate(100 * score.accuracy, 100 * score.ci_low, 100 * score.ci_high, mark)
