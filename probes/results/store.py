"""Store the results of a run of `bgt-probe` in one file, from which models can be compared without running them again.

The file is Parquet, with a row for each prediction. Its columns are model, fingerprint, task, lang, probe (kind of
probe), predictor (a latent or baseline), encoder and seed (indices from 0), item, sentence, label, group, predicted
(label), bits (-log2 of the probability of the true label) and pvi (pointwise V-information in bits, mean over seeds).
The file's metadata contain, as JSON, the scores, the differences and the trails of all results. A trail records the
weights, the data and the version of the software with which a result was computed.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from bgt_core.errors import DataError
from bgt_core.files import parse_json, reading_parquet

SCHEMA = "bgt-probe/6"  # version of the result files, of the JSON output of `bgt-probe` and of the classes below
LEVEL = 0.95  # confidence level of every interval
MAJORITY = "majority"  # the baseline that always predicts the most frequent label
TRANSLATION = "semantic, translation"  # a probe of the semantic latent of each sentence's translation
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
CELL = ("model", "fingerprint", "task", "lang", "probe")  # the first columns of a file; those in `PREDICTIONS` follow
METADATA = b"bgt-probe"
# The entries that a result's `trail` must have, with their types.
TRAIL = {"fingerprint": str, "langs": list, "latents": list, "probe": str, "data": str}
# type of a field -> types that are accepted from a file
KINDS: dict[Any, tuple[type, ...]] = {str: (str,), int: (int,), float: (float, int)}
KINDS[float | None] = (float, int, type(None))


def is_baseline(predictor: str, latents: Sequence[str]) -> bool:
    """Return whether a predictor is a baseline or a reference encoder, not a latent of the model."""
    return predictor not in latents and predictor != TRANSLATION


@dataclass(frozen=True)
class ProbeScore:
    """The score of one latent or baseline; accuracies are fractions of the test items."""

    task: str
    lang: str
    latent: str  # a latent, or the name of a baseline
    n_train: int  # number of training items, averaged over probe seeds
    n_test: int  # number of different test items, over all seeds
    classes: int
    accuracy: float
    ci_low: float  # Wilson's interval of the accuracy, which allows for the choice of sentences but not of probes
    ci_high: float
    sd: float  # standard deviation of the accuracy over probe seeds; 0 for one seed
    note: str = ""
    probe: str = "linear"
    encoders: int = 1  # number of encoders; a baseline may have several, such as three untrained models
    encoder_sd: float = 0.0  # standard deviation over encoders of the accuracy averaged over probes
    boot_low: float | None = None  # bootstrap interval, which allows for the choice of sentences, probes and encoders
    boot_high: float | None = None
    information: float | None = None  # V-information in bits per item
    selectivity: float | None = None  # accuracy minus accuracy on the control task, on the same items, in points
    selectivity_low: float | None = None
    selectivity_high: float | None = None
    control: float | None = None  # accuracy on the control task


@dataclass(frozen=True)
class Difference:
    """The accuracy of the first predictor minus that of the second, on the same items, in points (-100 to 100)."""

    task: str
    lang: str
    first: str
    second: str
    points: float
    ci_low: float  # 95% interval of the paired difference over sentences, probes and encoders
    ci_high: float
    p: float  # two-sided p-value, from the same standard error as the interval
    adjusted_p: float | None = None  # with Holm's correction over a table's differences; see `significance.correct`


@dataclass(frozen=True)
class ProbeResult:
    """The result of one task in one language."""

    task: str
    lang: str
    seeds: int  # number of probe seeds
    seed: int  # seed of the random labels, splits and resamples
    rows: list[ProbeScore]
    difference: Difference | None  # accuracy of the first latent minus accuracy of the second latent
    left_out: int  # number of items left out because of a rare label or `max_items`
    resamples: int = 2_000  # number of resamples of the test items
    over_baseline: list[Difference] = field(default_factory=list)  # each latent's accuracy minus the best baseline's
    over_majority: list[Difference] = field(default_factory=list)  # each latent's minus the majority baseline's
    warnings: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)  # all labels in alphabetical order.
    # A row for each prediction on a test item, with the columns `PREDICTIONS`.
    predictions: pa.Table = field(default=None, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields but the predictions as a dict that `json` can write."""
        plain = asdict(replace(self, predictions=None))
        del plain["predictions"]
        return plain


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
        """The task, language and kind of probe. Results with equal settings and equal items can be compared."""
        return self.result.task, self.result.lang, str(self.trail["probe"])

    def as_dict(self) -> dict[str, Any]:
        """Return all fields but the predictions as a dict that `json` can write."""
        return {"model": self.model, **self.result.as_dict(), "trail": dict(self.trail)}


def write_cells(file: Path | io.BytesIO, cells: Sequence[Cell]) -> None:
    """Write the results of a run of `bgt-probe` to a file."""
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
        writer.add_key_value_metadata({METADATA: document})  # metadata in the schema would be written twice


def read_cells(file: Path | str, content: bytes | None = None) -> list[Cell]:
    """Read results from `file`, or from its bytes `content`; then `file` is only named in messages.

    Raises NotFound if the file is absent, and DataError if it is damaged, or of another kind or version.
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
            raise DataError(f"{file}: its schema is {schema}, but this version reads {SCHEMA}; run bgt-probe again.")
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
        raise DataError(f"{file}: incomplete: {error} is missing or of the wrong type; run bgt-probe again.") from None


def _result(plain: Mapping[str, Any]) -> ProbeResult:
    """Make a result from the output of `ProbeResult.as_dict`. Raises KeyError or TypeError for anything else."""
    values = {part.name: plain[part.name] for part in fields(ProbeResult) if part.name in plain}
    for name, kind in {"rows": ProbeScore, "over_baseline": Difference, "over_majority": Difference}.items():
        values[name] = [_record(kind, entry) for entry in plain[name]]
    values["difference"] = plain["difference"] and _record(Difference, plain["difference"])
    if not values["rows"]:
        raise KeyError("rows")
    return ProbeResult(**values)


def _record(kind: type, plain: Mapping[str, Any]) -> Any:
    """Make an instance of the dataclass `kind` from a dict; entries that are not fields of `kind` are ignored."""
    value = kind(**{each.name: plain[each.name] for each in fields(kind) if each.name in plain})
    for each in fields(kind):
        if not isinstance(getattr(value, each.name), KINDS[each.type]):
            raise TypeError(each.name)
    return value
