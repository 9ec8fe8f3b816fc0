"""Cells as tables: every number of every row, those that are read by eye, and one row a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from bgt_core.tables import Estimate, Table
from probes.classifiers.baselines import MAJORITY
from probes.measures.significance import correct
from probes.result import Difference
from probes.results.compare import gap as compared
from probes.results.store import Cell

TRAIL = ("data", "fingerprint", "items_sha256", "version", "measured")


def long_table(cells: Sequence[Cell]) -> Table:
    """A row a predictor, all that is known of it."""
    records = [
        {"model": cell.model, **asdict(row), "seeds": cell.result.seeds, "seed": cell.result.seed, "ci": cell.result.ci}
        | {name: cell.trail[name] for name in TRAIL}
        for cell in cells
        for row in cell.result.rows
    ]
    return Table(list(records[0]), [list(record.values()) for record in records])


def short_table(cells: Sequence[Cell]) -> Table:
    """The same rows for the eye: accuracies in percent, columns only for what was measured."""
    several = len({cell.model for cell in cells}) > 1
    probes = len({cell.trail["probe"] for cell in cells}) > 1
    level = f"{100 * cells[0].result.ci:g}% CI"
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
    found = []
    for at, (cell, row) in enumerate(rows):
        names = [row.task, row.lang, *([cell.model] if several else []), row.latent]
        interval = f"{100 * row.ci_low:.1f}-{100 * row.ci_high:.1f}"
        numbers = [row.n_train, row.n_test, row.classes, 100 * row.accuracy, interval, 100 * row.sd]
        names += [cell.trail["probe"]] if probes else []
        found.append([*names, *numbers, *(values[at] for values in optional.values()), row.note])
    return Table(columns, found)


def over(cell: Cell, predictor: str) -> float | None:
    """Points above the best baseline."""
    return next((gap.points for gap in cell.result.over_baseline if gap.first == predictor), None)


def gap_table(gaps: Sequence[Difference], ci: float) -> Table:
    """A row a difference, in points."""
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
    return Table(["task", "lang", "difference", "points", f"{100 * ci:g}% CI", "p", f"p ({gaps[0].correction})"], rows)


def wide_table(cells: Sequence[Cell], correction: str = "holm") -> Table:
    """A row a task and language: each latent in percent with its interval, then the best baseline and the majority.

    The best of a row is marked; so are those that can't be told from it, by p, corrected over the table.
    """
    several = len({cell.model for cell in cells}) > 1
    probes = len({cell.trail["probe"] for cell in cells}) > 1
    places: dict[tuple[str, str, str], dict[str, tuple[Cell, str]]] = {}
    for cell in cells:
        for latent in cell.trail["latents"]:
            name = f"{cell.model} {latent}" if several else latent
            places.setdefault(cell.place, {})[name] = (cell, latent)
    best = {place: max(row, key=lambda name, row=row: accuracy(*row[name])) for place, row in places.items()}
    pairs = [(place, name) for place, row in places.items() for name in row if name != best[place]]
    gaps = correct([compared(*places[place][best[place]], *places[place][name]) for place, name in pairs], correction)
    adjusted = {pair: one.adjusted_p for pair, one in zip(pairs, gaps, strict=True)}
    names = list(dict.fromkeys(name for row in places.values() for name in row))
    rows = []
    for place, row in places.items():
        tied = {name for name in row if adjusted.get((place, name), 0) >= 1 - cells[0].result.ci}
        values = []
        for name in names:
            if name not in row:
                values.append(None)
                continue
            found = row[name][0].row(row[name][1])
            mark = "tied" if name in tied or (tied and name == best[place]) else ""
            mark = "best" if name == best[place] and not tied and len(row) > 1 else mark
            values.append(Estimate(100 * found.accuracy, 100 * found.ci_low, 100 * found.ci_high, mark))
        cell = next(iter(row.values()))[0]
        others = [one for one in cell.result.rows if one.latent not in cell.trail["latents"]]
        against = max(others, key=lambda one: one.accuracy, default=None)
        majority = next((100 * one.accuracy for one in others if one.latent == MAJORITY), None)
        strongest = [None if against is None else 100 * against.accuracy, against.latent if against else ""]
        rows.append([place[0], place[1], *([place[2]] if probes else []), *values, *strongest, majority])
    return Table(["task", "lang", *(["probe"] if probes else []), *names, "best baseline", "which", "majority"], rows)


def accuracy(cell: Cell, predictor: str) -> float:
    return cell.row(predictor).accuracy
