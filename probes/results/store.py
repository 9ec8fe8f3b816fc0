"""A cell, one encoder on one task in one language, as a Parquet file: its result, its predictions, its trail.

A row of the file is one prediction: predictor (a latent or baseline), encoder and seed (numbers from 0), item,
sentence, label, group, predicted, bits (-log2 of the probability of the label), pvi (bits, mean over seeds). The result
and the trail are JSON in the file's metadata. Later comparisons read the rows, and need no model.
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

from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from bgt_core.files import parse_json, reading_parquet
from probes.result import SCHEMA as DOCUMENT
from probes.result import CurvePoint, Difference, Erasure, ProbeResult, ProbeScore

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
TRAIL = ("fingerprint", "langs", "probe")  # entries of the trail that readers need


@dataclass(frozen=True, eq=False)
class Cell:
    """One stored result; `trail` records the weights, data, code and day that it comes from."""

    model: str  # the user's name for the encoder
    result: ProbeResult  # without items and predictions, which are below
    predictions: pa.Table
    trail: Mapping[str, Any]

    def row(self, predictor: str) -> ProbeScore:
        return next(row for row in self.result.rows if row.latent == predictor)

    @property
    def setting(self) -> tuple[str, str, str]:
        """Task, language and probe: cells of one setting are measured on the same items, and can be compared."""
        return self.result.task, self.result.lang, str(self.trail["probe"])


@dataclass(frozen=True, eq=False)
class Correctness:
    """Which predictions were right: E encoders, S probe seeds, N tested items."""

    right: np.ndarray  # (E, S, N) booleans
    tested: np.ndarray  # (S, N) booleans
    groups: np.ndarray  # (N,)
    sentences: list[str]
    labels: list[str]


def cell_of(model: str, result: ProbeResult, trail: Mapping[str, Any]) -> Cell:
    """Turn a fresh result, with items and predictions, into its stored form."""
    if result.items is None:
        raise UsageError("result: it has no items, because it was read from JSON; give one that was just measured.")
    items, parts = result.items, []
    names = np.array(result.labels, dtype=object)
    for predictor, predictions in result.predictions.items():
        encoder, seed, item = np.nonzero(predictions.labels >= 0)
        texts = {"sentence": items.sentences, "label": items.labels, "group": items.groups}
        columns = {
            "predictor": [predictor] * len(item),
            "encoder": encoder,
            "seed": seed,
            "item": item,
            **{name: np.array(values, dtype=object)[item] for name, values in texts.items()},
            "predicted": names[predictions.labels[encoder, seed, item]],
            "bits": predictions.bits[encoder, seed, item],
            "pvi": predictions.pvi[item],
        }
        parts.append(pa.table(columns, schema=SCHEMA))
    return Cell(model, replace(result, items=None, predictions={}), pa.concat_tables(parts), trail)


def write_cell(path: Path, cell: Cell) -> None:
    """Write a Parquet file, without the name of the model, which may differ elsewhere."""
    text = json.dumps({"result": cell.result.as_dict(), "trail": dict(cell.trail)})
    parquet.write_table(cell.predictions.replace_schema_metadata({METADATA: text}), path, compression="zstd")


def read_cell(path: Path, model: str) -> Cell | None:
    """Read the file of `write_cell`; None if it is absent or damaged."""
    try:
        with reading_parquet(path):
            table = parquet.read_table(path, memory_map=False)
            document = parse_json(table.schema.metadata[METADATA], str(path))
            result, trail = as_result(document["result"]), document["trail"]
            os.utime(path)
    except BgtError:
        return None
    return Cell(model, result, table.replace_schema_metadata(None), trail)


def as_result(plain: Mapping[str, Any]) -> ProbeResult:
    """The inverse of `ProbeResult.as_dict`; KeyError or TypeError for other values."""
    values = {part.name: plain[part.name] for part in fields(ProbeResult) if part.name in plain}
    kinds: dict[str, type] = {
        "rows": ProbeScore,
        "over_baseline": Difference,
        "over_majority": Difference,
        "erasures": Erasure,
        "curve": CurvePoint,
    }
    for name, kind in kinds.items():
        values[name] = [kind(**entry) for entry in plain[name]]
    values["difference"] = plain["difference"] and Difference(**plain["difference"])
    return ProbeResult(**values)


def read_document(path: Path) -> list[Cell]:
    """Read the output of `bgt-probe --json`, without predictions; NotFound if absent, DataError for another file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NotFound(f"{path}: can't be read ({error.strerror}).") from None
    return document_cells(str(path), content)


def document_cells(name: str, content: bytes) -> list[Cell]:
    """Read the content of such a file; `name` is for errors."""
    try:
        document = parse_json(content, name)
        schema = document["schema"]
    except (DataError, KeyError, TypeError):
        raise DataError(f"{name}: not a JSON document of bgt-probe; make one with: bgt-probe --json > FILE") from None
    if schema != DOCUMENT:
        raise DataError(
            f"{name}: its schema is {str(schema)[:40]!r}, this version reads {DOCUMENT}; run bgt-probe again."
        )
    try:
        return [document_cell(entry) for entry in document["results"]]
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(f"{name}: incomplete: {error} is missing or of a wrong kind; run bgt-probe again.") from None


def document_cell(entry: Mapping[str, Any]) -> Cell:
    trail = entry["trail"]
    if missing := [name for name in TRAIL if name not in trail]:
        raise KeyError(missing[0])
    return Cell(entry["model"], as_result(entry), SCHEMA.empty_table(), trail)


def correctness(predictions: pa.Table, predictor: str) -> Correctness:
    """Which predictions of one predictor were right; `predictions` are those of a cell."""
    table = predictions.filter(compute.equal(predictions["predictor"], predictor))
    encoder, seed, item = (table[name].to_numpy() for name in ("encoder", "seed", "item"))
    right = compute.equal(table["predicted"], table["label"]).to_numpy()
    _, first, column = np.unique(item, return_index=True, return_inverse=True)
    verdicts = np.zeros((encoder.max() + 1, seed.max() + 1, len(first)), dtype=bool)
    tested = np.zeros(verdicts.shape[1:], dtype=bool)
    verdicts[encoder, seed, column] = right
    tested[seed, column] = True
    items = table.take(first)
    groups, sentences, labels = items["group"].to_numpy(), items["sentence"].to_pylist(), items["label"].to_pylist()
    return Correctness(verdicts, tested, groups, sentences, labels)


def all_predictions(cells: Sequence[Cell]) -> pa.Table:
    """The predictions of a table of cells, with the cell of each."""
    parts = []
    for cell in cells:
        table = cell.predictions
        named = zip(("model", "task", "lang", "probe"), (cell.model, *cell.setting), strict=True)
        for column, (name, value) in enumerate(named):
            table = table.add_column(column, name, pa.repeat(pa.scalar(value, pa.string()), len(table)))
        parts.append(table)
    return pa.concat_tables(parts)
