"""Compare results for the same items, and make tables of results: long, short and wide, and of differences."""

from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
from pyarrow import compute

from bgt_core.errors import DataError
from bgt_core.tables import Estimate, Table, Value
from probes.measures.significance import bootstrap, correct, difference
from probes.results.store import LEVEL, MAJORITY, Cell, Difference, ProbeScore, is_baseline

UNSEPARABLE = "not separable from majority"
INTERVAL = f"{100 * LEVEL:g}% CI"
TEXTS = ["sentence", "label"]  # predictions with equal values in these columns are for the same item
TRAIL = ("data", "fingerprint", "items_sha256", "version", "measured")


def gap(left: Cell, first: str, right: Cell, second: str) -> Difference:
    """Return the accuracy of `first` in the result `left` minus the accuracy of `second` in `right`, in percentage
    points, paired on the test items. Raises DataError if the results have different items."""
    (right_one, tested, items), (right_two, others, same) = (
        correctness(cell.predictions, name) for cell, name in ((left, first), (right, second))
    )
    (task, lang, _), measured = left.setting, left.result
    names = (first, second) if left.model == right.model else (f"{left.model}/{first}", f"{right.model}/{second}")
    if not (np.array_equal(tested, others) and items.select(TEXTS).equals(same.select(TEXTS))):
        raise DataError(f"{task} {lang}: '{names[0]}' and '{names[1]}' have different items and can't be compared.")
    runs = bootstrap([right_one, right_two], tested, items["group"].to_numpy(), measured.resamples, measured.seed)
    return difference(task, lang, names, runs[0] - runs[1])


def correctness(predictions: pa.Table, predictor: str) -> tuple[np.ndarray, np.ndarray, pa.Table]:
    """Select the predictions of one latent or baseline. Return whether each prediction is right, (E, S, N) bool;
    whether the probe of each seed was tested on each item, (S, N) bool; and the N items."""
    table = predictions.filter(compute.equal(predictions["predictor"], predictor)).combine_chunks()
    encoder, seed, item = (table[name].to_numpy() for name in ("encoder", "seed", "item"))
    _, first, column = np.unique(item, return_index=True, return_inverse=True)
    right = np.zeros((encoder.max() + 1, seed.max() + 1, len(first)), dtype=bool)
    tested = np.zeros(right.shape[1:], dtype=bool)
    right[encoder, seed, column] = compute.equal(table["predicted"], table["label"]).to_numpy()
    tested[seed, column] = True
    return right, tested, table.take(first)


def corrected(cells: Sequence[Cell]) -> list[Cell]:
    """Add Holm-corrected p-values to the differences of all results of a table, and update the notes of the scores.

    The displayed differences are one family of tests. The differences between latents and the majority baseline are
    another.
    """
    shown = [gap for cell in cells for gap in (*filter(None, [cell.result.difference]), *cell.result.over_baseline)]
    adjusted = iter(correct(shown))
    majority = iter(correct([gap for cell in cells for gap in cell.result.over_majority]))
    after = []
    for cell in cells:
        first = next(adjusted) if cell.result.difference else None
        over_baseline = [next(adjusted) for _ in cell.result.over_baseline]
        gaps = {gap.first: gap for gap in (next(majority) for _ in cell.result.over_majority)}
        rows = [_with_note(row, gaps[row.latent]) if row.latent in gaps else row for row in cell.result.rows]
        result = replace(cell.result, rows=rows, difference=first, over_baseline=over_baseline)
        after.append(replace(cell, result=result))
    return after


def _with_note(row: ProbeScore, gap: Difference) -> ProbeScore:
    """Add a note if a latent's accuracy is not significantly above the majority baseline's, after Holm's correction."""
    notes = [part for part in row.note.split("; ") if part and not part.startswith(UNSEPARABLE)]
    p = gap.p if gap.adjusted_p is None else gap.adjusted_p
    if p >= 1 - LEVEL or gap.points <= 0:
        how = UNSEPARABLE if p >= 1 - LEVEL else "below majority"
        notes.append(f"{how} {100 * row.accuracy - gap.points:.1f} after Holm (p={p:.2g})")
    return replace(row, note="; ".join(notes))


def long_table(cells: Sequence[Cell]) -> Table:
    """Make a table with one row per latent or baseline of each result, and one column per field of its score."""
    records = [
        {"model": cell.model, **asdict(row), "seeds": cell.result.seeds, "seed": cell.result.seed}
        | {name: cell.trail[name] for name in TRAIL}
        for cell in cells
        for row in cell.result.rows
    ]
    return Table(list(records[0]), [list(record.values()) for record in records])


def short_table(cells: Sequence[Cell]) -> Table:
    """Make a table for display, with a row per latent or baseline, accuracies in percent, and no empty columns."""
    several = len({cell.model for cell in cells}) > 1
    probes = len({cell.trail["probe"] for cell in cells}) > 1
    rows = [(cell, row) for cell in cells for row in cell.result.rows]
    optional = {
        "over best baseline": [
            next((gap.points for gap in cell.result.over_baseline if gap.first == row.latent), None)
            for cell, row in rows
        ],
        "selectivity": [row.selectivity for _, row in rows],
    }
    optional = {name: values for name, values in optional.items() if any(value is not None for value in values)}
    columns = ["task", "lang", *(["model"] if several else []), "latent", *(["probe"] if probes else [])]
    columns += ["train", "test", "classes", "accuracy", INTERVAL, "sd", *optional, "note"]
    lines: list[list[Value]] = []
    for number, (cell, row) in enumerate(rows):
        names = [row.task, row.lang, *([cell.model] if several else []), row.latent]
        interval = f"{100 * row.ci_low:.1f}-{100 * row.ci_high:.1f}"
        numbers: list[Value] = [row.n_train, row.n_test, row.classes, 100 * row.accuracy, interval, 100 * row.sd]
        names += [cell.trail["probe"]] if probes else []
        lines.append([*names, *numbers, *(values[number] for values in optional.values()), row.note])
    return Table(columns, lines)


def gap_table(gaps: Sequence[Difference]) -> Table:
    """Make a table with one row per difference. Differences are in percentage points."""
    rows: list[list[Value]] = []
    for gap in gaps:
        names = gap.task, gap.lang, f"{gap.first} - {gap.second}"
        interval = f"{gap.ci_low:+.1f} to {gap.ci_high:+.1f}"
        adjusted = "" if gap.adjusted_p is None else f"{gap.adjusted_p:.2g}"
        rows.append([*names, f"{gap.points:+.1f}", interval, f"{gap.p:.2g}", adjusted])
    return Table(["task", "lang", "difference", "points", INTERVAL, "p", "p (Holm)"], rows)


def wide_table(cells: Sequence[Cell]) -> Table:
    """Make a table with a row per task and language, and columns for each latent, the best baseline and the majority.

    Accuracies are in percent; the accuracies of latents have intervals. In each row, the best latent is marked, and so
    are latents that do not differ significantly from it, with Holm's correction over the table.
    """
    several = len({cell.model for cell in cells}) > 1
    probes = len({cell.trail["probe"] for cell in cells}) > 1
    settings: dict[tuple[str, str, str], dict[str, tuple[Cell, str]]] = {}
    for cell in cells:
        for latent in cell.trail["latents"]:
            name = f"{cell.model} {latent}" if several else latent
            settings.setdefault(cell.setting, {})[name] = cell, latent
    best = {setting: max(row, key=lambda name, row=row: accuracy(*row[name])) for setting, row in settings.items()}  # type: ignore[misc]
    others = [(setting, name) for setting, row in settings.items() for name in row if name != best[setting]]
    gaps = correct([gap(*settings[setting][best[setting]], *settings[setting][name]) for setting, name in others])
    tied = {
        other for other, gap in zip(others, gaps, strict=True)
        if gap.adjusted_p is not None and gap.adjusted_p >= 1 - LEVEL
    }  # fmt: skip
    tied |= {(setting, best[setting]) for setting, _ in tied}
    names = list(dict.fromkeys(name for row in settings.values() for name in row))
    rows = []
    for setting, row in settings.items():
        values: list[Value] = []
        for name in names:
            mark = "tied" if (setting, name) in tied else "best" if name == best[setting] and len(row) > 1 else ""
            values.append(accuracy(*row[name])._replace(mark=mark) if name in row else None)
        cell, _ = next(iter(row.values()))
        strongest = best_baseline(cell)
        baseline = [None, ""] if strongest is None else [100 * strongest.accuracy, strongest.latent]
        majority = next((100 * score.accuracy for score in cell.result.rows if score.latent == MAJORITY), None)
        rows.append([*setting[:2], *([setting[2]] if probes else []), *values, *baseline, majority])
    return Table(["task", "lang", *(["probe"] if probes else []), *names, "best baseline", "which", "majority"], rows)


def accuracy(cell: Cell, latent: str) -> Estimate:
    """Return a latent's accuracy in percent, with Wilson's interval."""
    row = cell.row(latent)
    return Estimate(100 * row.accuracy, 100 * row.ci_low, 100 * row.ci_high)


def best_baseline(cell: Cell) -> ProbeScore | None:
    """Return the score of the most accurate baseline or reference encoder; None if there is none."""
    others = [row for row in cell.result.rows if is_baseline(row.latent, cell.trail["latents"])]
    return max(others, key=lambda row: row.accuracy, default=None)
