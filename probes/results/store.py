"""A cell, one encoder on one task in one language, as a Parquet file: its result, its predictions, its trail.

A row of the file is one prediction: predictor (a latent or baseline), encoder and seed (their places), item, sentence,
label, group, predicted, bits (-log2 of the probability of the label), pvi (bits, mean over seeds). The result and the
trail are JSON in the file's metadata. Later comparisons read the rows, and need no model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet

from probes.result import Difference, Erasure, Point, ProbeResult, Row

SCHEMA = pa.schema(
    {
        "predictor": pa.string(),
        "encoder": pa.int16(),
        "seed": pa.int16(),
        "item": pa.int32(),
        "sentence": pa.string(),
        "label": pa.string(),
        "group": pa.int32(),
        "predicted": pa.string(),
        "bits": pa.float32(),
        "pvi": pa.float32(),
    }
)
METADATA = b"bgt-probe"


@dataclass(frozen=True)
class Cell:
    """What is kept of one result; `trail` says which weights, data, code and day it comes from."""

    model: str  # what the user calls the encoder
    result: ProbeResult  # without items and predictions: they are below
    predictions: pa.Table
    trail: Mapping[str, Any]

    def row(self, predictor: str) -> Row:
        return next(row for row in self.result.rows if row.latent == predictor)

    @property
    def place(self) -> tuple[str, str, str]:
        """Cells of one place stand on the same items, and can be compared."""
        return self.result.task, self.result.lang, str(self.trail["probe"])


@dataclass(frozen=True)
class Correctness:
    """Who was right on what: E encoders, S probe seeds, N tested items."""

    right: np.ndarray  # (E, S, N) booleans
    tested: np.ndarray  # (S, N) booleans
    groups: np.ndarray  # (N,)
    sentences: list[str]
    labels: list[str]


def cell_of(model: str, result: ProbeResult, trail: Mapping[str, Any]) -> Cell:
    """A fresh result as it is kept."""
    items, parts = result.items, []
    names = np.array(result.labels, dtype=object)
    for predictor, found in result.predictions.items():
        encoder, seed, item = np.nonzero(found.labels >= 0)
        texts = {"sentence": items.sentences, "label": items.labels, "group": items.groups}
        columns = {
            "predictor": [predictor] * len(item),
            "encoder": encoder,
            "seed": seed,
            "item": item,
            **{name: np.array(values, dtype=object)[item] for name, values in texts.items()},
            "predicted": names[found.labels[encoder, seed, item]],
            "bits": found.bits[encoder, seed, item],
            "pvi": found.pvi[item],
        }
        parts.append(pa.table(columns, schema=SCHEMA))
    return Cell(model, replace(result, items=None, predictions={}), pa.concat_tables(parts), trail)


def write_cell(path: Path, cell: Cell) -> None:
    """Without the name of the model: others may call it otherwise."""
    text = json.dumps({"result": cell.result.as_dict(), "trail": dict(cell.trail)})
    parquet.write_table(cell.predictions.replace_schema_metadata({METADATA: text}), path, compression="zstd")


def read_cell(path: Path, model: str) -> Cell | None:
    """What `write_cell` wrote; None where it is absent or damaged."""
    try:
        table = parquet.read_table(path, memory_map=False)
        kept = json.loads(table.schema.metadata[METADATA])
        result, trail = as_result(kept["result"]), kept["trail"]
        os.utime(path)
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError):
        return None
    return Cell(model, result, table.replace_schema_metadata(None), trail)


def as_result(plain: Mapping[str, Any]) -> ProbeResult:
    """The inverse of `ProbeResult.as_dict`."""
    found = {name.name: plain[name.name] for name in fields(ProbeResult) if name.name in plain}
    for name, kind in (
        ("rows", Row),
        ("over_baseline", Difference),
        ("over_majority", Difference),
        ("erasures", Erasure),
        ("curve", Point),
    ):
        found[name] = [kind(**one) for one in plain[name]]
    found["difference"] = plain["difference"] and Difference(**plain["difference"])
    return ProbeResult(**found)


def verdicts(cell: Cell, predictor: str) -> Correctness:
    """What one predictor of a cell was right about."""
    table = cell.predictions.filter(compute.equal(cell.predictions["predictor"], predictor))
    encoder, seed, item = (table[name].to_numpy() for name in ("encoder", "seed", "item"))
    right = compute.equal(table["predicted"], table["label"]).to_numpy()
    _, first, place = np.unique(item, return_index=True, return_inverse=True)
    found = np.zeros((encoder.max() + 1, seed.max() + 1, len(first)), dtype=bool)
    tested = np.zeros(found.shape[1:], dtype=bool)
    found[encoder, seed, place] = right
    tested[seed, place] = True
    once = table.take(first)
    return Correctness(found, tested, once["group"].to_numpy(), once["sentence"].to_pylist(), once["label"].to_pylist())


def all_predictions(cells: Sequence[Cell]) -> pa.Table:
    """The predictions of a table of cells, with the cell that each belongs to."""
    parts = []
    for cell in cells:
        table = cell.predictions
        named = zip(("model", "task", "lang", "probe"), (cell.model, *cell.place), strict=True)
        for at, (name, value) in enumerate(named):
            table = table.add_column(at, name, pa.repeat(pa.scalar(value, pa.string()), len(table)))
        parts.append(table)
    return pa.concat_tables(parts)
