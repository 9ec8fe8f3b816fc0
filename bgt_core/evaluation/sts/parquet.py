"""Store every pair's score in a Parquet file, to compare it later without its model, or to read it row by row.

One row for each system and pair: system, year, dataset, pair (from 1), gold, cosine, left, right, left_lang,
right_lang.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bgt_core.errors import DataError
from bgt_core.evaluation.sts.parse import named
from bgt_core.evaluation.sts.score import StsScores, StsSet
from bgt_core.files import atomic_file
from bgt_core.files.parquet import reading_parquet

WORDS = ("system", "year", "dataset", "left_lang", "right_lang")  # columns that are constant within a set
COLUMNS = pa.schema(
    dict.fromkeys(WORDS, pa.string())
    | {"pair": pa.int32(), "gold": pa.float64(), "cosine": pa.float64(), "left": pa.string(), "right": pa.string()}
)


def write_scores(out: Path, systems: Mapping[str, StsScores]) -> None:
    """Write a file, complete or not at all; NotFound if it can't be written."""
    with atomic_file(out) as partial, parquet.ParquetWriter(partial, COLUMNS, compression="zstd") as file:
        for system, scores in systems.items():
            for data, cosine in zip(scores.sets, scores.cosines, strict=True):
                file.write_table(table(system, data, cosine))


def table(system: str, data: StsSet, cosine: np.ndarray) -> pa.Table:
    words = zip(WORDS, (system, data.year, data.name, data.left_lang, data.right_lang), strict=True)
    columns = {name: pa.repeat(value, len(cosine)) for name, value in words}
    columns |= {"pair": range(1, len(cosine) + 1), "gold": data.gold, "cosine": cosine}
    return pa.table(columns | {"left": list(data.left), "right": list(data.right)}, schema=COLUMNS)


def read_scores(path: Path) -> dict[str, StsScores]:
    """Read the systems of a file, by name. NotFound if it can't be read, DataError if it is not a file of scores."""
    with reading_parquet(path, "a file that bgt evaluate sts --out writes"), parquet.ParquetFile(path) as file:
        columns = file.read().select(COLUMNS.names).cast(COLUMNS).to_pydict()
    rows_of: dict[tuple[str, ...], list[int]] = {}
    for row, words in enumerate(zip(*(columns[name] for name in WORDS), strict=True)):
        rows_of.setdefault(words, []).append(row)
    systems: dict[str, tuple[list[StsSet], list[np.ndarray]]] = {}
    for (system, year, name, left_lang, right_lang), rows in rows_of.items():
        rows.sort(key=columns["pair"].__getitem__)
        if [columns["pair"][row] for row in rows] != list(range(1, len(rows) + 1)):
            raise DataError(f"{path}: {system}, {year} {name}: pairs are missing or repeated.")
        gold, cosine, left, right = (
            [columns[part][row] for row in rows] for part in ("gold", "cosine", "left", "right")
        )
        sets, cosines = systems.setdefault(system, ([], []))
        sets.append(named(path, year, name, gold, left, right, (left_lang, right_lang)))
        cosines.append(np.array(cosine, dtype=np.float64))
        if not np.isfinite(cosines[-1]).all():
            raise DataError(f"{path}: {system}, {year} {name}: a cosine is NaN, infinite or absent.")
    if not systems:
        raise DataError(f"{path}: it holds no scores.")
    return {system: StsScores(*parts) for system, parts in systems.items()}
