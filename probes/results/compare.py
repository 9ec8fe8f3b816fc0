"""Differences between what is kept of several cells, and what holds once a whole table is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pyarrow import compute

from bgt_core.errors import DataError
from probes.measures.significance import bootstrap, correct, difference
from probes.result import Difference
from probes.results.store import Cell, verdicts

UNSEPARABLE = "not separable from majority"


def gap(left: Cell, first: str, right: Cell, second: str, names: tuple[str, str] | None = None) -> Difference:
    """Predictor `first` of one cell minus `second` of another (or the same) on the same test items.

    BgtError where the items are not the same.
    """
    one, two = verdicts(left, first), verdicts(right, second)
    task, lang, _ = left.place
    same = one.sentences == two.sentences and one.labels == two.labels and np.array_equal(one.tested, two.tested)
    if not same:
        raise DataError(f"{task} {lang}: '{left.model}' and '{right.model}' were tested on different items.")
    found = left.result
    runs = bootstrap([one.right, two.right], one.tested, one.groups, found.resamples, found.seed)
    return difference(task, lang, names or (first, second), runs[0] - runs[1], found.ci)


def corrected(cells: Sequence[Cell], correction: str = "holm") -> list[Cell]:
    """The cells of a table with the adjusted p in every difference, and the notes that follow from it.

    The differences shown are one family; the comparisons of each latent with the majority are another.
    """
    shown = [one for cell in cells for one in (*([cell.result.difference] if cell.result.difference else []),
                                               *cell.result.over_baseline)]  # fmt: skip
    after = iter(correct(shown, correction))
    found = []
    for cell in cells:
        result = cell.result
        first = next(after) if result.difference else None
        found.append(replace(cell, result=replace(
            result, difference=first, over_baseline=[next(after) for _ in result.over_baseline])))  # fmt: skip
    return _noted(found, correction)


def _noted(cells: Sequence[Cell], correction: str) -> list[Cell]:
    """The cells with a note on each latent that majority does as well as."""
    after = iter(correct([one for cell in cells for one in cell.result.over_majority], correction))
    found = []
    for cell in cells:
        gaps = {one.first: one for one in (next(after) for _ in cell.result.over_majority)}
        rows = []
        for row in cell.result.rows:
            gap = gaps.get(row.latent)
            notes = [part for part in row.note.split("; ") if part and not (gap and part.startswith(UNSEPARABLE))]
            if gap and (gap.adjusted_p >= 1 - cell.result.ci or gap.points <= 0):
                how = UNSEPARABLE if gap.adjusted_p >= 1 - cell.result.ci else "below majority"
                notes.append(
                    f"{how} {100 * row.accuracy - gap.points:.1f} after {gap.correction} (p={gap.adjusted_p:.2g})"
                )
            rows.append(replace(row, note="; ".join(notes)))
        found.append(replace(cell, result=replace(cell.result, rows=rows)))
    return found


def has(cell: Cell, predictor: str) -> bool:
    """Whether predictions of it were kept."""
    return predictor in compute.unique(cell.predictions["predictor"]).to_pylist()
