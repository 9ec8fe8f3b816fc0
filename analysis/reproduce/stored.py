"""The results of a comparison as tidy CSV files, without any text of the data.

They are:

    NAME-scores.csv        one row per system, measure and seed; seed "mean" is the system's score
    NAME-differences.csv   each system minus the one that it is compared with
    NAME-claims.csv        the paper's claims and our verdicts
    NAME-cells.csv         provenance: one row per training
    NAME-statistics.csv    of a comparison of back-translations: how each table's translations differ from references
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from bgt_core.errors import DataError, NotFound
from bgt_core.files import atomic_file

KINDS = {
    "scores": "system,latent,seed,measure,value,ci_low,ci_high,published,cell",
    "differences": "measure,first,second,difference,ci_low,ci_high,p,p_holm,seeds_counted",
    "claims": "claim,where,measure,published,value,ci_low,ci_high,p,p_holm,seeds_counted,level,verdict",
    "cells": "system,cell,state,error,recipe,overrides,left_out,langs,seed,data,version,git,measured,torch,machine,"
    "threads,parameters,updates,tokens,seconds,tokens_per_second,epoch_seconds,arguments",
    "statistics": "table,pairs,statistic,unit,reference,translation,difference,ci_low,ci_high,published,verdict,"
    "rho,rho_low,rho_high,rho_published",
}
OPTIONAL = {"statistics"}
NUMBERS = set(
    "value,ci_low,ci_high,published,difference,p,p_holm,level,threads,parameters,updates,tokens,seconds,"
    "tokens_per_second,epoch_seconds,pairs,reference,translation,rho,rho_low,rho_high,rho_published".split(",")
)

Records = dict[str, list[dict[str, Any]]]  # kind -> rows


def write(folder: Path, name: str, records: Records) -> None:
    """The files of a comparison, each whole or absent. Raises NotFound where `folder` can't be written."""
    for kind, rows in records.items():
        path = folder / f"{name}-{kind}.csv"
        with atomic_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, KINDS[kind].split(","), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def read(folder: Path, name: str) -> Records:
    """What `write` wrote, numbers as numbers and empty fields as None; an optional file that is absent has no rows.

    Raises NotFound where a file is absent, DataError where it has other columns.
    """
    records: Records = {}
    for kind, columns in KINDS.items():
        path = folder / f"{name}-{kind}.csv"
        try:
            with path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
        except FileNotFoundError:
            if kind in OPTIONAL:
                rows = []
            else:
                raise NotFound(f"{path}: no results; run `python -m analysis.reproduce {name}` first.") from None
        if rows and list(rows[0]) != columns.split(","):
            raise DataError(f"{path}: its columns are not {columns}; run `python -m analysis.reproduce {name}` again.")
        records[kind] = [{column: parse(column, value) for column, value in row.items()} for row in rows]
    return records


def parse(column: str, text: str) -> Any:
    """A field of a CSV file as a value; hashes may look like numbers, so the column decides."""
    return None if not text else float(text) if column in NUMBERS else text
