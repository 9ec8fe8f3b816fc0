"""The tables, files and JSON of `bgt-probe`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import parquet

from bgt_core.cli.options import check_files, on_stdout
from bgt_core.errors import BgtError, check_choice
from bgt_core.files import atomic_file
from bgt_core.tables import LEGEND, save, show
from probes.data.folder import LABELLED
from probes.data.load import BUILT, VERBATIM
from probes.measures.significance import CORRECTIONS
from probes.result import SCHEMA, Difference
from probes.results.store import Cell, all_predictions
from probes.results.tables import gap_table, long_table, short_table, wide_table


def about(cells: Sequence[Cell], correction: str) -> str:
    """Describe the numbers of a table in one line."""
    first = cells[0].result
    probes = "of one probe" if first.seeds == 1 else f"mean of {first.seeds} probe seeds"
    if cells[0].trail["probe"] == "senteval":
        whole = all(map(takes_all_as_senteval, cells))
        items = "its items, as in the file" if whole else "not its items, which are a whole labelled file"
        return f"test accuracy in percent by SentEval's protocol, one seed, with Wilson intervals; {items}"
    cleaned = any(card_of(cell).get("built") == BUILT[LABELLED] for cell in cells)
    return (
        f"test accuracy in percent, {probes}, with Wilson {100 * first.level:g}% intervals; "
        "differences: paired, interval and p over test items (bootstrap) and seeds (Student's t), "
        f"{CORRECTIONS[correction][0]} over the table"
        f"{'; labelled files cleaned: tokens joined to text, each sentence once' if cleaned else ''}"
    )


def takes_all_as_senteval(cell: Cell) -> bool:
    """Whether the items are a labelled file's, in its order, with its text unchanged and repeats included."""
    card, result = card_of(cell), cell.result
    train = card.get("sizes", {}).get("train")
    return (
        card.get("tokenisation") == VERBATIM
        and not result.left_out
        and all(row.n_train == train for row in result.rows)  # no `max_train`
    )


def card_of(cell: Cell) -> Mapping[str, Any]:
    """Return the description of the data in the trail; empty for sentences without a file."""
    return cell.trail.get("card", {})


@dataclass(frozen=True)
class Outputs:
    """The files to write, the form to print, and the correction of p-values."""

    tables: Mapping[str, Path | None]  # csv, latex, parquet, md -> file
    predictions: Path | None
    as_json: bool
    correction: str

    def check(self) -> None:
        """Raise UsageError or NotFound for outputs that can't be written."""
        check_files({**self.tables, "predictions": self.predictions}, self.as_json)
        check_choice(CORRECTIONS, correction=self.correction)

    def write(self, cells: Sequence[Cell]) -> None:
        """Write the files, each complete or not at all."""
        if any(self.tables.values()):
            save(long_table(cells), {name: self.tables[name] for name in ("csv", "parquet")})
            wide = {name: self.tables[name] for name in ("latex", "md")}
            save(wide_table(cells, self.correction), wide, about(cells, self.correction))
        if self.predictions:
            with atomic_file(self.predictions) as partial:
                parquet.write_table(all_predictions(cells), partial, compression="zstd")

    def show(self, cells: Sequence[Cell], gaps: Sequence[Difference], failures: Sequence[tuple[str, BgtError]]) -> None:
        """Print the tables or one JSON document on stdout, unless a file goes there; warnings on stderr."""
        for cell in cells:
            for line in cell.result.warnings:
                print(f"{cell.result.task} {cell.result.lang}, {cell.model}: {line}", file=sys.stderr)
        if self.as_json:
            only_ascii = "utf" not in (sys.stdout.encoding or "").lower()
            print(json.dumps(document(cells, gaps, failures, self.correction), indent=2, ensure_ascii=only_ascii))
        elif not on_stdout(self.tables):
            show_tables(cells, gaps, self.correction)


def show_tables(cells: Sequence[Cell], gaps: Sequence[Difference], correction: str) -> None:
    """Print scores, differences, and if there are several models, these side by side."""
    table = short_table(cells)
    print(about(cells, correction), file=sys.stderr)
    show(table.columns, table.lines(), text=table.columns.index("train"))
    differences = [cell.result.difference for cell in cells if cell.result.difference]
    for some in (differences, gaps):
        if some:
            table = gap_table(some, cells[0].result.level)
            print()
            show(table.columns, table.lines(), text=3)
    if len({cell.model for cell in cells}) > 1:
        table = wide_table(cells, correction)
        print()
        show(table.columns, table.lines(), text=2)
        print(LEGEND, file=sys.stderr)
    extras(cells)


def extras(cells: Sequence[Cell]) -> None:
    """Print erasure and learning curves, if they were measured."""
    erasures = [
        [*cell.setting[:2], cell.model, erasure.latent, erasure.method, str(erasure.rank), percent(erasure.accuracy),
         percent(erasure.random_accuracy)]
        for cell in cells for erasure in cell.result.erasures
    ]  # fmt: skip
    curves = [
        [*cell.setting[:2], cell.model, point.latent, point.probe, str(point.n_train), percent(point.accuracy),
         f"{percent(point.ci_low)}-{percent(point.ci_high)}"]
        for cell in cells for point in cell.result.curve
    ]  # fmt: skip
    for columns, rows in (
        (["erased by", "rank", "accuracy", "random directions"], erasures),
        (["probe", "train", "accuracy", "interval"], curves),
    ):
        if rows:
            print()
            show(["task", "lang", "model", "latent", *columns], rows, text=5)


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def document(
    cells: Sequence[Cell],
    gaps: Sequence[Difference],
    failures: Sequence[tuple[str, BgtError]],
    correction: str = "holm",
) -> dict[str, object]:
    """Return the document of --json."""
    return {
        "schema": SCHEMA,
        "about": about(cells, correction),
        "results": [{"model": cell.model, **cell.result.as_dict(), "trail": dict(cell.trail)} for cell in cells],
        "compared": [vars(gap) for gap in gaps],
        "failed": [{"cell": label, "why": str(error)} for label, error in failures],
    }
