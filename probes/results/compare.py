"""Differences between stored results of several cells, and corrections over a whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute

from bgt_core.errors import DataError
from probes.measures.significance import RESAMPLES, bootstrap, correct, difference
from probes.result import Difference
from probes.results.store import Cell, correctness

UNSEPARABLE = "not separable from majority"


class Side(NamedTuple):
    """One side of a comparison."""

    model: str
    predictor: str  # a latent, baseline or reference


def gap(
    left: pa.Table,
    first: str,
    right: pa.Table,
    second: str,
    *,
    task: str,
    lang: str,
    names: tuple[str, str] | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Accuracy of predictor `first` minus that of `second`, in points, paired on the same test items.

    `left` and `right` are the predictions of two cells, or of one (`Cell.predictions`). `names` are the names of both
    sides in the difference. Raises DataError if the items are not the same.
    """
    one, two, names = correctness(left, first), correctness(right, second), names or (first, second)
    same = one.sentences == two.sentences and one.labels == two.labels and np.array_equal(one.tested, two.tested)
    if not same:
        raise DataError(f"{task} {lang}: '{names[0]}' and '{names[1]}' were tested on different items.")
    runs = bootstrap([one.right, two.right], one.tested, one.groups.tolist(), resamples, seed)
    return difference(task, lang, names, runs[0] - runs[1], level)


def cell_gap(left: Cell, first: str, right: Cell, second: str, names: tuple[str, str] | None = None) -> Difference:
    """`gap` of two cells of one task, with the level and resamples of the first."""
    (task, lang, _), measured = left.setting, left.result
    return gap(
        left.predictions,
        first,
        right.predictions,
        second,
        task=task,
        lang=lang,
        names=names,
        level=measured.level,
        resamples=measured.resamples,
        seed=measured.seed,
    )


def compare_sides(
    cells: Sequence[Cell], pairs: Sequence[tuple[Side, Side]], correction: str = "holm"
) -> list[Difference]:
    """The difference of each pair in each setting with both, corrected among themselves."""
    gaps = []
    for setting in dict.fromkeys(cell.setting for cell in cells):
        by_model = {cell.model: cell for cell in cells if cell.setting == setting}
        for first, second in pairs:
            left, right = by_model.get(first.model), by_model.get(second.model)
            if left and right and has_predictor(left, first.predictor) and has_predictor(right, second.predictor):
                names = (first.predictor, second.predictor)
                if first.model != second.model:
                    names = ("/".join(first), "/".join(second))
                gaps.append(cell_gap(left, first.predictor, right, second.predictor, names))
    return correct(gaps, correction)


def corrected(cells: Sequence[Cell], correction: str = "holm") -> list[Cell]:
    """The cells of a table with the adjusted p in every difference, and the resulting notes.

    The displayed differences are one family; the comparisons of each latent with the majority are another.
    """
    shown = [gap for cell in cells for gap in (*([cell.result.difference] if cell.result.difference else []),
                                               *cell.result.over_baseline)]  # fmt: skip
    adjusted = iter(correct(shown, correction))
    after = []
    for cell in cells:
        first = next(adjusted) if cell.result.difference else None
        over_baseline = [next(adjusted) for _ in cell.result.over_baseline]
        after.append(replace(cell, result=replace(cell.result, difference=first, over_baseline=over_baseline)))
    return _with_notes(after, correction)


def _with_notes(cells: Sequence[Cell], correction: str) -> list[Cell]:
    """The cells, with a note on each latent that does not beat the majority."""
    adjusted = iter(correct([gap for cell in cells for gap in cell.result.over_majority], correction))
    after = []
    for cell in cells:
        gaps = {gap.first: gap for gap in (next(adjusted) for _ in cell.result.over_majority)}
        rows = []
        for row in cell.result.rows:
            gap = gaps.get(row.latent)
            notes = [part for part in row.note.split("; ") if part and not (gap and part.startswith(UNSEPARABLE))]
            unseparable = gap is not None and gap.adjusted_p is not None and gap.adjusted_p >= 1 - cell.result.level
            if gap and (unseparable or gap.points <= 0):
                how = UNSEPARABLE if unseparable else "below majority"
                notes.append(
                    f"{how} {100 * row.accuracy - gap.points:.1f} after {gap.correction} (p={gap.adjusted_p:.2g})"
                )
            rows.append(replace(row, note="; ".join(notes)))
        after.append(replace(cell, result=replace(cell.result, rows=rows)))
    return after


def has_predictor(cell: Cell, predictor: str) -> bool:
    """Whether it has stored predictions."""
    return predictor in compute.unique(cell.predictions["predictor"]).to_pylist()
