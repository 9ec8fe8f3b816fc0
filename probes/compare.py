"""Differences between what is kept of several cells, and what holds once a whole table is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pyarrow import compute

from bgt_core.contracts import BadInput
from bgt_core.evaluation.bootstrap import holm
from probes.baselines import MAJORITY
from probes.result import Difference
from probes.significance import bootstrap, correct, mcnemar
from probes.store import Cell, Verdicts, verdicts

UNSEPARABLE = "not separable from majority"


def gap(left: Cell, first: str, right: Cell, second: str, names: tuple[str, str] | None = None) -> Difference:
    """Predictor `first` of one cell minus `second` of another (or the same) on the same test items.

    BadInput where the items are not the same.
    """
    one, two = _pair(left, first, right, second)
    ci, seed = left.result.ci, left.result.seed
    runs = bootstrap([one.right, two.right], one.tested, one.groups, seed=seed)
    paired = runs[0] - runs[1]
    low, high = (100 * min(1.0, max(-1.0, end)) for end in paired.interval(ci, seed))
    task, lang, _ = left.place
    return Difference(task, lang, *(names or (first, second)), 100 * paired.mean, low, high, _p(one, two))


def p_value(left: Cell, first: str, right: Cell, second: str) -> float:
    """Exact McNemar's p of the same two, without the interval."""
    return _p(*_pair(left, first, right, second))


def _pair(left: Cell, first: str, right: Cell, second: str) -> tuple[Verdicts, Verdicts]:
    one, two = verdicts(left, first), verdicts(right, second)
    same = one.sentences == two.sentences and one.labels == two.labels and np.array_equal(one.tested, two.tested)
    if not same:
        task, lang, _ = left.place
        raise BadInput(f"{task} {lang}: '{left.model}' and '{right.model}' were tested on different items.")
    return one, two


def _p(one: Verdicts, two: Verdicts) -> float:
    """By the first encoder and, for each item, the first probe that tested it."""
    seed, item = one.tested.argmax(0), np.arange(one.tested.shape[1])
    return mcnemar(one.right[0, seed, item], two.right[0, seed, item])


def corrected(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of a table with Holm's p in every difference, and the notes that follow from it.

    The differences shown are one family; the comparisons of each latent with the majority are another.
    """
    shown = [one for cell in cells for one in (*([cell.result.difference] if cell.result.difference else []),
                                               *cell.result.over_baseline)]  # fmt: skip
    after = iter(correct(shown))
    found = []
    for cell in cells:
        result = cell.result
        first = next(after) if result.difference else None
        found.append(replace(cell, result=replace(
            result, difference=first, over_baseline=[next(after) for _ in result.over_baseline])))  # fmt: skip
    return _noted(found)


def _noted(cells: Sequence[Cell]) -> list[Cell]:
    """The cells with a note on each latent that majority does as well as."""
    places = [(at, row) for at, cell in enumerate(cells) if has(cell, MAJORITY)
              for row in cell.result.rows if row.latent in cell.trail["latents"]]  # fmt: skip
    shares = {at: accuracy(cells[at], MAJORITY) for at, _ in places}
    ps = [p_value(cells[at], row.latent, cells[at], MAJORITY) for at, row in places]
    adjusted = dict(zip([(at, row.latent) for at, row in places], holm(np.array(ps)) if ps else [], strict=True))
    found = []
    for at, cell in enumerate(cells):
        rows = []
        for row in cell.result.rows:
            p = adjusted.get((at, row.latent))
            notes = [part for part in row.note.split("; ") if part and (p is None or not part.startswith(UNSEPARABLE))]
            if p is not None and (p >= 1 - cell.result.ci or row.accuracy <= shares[at]):
                how = UNSEPARABLE if p >= 1 - cell.result.ci else "below majority"
                notes.append(f"{how} {100 * shares[at]:.1f} after Holm (p={p:.2g})")
            rows.append(replace(row, note="; ".join(notes)))
        found.append(replace(cell, result=replace(cell.result, rows=rows)))
    return found


def accuracy(cell: Cell, predictor: str) -> float:
    """Of all test items, mean over encoders and probe seeds."""
    found = verdicts(cell, predictor)
    return float(found.right.sum(2).mean(0).sum() / found.tested.sum())


def has(cell: Cell, predictor: str) -> bool:
    """Whether predictions of it were kept."""
    return predictor in compute.unique(cell.predictions["predictor"]).to_pylist()
