"""Results of probes: what `bgt-probe` writes with --json, --csv and --predictions, gathered without mixing models.

JSON is read by `probes.results.store`; everything else about the format of these files is here.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import streamlit as st
from pyarrow import compute, parquet

from app.core import startup
from bgt_core.errors import BgtError, DataError, NotFound
from bgt_core.files import reading_parquet
from probes.results.store import SCHEMA as STORED
from probes.results.store import Cell, all_predictions, document_cells

KINDS = ("json", "csv", "parquet")
# Columns that identify a result: `probe` is how the latents were probed, `items` names the labelled sentences, `run`
# gives their number and the number of seeds, `live` tells whether a user of the app started it, `data` is the source of
# the items; `mark` tells it from others of the same model, language and task.
SOURCE = ["model", "fingerprint", "lang", "task", "probe", "items", "run", "seed", "live", "data", "mark"]
CELL = ["model", "lang", "task"]
SCORES = [*SOURCE, *"latent accuracy ci_low ci_high n_train n_test classes sd note".split()]
OPTIONAL = ["selectivity", "capacity", "compression", "information"]  # only if requested
GAPS = [*SOURCE, *"langs first second points ci_low ci_high p n_test".split()]  # langs: of the model, "en fr"
CURVE = [*SOURCE, *"latent family n_train accuracy ci_low ci_high".split()]
PREDICTED = ("model", "task", "lang", "probe")  # predictions name no fingerprint of the model
FLOATS = [*"accuracy ci_low ci_high sd points p adjusted_p".split(), *OPTIONAL]
INTEGERS = ["n_train", "n_test", "classes"]
PREDICTIONS = pa.schema([*((name, pa.string()) for name in PREDICTED), *STORED])
COMMAND = "bgt-probe --lang {lang} --model {model} --json > {lang}.json"


class Key(NamedTuple):
    """The key of predictions; only predictions with the same key may replace them."""

    model: str
    task: str
    lang: str
    probe: str
    live: bool  # started by a user of the app
    content: str  # a hash


@dataclass(frozen=True, eq=False)
class ResultTables:
    """Accuracies, differences of two latents, learning curves, predictions; trainings of one name stay apart."""

    scores: pd.DataFrame = field(default_factory=lambda: framed([], SCORES, OPTIONAL))  # fractions
    gaps: pd.DataFrame = field(default_factory=lambda: framed([], GAPS, ["adjusted_p"]))  # points
    curve: pd.DataFrame = field(default_factory=lambda: framed([], CURVE))
    items: Mapping[Key, pa.Table] = field(default_factory=dict)  # rows as in `probes.results.store`

    def changed(self, table: Callable[[pd.DataFrame], pd.DataFrame], key: Callable[[Key], Key]) -> ResultTables:
        """Replace each table and each key of predictions by the result of these functions."""
        items = {key(name): rows for name, rows in self.items.items()}
        return ResultTables(table(self.scores), table(self.gaps), table(self.curve), items)


def read(name: str, content: bytes) -> ResultTables:
    """Read a file of `bgt-probe`. DataError for any other file."""
    if name.endswith(".csv"):
        return read_csv(name, content)
    if name.endswith(".parquet"):
        return read_predictions(name, content)
    cells = document_cells(name, content)
    try:
        return from_cells(cells)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DataError(f"{name}: not the results of this version of bgt-probe; run bgt-probe again.") from None


def from_cells(cells: Iterable[Cell], live: bool = False) -> ResultTables:
    """Turn results into tables, with their predictions; `live` if they were just computed, not read from a file."""
    scores, gaps, curve = [], [], []
    items: dict[Key, pa.Table] = {}
    for cell in cells:
        result, trail = cell.result, cell.trail
        first = result.rows[0]
        run = run_text(first.n_train, first.n_test, result.seeds)
        data = ", ".join(trail.get("card", {}).get("sources", [])) or trail.get("data", "")
        source = {
            "model": cell.model,
            "fingerprint": weights(trail["fingerprint"]),
            "probe": trail["probe"],
            "items": items_name(trail.get("items_sha256", ""), trail.get("data", "")),
            "run": run,
            "seed": result.seed,
            "live": live,
            "data": data,
            "mark": f"run here: {run}, {data}" if live else "",
        }
        scores += [vars(row) | source for row in result.rows]
        if result.difference:
            more = {"langs": " ".join(trail["langs"]), "n_test": first.n_test}
            gaps.append({**vars(result.difference), **more, **source})
        task = {"lang": result.lang, "task": result.task, **source}
        curve += [{**vars(point), "family": point.probe, **task} for point in result.curve]
        items |= by_key(all_predictions([cell]), live)
    return ResultTables(
        framed(scores, SCORES, OPTIONAL), framed(gaps, GAPS, ["adjusted_p"]), framed(curve, CURVE), items
    )


def weights(fingerprint: str) -> str:
    """The hash of a model's weights; another precision or device does not make it another model."""
    return fingerprint.partition(" ")[0]


def items_name(sha256: str, data: str) -> str:
    """Name the labelled sentences: a hash of them, or else their source."""
    return sha256[:12] or startup.public(data)


def run_text(n_train: int, n_test: int, seeds: int) -> str:
    """Describe the size of a run, as in "800 + 100 sentences, 1 seed": training and test sentences."""
    return f"{n_train:,} + {n_test:,} sentences, {seeds} {'seed' if seeds == 1 else 'seeds'}"


def read_csv(name: str, content: bytes) -> ResultTables:
    """Accuracies only: a CSV has no differences."""
    try:
        table = pd.read_csv(io.BytesIO(content), keep_default_na=False)
        for column in OPTIONAL:
            table[column] = pd.to_numeric(table[column])
        # baselines have their own probes; each is listed below its latents
        probe = table["probe"].where(table["probe"] != table["latent"]).ffill().fillna("linear")
        table = table.assign(
            fingerprint=table["fingerprint"].map(weights),
            probe=probe,
            items=[items_name(*map(str, row)) for row in table[["items_sha256", "data"]].itertuples(index=False)],
            run=[run_text(*row) for row in table[["n_train", "n_test", "seeds"]].itertuples(index=False)],
            live=False,
            mark="",
        )
        return ResultTables(of_kinds(table[[*SCORES, *OPTIONAL]]))
    except (pd.errors.ParserError, pd.errors.EmptyDataError, AttributeError, KeyError, TypeError, ValueError):
        raise DataError(f"{name}: not a table of bgt-probe; make one with: bgt-probe --csv FILE") from None


def read_predictions(name: str, content: bytes) -> ResultTables:
    """Read the prediction for each item; the file does not name the training that it comes from."""
    try:
        with reading_parquet(name):
            stored = parquet.read_table(io.BytesIO(content))
            return ResultTables(items=by_key(stored.select(PREDICTIONS.names).cast(PREDICTIONS)))
    except BgtError:
        raise DataError(f"{name}: not predictions of bgt-probe; make them with: bgt-probe --predictions FILE") from None


def by_key(table: pa.Table, live: bool = False) -> dict[Key, pa.Table]:
    """Predictions by model, task, language, probe and a hash of their content, so that equal ones are merged."""
    parts = {}
    for source in table.group_by(list(PREDICTED)).aggregate([]).select(list(PREDICTED)).to_pylist():
        conditions = [compute.equal(table[name], value) for name, value in source.items()]
        rows = table.filter(reduce(compute.and_, conditions)).select(STORED.names)
        parts[Key(**source, live=live, content=content(rows))] = rows
    return parts


def content(rows: pa.Table) -> str:
    """Hash predictions, whatever file they come from."""
    plain = rows.drop_columns(["bits", "pvi"]).to_pandas()
    return sha256(pd.util.hash_pandas_object(plain, index=False).to_numpy().tobytes()).hexdigest()[:12]


def framed(rows: list[dict[str, Any]], columns: list[str], optional: Sequence[str] = ()) -> pd.DataFrame:
    """Make a table of these columns, NaN for None; TypeError or ValueError for a value of the wrong type."""
    return of_kinds(pd.DataFrame(rows, columns=[*columns, *optional]))


def of_kinds(table: pd.DataFrame) -> pd.DataFrame:
    """Convert every column to its type; raises TypeError for lists or records."""
    for name in table:
        if any(isinstance(value, list | dict) for value in table[name].tolist()):
            raise TypeError(f"{name} holds lists or records")
    kinds = dict.fromkeys(FLOATS, float) | dict.fromkeys(INTEGERS, int)
    others = {name: kind for name, kind in kinds.items() if name in table and table[name].dtype != kind}
    return table.assign(**{name: table[name].astype(kind) for name, kind in others.items()})


def gathered(paths: Iterable[Path], more: Iterable[ResultTables]) -> ResultTables:
    """Gather all these files, folders included, and `more`; equal rows count once, and no row replaces another.

    Models have the names that the app uses. A hash is added to two trainings with the same name, and the kind of probe
    to results that are not of a linear probe.
    """
    parts = [*(part for path in paths for part in read_path(path)), *more]
    columns = zip(*((part.scores, part.gaps, part.curve) for part in (ResultTables(), *parts)), strict=True)
    scores, gaps, curve = (  # tables without rows do not decide the types of columns
        pd.concat([table for table in tables if len(table)] or tables[:1], ignore_index=True) for tables in columns
    )
    items = {key: table for part in parts for key, table in part.items.items()}
    titles = model_titles(pd.concat([scores[SOURCE], gaps[SOURCE]]), items)

    def with_titles(table: pd.DataFrame) -> pd.DataFrame:
        names = [titles[Training(row.model, row.fingerprint, row.probe)] for row in table.itertuples()]
        table = table.assign(model=names, data=table["data"].map(startup.public))
        # a CSV has no source names and may be rounded: rows that differ only in that are one result
        repeated = table.drop(columns="data").round(9).duplicated()
        return marked(table[~repeated].reset_index(drop=True))

    return ResultTables(scores, gaps, curve, items).changed(
        with_titles, lambda key: key._replace(model=titles[Training(key.model, "", key.probe)])
    )


def marked(table: pd.DataFrame) -> pd.DataFrame:
    """Mark results if there are several of one model, language and task; those run here are always marked."""
    runs = table.groupby(CELL)[["items", "run", "seed"]].transform("nunique").max(axis=1)
    several = (runs > 1) & ~table["live"].astype(bool)
    table = table.assign(mark=table["mark"].where(~several, table["run"] + ", " + table["data"]))
    # the same result from another device or version
    again = table.groupby([*CELL, "mark", *table.columns.intersection(["latent", "family", "n_train"])]).cumcount()
    return table.assign(mark=table["mark"].where(again == 0, table["mark"] + " (" + (again + 1).astype(str) + ")"))


class Training(NamedTuple):
    """The source that a title is given to; the fingerprint is "" for predictions."""

    model: str
    fingerprint: str
    probe: str


def model_titles(sources: pd.DataFrame, items: Iterable[Key]) -> dict[Training, str]:
    """Title each training and probe in `sources` (columns `SOURCE`), and each source of predictions."""
    unique = sources[list(Training._fields)].drop_duplicates()
    trainings = [Training(*row) for row in unique.itertuples(index=False, name=None)]
    trainings_of_items = [Training(key.model, "", key.probe) for key in items]
    names = {known: name for name, path in startup.read().models.items() for known in (path, name)}
    in_app = set(names)
    others = dict.fromkeys(each.model for each in [*trainings, *trainings_of_items] if each.model not in in_app)
    names |= {path: name for name, path in startup.short_names(list(others), in_app).items()}
    count = sources.groupby("model")["fingerprint"].nunique()
    titles = {training: names[training.model] + how(training.probe) for training in trainings_of_items}
    for training in trainings:
        model, fingerprint, probe = training
        if count[model] > 1:
            title = f"{names[model]} {fingerprint[:8]}"
        else:  # the same weights under two names are one model; the app's name is used
            same = [other.model for other in trainings if other.fingerprint == fingerprint and count[other.model] == 1]
            title = names[next((other for other in same if other in in_app), same[0])]
        titles[training] = title + how(probe)
        titles[Training(model, "", probe)] = (title if count[model] == 1 else names[model]) + how(probe)
    return titles


def how(probe: str) -> str:
    """Describe how a model was probed, unless it was the usual way."""
    return "" if probe == "linear" else f", {probe}"


def read_path(path: Path) -> list[ResultTables]:
    """Read a file, or the files of a folder; results in a model's folder that have its name belong to that model."""
    if not path.is_dir():
        return [read_file(path)]
    parts = [read_file(file) for file in sorted(path.iterdir()) if file.suffix[1:] in KINDS]
    if path.name != startup.PROBES_FOLDER:
        return parts
    own = path.parent  # the app knows models by their paths

    def named(model: str) -> str:
        return str(own) if startup.short_name(model) == own.name else model

    def rows(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(model=table["model"].map(named))

    return [part.changed(rows, lambda key: key._replace(model=named(key.model))) for part in parts]


def read_file(file: Path) -> ResultTables:
    """Read a file, and read it again after it has changed."""
    try:
        return _read_file(file, file.stat().st_mtime_ns)
    except OSError as error:
        raise NotFound(f"{file}: can't be read ({error.strerror}).") from None


@st.cache_resource(max_entries=32, show_spinner="Reading results")
def _read_file(file: Path, written: int) -> ResultTables:
    return read(str(file), file.read_bytes())


def all_results() -> ResultTables:
    """The results in the files given at the start, in uploaded files, and of probes run in this session."""
    session = [*st.session_state.get("uploaded", []), *st.session_state.get("probed", [])]
    return gathered(startup.read().results, session)
