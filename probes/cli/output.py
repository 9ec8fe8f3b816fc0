"""What `bgt-probe` writes and prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from bgt_core.errors import BadInput
from bgt_core.tables import LEGEND, save, show
from probes.cli.wishes import Wishes
from probes.result import SCHEMA, Difference
from probes.store import Cell
from probes.tables import gap_table, long_table, short_table, wide_table
from probes.tasks import TASKS


def print_tasks() -> None:
    show(["task", "languages", "question"], [[t.name, ", ".join(t.langs) or "any", t.about] for t in TASKS.values()])


def about(cells: Sequence[Cell]) -> str:
    """What the numbers of a table are, in a line."""
    first = cells[0].result
    if cells[0].trail["probe"] == "paper":
        return "test accuracy in percent by SentEval's protocol, one seed, with Wilson intervals"
    return (
        f"test accuracy in percent, mean of {first.seeds} probe seeds, with Wilson {100 * first.ci:g}% intervals; "
        "differences: paired bootstrap over test items and seeds, exact McNemar p, Holm over the table"
    )


def write(wishes: Wishes, cells: Sequence[Cell]) -> None:
    """The files asked for, each whole or not there."""
    if any(wishes.files.values()):
        save(long_table(cells), {name: wishes.files[name] for name in ("csv", "parquet")})
        save(wide_table(cells), {name: wishes.files[name] for name in ("latex", "md")}, about(cells))
    if wishes.predictions:
        from pyarrow import parquet

        from probes.cache import replacing
        from probes.store import all_predictions

        with replacing(wishes.predictions) as partial:
            parquet.write_table(all_predictions(cells), partial, compression="zstd")
    if wishes.report:
        from probes.report import write_report

        write_report(wishes.report, cells)


def say(
    wishes: Wishes,
    cells: Sequence[Cell],
    gaps: Sequence[Difference],
    failures: Sequence[tuple[str, BadInput]],
    as_json: bool,
) -> None:
    """The table, or one JSON document, on stdout; warnings on stderr."""
    for cell in cells:
        for line in cell.result.warnings:
            print(f"{cell.result.task} {cell.result.lang}, {cell.model}: {line}", file=sys.stderr)
    if as_json:
        print(json.dumps(document(cells, gaps, failures), indent=2, ensure_ascii=False))
        return
    table = short_table(cells)
    show(table.columns, table.lines(), text=table.columns.index("train"))
    differences = [cell.result.difference for cell in cells if cell.result.difference]
    for found in (differences, gaps):
        if found:
            table = gap_table(found, cells[0].result.ci)
            print()
            show(table.columns, table.lines(), text=3)
    if len({cell.model for cell in cells}) > 1:
        table = wide_table(cells)
        print()
        show(table.columns, table.lines(), text=2)
        print(LEGEND, file=sys.stderr)
    extras(cells)


def extras(cells: Sequence[Cell]) -> None:
    """Erasure and learning curves, where they were asked for."""
    rows = [
        [*cell.place[:2], cell.model, one.latent, one.method, str(one.rank), f"{100 * one.accuracy:.1f}",
         f"{100 * one.random_accuracy:.1f}"]
        for cell in cells for one in cell.result.erasures
    ]  # fmt: skip
    if rows:
        print()
        show(["task", "lang", "model", "latent", "erased by", "rank", "accuracy", "random directions"], rows, text=5)
    rows = [
        [*cell.place[:2], cell.model, one.latent, one.probe, str(one.n_train), f"{100 * one.accuracy:.1f}",
         f"{100 * one.ci_low:.1f}-{100 * one.ci_high:.1f}"]
        for cell in cells for one in cell.result.curve
    ]  # fmt: skip
    if rows:
        print()
        show(["task", "lang", "model", "latent", "probe", "train", "accuracy", "interval"], rows, text=5)


def document(
    cells: Sequence[Cell], gaps: Sequence[Difference], failures: Sequence[tuple[str, BadInput]]
) -> dict[str, object]:
    """What --json prints."""
    return {
        "schema": SCHEMA,
        "about": about(cells),
        "results": [{"model": cell.model, **cell.result.as_dict(), "trail": dict(cell.trail)} for cell in cells],
        "compared": [vars(gap) for gap in gaps],
        "failed": [{"cell": label, "why": str(error)} for label, error in failures],
    }
