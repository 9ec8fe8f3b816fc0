"""The results of a table as four tidy CSV files, without any text of the data.

NAME-scores.csv        a row for each system, measure and seed; seed "mean" is the system's score
NAME-differences.csv   each system minus the one that it is compared with
NAME-claims.csv        what the paper claims, and how it stands
NAME-cells.csv         the trail: a row a training
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

from bgt_core.errors import DataError, NotFound
from bgt_core.files import writing

KINDS = {
    "scores": "system,latent,seed,measure,value,ci_low,ci_high,published,cell",
    "differences": "measure,first,second,difference,ci_low,ci_high,p,p_holm,seeds_counted",
    "claims": "claim,where,measure,published,value,ci_low,ci_high,p,p_holm,seeds_counted,level,verdict",
    "cells": "system,cell,state,error,recipe,overrides,left_out,langs,seed,data,version,git,measured,torch,machine,"
    "threads,parameters,updates,tokens,seconds,tokens_per_second,epoch_seconds,arguments",
}
NUMBERS = set(
    "value,ci_low,ci_high,published,difference,p,p_holm,level,threads,parameters,updates,tokens,seconds,"
    "tokens_per_second,epoch_seconds".split(",")
)

Records = dict[str, list[dict[str, Any]]]  # kind -> rows


def write(folder: Path, name: str, found: Records) -> None:
    """The four files of a table, each whole or not there."""
    for kind, rows in found.items():
        path = folder / f"{name}-{kind}.csv"
        partial = path.with_name(path.name + ".partial")
        with writing(path):
            folder.mkdir(parents=True, exist_ok=True)
            with partial.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, KINDS[kind].split(","), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            os.replace(partial, path)


def read(folder: Path, name: str) -> Records:
    """What `write` wrote, numbers as numbers and nothing as None. BgtError where it is absent (exit code 3)."""
    found: Records = {}
    for kind, columns in KINDS.items():
        path = folder / f"{name}-{kind}.csv"
        try:
            with path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
        except FileNotFoundError:
            raise NotFound(f"{path}: no results; run `bgt reproduce {name}` first.") from None
        if rows and list(rows[0]) != columns.split(","):
            raise DataError(f"{path}: its columns are not {columns}; make it anew.")
        found[kind] = [{name: as_was(name, value) for name, value in row.items()} for row in rows]
    return found


def as_was(column: str, text: str) -> Any:
    """A cell of a CSV file before it was written; hashes may look like numbers, so columns decide."""
    return None if not text else float(text) if column in NUMBERS else text
