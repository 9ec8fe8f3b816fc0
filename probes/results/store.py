"""Store the results of a run of `bgt-probe` in one file, from which models can be compared without running them again.

The file is Parquet, with a row for each prediction: model, fingerprint, task, lang, probe (kind of probe), predictor (a
latent or baseline), encoder and seed (numbers from 0), item, sentence, label, group, predicted (label), bits (-log2 of
the probability of the true label) and pvi (pointwise V-information in bits, mean over seeds). The scores, the
differences and the trails of all cells are JSON in the metadata of the file.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from bgt_core.errors import DataError
from bgt_core.files import parse_json, reading_parquet
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
CELL = ("model", "fingerprint", "task", "lang", "probe")  # columns of a file that precede `PREDICTIONS`
METADATA = b"bgt-probe"
# entries of a trail that readers need
TRAIL = {"fingerprint": str, "langs": list, "latents": list, "probe": str, "data": str}
# annotation of a field -> types that are accepted from a file
KINDS: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (float, int)}
KINDS["float | None"] = (float, int, type(None))


@dataclass(frozen=True, eq=False)
class Cell:
    """The result of one encoder on one task in one language; `trail` records the weights, the data, the version and the
    date of the measurement."""

    model: str  # the user's name for the encoder
    result: ProbeResult
    trail: Mapping[str, Any]

    @property
    def predictions(self) -> pa.Table:
        return self.result.predictions

    def row(self, predictor: str) -> ProbeScore:
        return next(row for row in self.result.rows if row.latent == predictor)

    @property
    def setting(self) -> tuple[str, str, str]:
        """Task, language and kind of probe. Cells that agree in these can be compared if they have the same items."""
        return self.result.task, self.result.lang, str(self.trail["probe"])

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the predictions."""
        return {"model": self.model, **self.result.as_dict(), "trail": dict(self.trail)}


def write_cells(file: Path | io.BytesIO, cells: Sequence[Cell]) -> None:
    """Write the cells of a run to a file."""
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
        writer.add_key_value_metadata({METADATA: document})  # in the schema it would be written twice


def read_cells(file: Path | str, content: bytes | None = None) -> list[Cell]:
    """Read the cells of a run from a file, or from its `content`; then `file` is its name for error messages.

    Raises NotFound if the file is absent, DataError if it is damaged, or of another kind or version.
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
            result = replace(_result(entry), predictions=predictions.slice(start, count))
            cells.append(Cell(str(entry["model"]), result, trail))
            start += count
        return cells
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{file}: incomplete: {error} is missing or of a wrong kind; run bgt-probe again.") from None


def _result(plain: Mapping[str, Any]) -> ProbeResult:
    """Make a result from the output of `ProbeResult.as_dict`; raise KeyError or TypeError for other values."""
    values = {part.name: plain[part.name] for part in fields(ProbeResult) if part.name in plain}
    for name, kind in {"rows": ProbeScore, "over_baseline": Difference, "over_majority": Difference}.items():
        values[name] = [_record(kind, entry) for entry in plain[name]]
    values["difference"] = plain["difference"] and _record(Difference, plain["difference"])
    if not values["rows"]:
        raise KeyError("rows")
    return ProbeResult(**values)


def _record(kind: type, plain: Mapping[str, Any]) -> Any:
    """Make a dataclass of numbers and text from `plain`; entries that are not its fields are ignored."""
    value = kind(**{each.name: plain[each.name] for each in fields(kind) if each.name in plain})
    for each in fields(kind):
        if not isinstance(getattr(value, each.name), KINDS[str(each.type)]):
            raise TypeError(each.name)
    return value
