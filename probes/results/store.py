"""The one file of results, and a cache of them.

A run is a Parquet file. A row is one prediction: model, fingerprint, task, lang, probe (of its cell), predictor (a
latent or baseline), encoder and seed (numbers from 0), item, sentence, label, group, predicted, bits (-log2 of the
probability of the label), pvi (bits, mean over seeds). The results of the cells and their trails are JSON in the file's
metadata. All later comparisons read this file, and need no model.

    CACHE/results/KEY.parquet  a run of one cell

A key is a hash of everything that determines the content, this package's code included, so entries never go stale. A
damaged file counts as absent. The folder can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pyarrow as pa
from platformdirs import user_cache_path
from pyarrow import compute, parquet

import bgt_core
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.files import atomic_file, parse_json, reading_parquet, writing
from probes.result import SCHEMA, Difference, ProbeResult, ProbeScore

PREDICTIONS = pa.schema(
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
CELL = ("model", "fingerprint", "task", "lang", "probe")  # columns of a file before these
METADATA = b"bgt-probe"
TRAIL = {"fingerprint": str, "langs": list, "latents": list, "probe": str, "data": str}  # entries that readers need
# the types that the fields of a stored record may have, by their annotation
KINDS: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (float, int)}
KINDS["float | None"] = (float, int, type(None))
WAY_OUT = "; choose another folder with BGT_CACHE, or measure without a cache"


@dataclass(frozen=True, eq=False)
class Cell:
    """The result of one encoder on one task in one language; `trail` records the weights, data, code and day that it
    comes from."""

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

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, without the predictions."""
        return {"model": self.model, **self.result.as_dict(), "trail": dict(self.trail)}


def cell_of(model: str, result: ProbeResult, trail: Mapping[str, Any]) -> Cell:
    """Turn a fresh result, with items and predictions, into its stored form."""
    if result.items is None:
        raise UsageError("result: it has no items, because it was read from a file; give one that was just measured.")
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
        parts.append(pa.table(columns, schema=PREDICTIONS))
    return Cell(model, replace(result, items=None, predictions={}), pa.concat_tables(parts), trail)


def write_cells(file: Path | io.BytesIO, cells: Sequence[Cell]) -> None:
    """Write a run."""
    parts = []
    for cell in cells:
        table = cell.predictions
        values = (cell.model, cell.trail["fingerprint"], *cell.setting)
        for column, (name, value) in enumerate(zip(CELL, values, strict=True)):
            table = table.add_column(column, name, pa.repeat(pa.scalar(value, pa.string()), len(table)))
        parts.append(table)
    results = [{**cell.as_dict(), "predictions": len(cell.predictions)} for cell in cells]
    document = json.dumps({"schema": SCHEMA, "results": results}, separators=(",", ":"))
    table = pa.concat_tables(parts)
    with parquet.ParquetWriter(file, table.schema, compression="zstd") as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({METADATA: document})  # as a part of the schema it would be written twice


def read_cells(file: Path | str, content: bytes | None = None) -> list[Cell]:
    """Read a run.

    Args:
        file: Its path, or its name for messages if `content` is given.

    Raises:
        NotFound: It is absent.
        DataError: It is another file, or damaged, or of another version.
    """
    with reading_parquet(file, "a run of bgt-probe (make one with: bgt-probe --out FILE.parquet)"):
        source = io.BytesIO(Path(file).read_bytes() if content is None else content)
        with parquet.ParquetFile(source) as opened:
            metadata = (opened.metadata.metadata or {})[METADATA]
            predictions = opened.read(PREDICTIONS.names).cast(PREDICTIONS)
    document = parse_json(metadata, str(file))
    try:
        if document["schema"] != SCHEMA:
            schema = repr(document["schema"])[:40]
            raise DataError(f"{file}: its schema is {schema}, this version reads {SCHEMA}; run bgt-probe again.")
        cells, start = [], 0
        for entry in document["results"]:
            trail, count = entry["trail"], entry["predictions"]
            for name, kind in TRAIL.items():
                if not isinstance(trail[name], kind):
                    raise TypeError(name)
            cells.append(Cell(str(entry["model"]), _result(entry), predictions.slice(start, count), trail))
            start += count
        return cells
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{file}: incomplete: {error} is missing or of a wrong kind; run bgt-probe again.") from None


def _result(plain: Mapping[str, Any]) -> ProbeResult:
    """The inverse of `ProbeResult.as_dict`; KeyError or TypeError for other values."""
    values = {part.name: plain[part.name] for part in fields(ProbeResult) if part.name in plain}
    for name, kind in {"rows": ProbeScore, "over_baseline": Difference, "over_majority": Difference}.items():
        values[name] = [_record(kind, entry) for entry in plain[name]]
    values["difference"] = plain["difference"] and _record(Difference, plain["difference"])
    if not values["rows"]:
        raise KeyError("rows")
    return ProbeResult(**values)


def _record(kind: type, plain: Mapping[str, Any]) -> Any:
    """An instance of a dataclass of numbers and text; entries of earlier versions that it lacks are ignored."""
    value = kind(**{each.name: plain[each.name] for each in fields(kind) if each.name in plain})
    for each in fields(kind):
        if not isinstance(getattr(value, each.name), KINDS[str(each.type)]):
            raise TypeError(each.name)
    return value


@dataclass(frozen=True, eq=False)
class Correctness:
    """Which predictions were right: E encoders, S probe seeds, N tested items."""

    right: np.ndarray  # (E, S, N) booleans
    tested: np.ndarray  # (S, N) booleans
    groups: np.ndarray  # (N,)
    sentences: list[str]
    labels: list[str]


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


def default_folder() -> Path:
    """BGT_CACHE, or the system's folder for caches."""
    folder = os.environ.get("BGT_CACHE")
    return Path(folder) if folder else user_cache_path("bgt", appauthor=False)


@cache
def code() -> str:
    """A hash of the sources and of the libraries that compute."""
    sources = hashlib.sha256()
    for package in (Path(__file__).resolve().parents[1], Path(bgt_core.__file__).resolve().parent):
        for file in sorted(package.rglob("*.py")):
            sources.update(file.relative_to(package.parent).as_posix().encode() + file.read_bytes())
    for library in ("numpy", "scipy", "scikit-learn", "torch"):
        sources.update(version(library).encode())
    return sources.hexdigest()


@dataclass(frozen=True)
class Cache:
    """A folder of results, by default `default_folder()`."""

    folder: Path = field(default_factory=default_folder)

    def path(self, **parts: object) -> Path:
        """The file of the cell that depends on these parts (plain values) and on the code."""
        text = json.dumps({**parts, "code": code()}, sort_keys=True, ensure_ascii=True)
        return self.folder / "results" / f"{hashlib.sha256(text.encode()).hexdigest()}.parquet"

    def check(self) -> None:
        """Raise NotFound if the cache can't be written, before anything is computed for it."""
        with writing(self.folder, WAY_OUT):
            self.folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=self.folder):
                pass

    def read(self, path: Path, model: str) -> Cell | None:
        """The stored cell, under this name of its model; None if it is absent or damaged."""
        with suppress(BgtError):
            (cell,) = read_cells(path)
            return replace(cell, model=model)
        return None

    def write(self, path: Path, cell: Cell) -> None:
        """Store a cell; NotFound if the cache can't be written."""
        with atomic_file(path, WAY_OUT) as partial:
            write_cells(partial, [cell])
