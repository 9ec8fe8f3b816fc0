"""Results of probes: what `bgt-probe` writes with --json, --csv and --predictions, gathered without mixing models.

All that knows the form of these files is here.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import streamlit as st
from pyarrow import compute, parquet

from app import options
from bgt_core.errors import DataError, NotFound
from probes.result import SCHEMA
from probes.results.store import SCHEMA as STORED
from probes.results.store import Cell, all_predictions

KINDS = ("json", "csv", "parquet")
PLACE = ["model", "fingerprint", "lang", "task", "probe"]  # of one result; `probe` is how the latents were probed
SCORES = [*PLACE, *"latent accuracy ci_low ci_high n_train n_test classes sd note".split()]
MORE = ["selectivity", "capacity", "compression", "information"]  # only where it was asked for
GAPS = [*PLACE, *"langs first second points ci_low ci_high p".split()]  # langs: of the model, "en fr"
CURVE = [*PLACE, *"latent family n_train accuracy ci_low ci_high".split()]
OF = ("model", "task", "lang", "probe")  # what predictions say of themselves: of which training, they do not
COMMAND = "bgt-probe --lang {lang} --model {model} --json > {lang}.json"


@dataclass(frozen=True)
class Results:
    """Accuracies, differences of two latents, learning curves, and what was predicted of each item; models are never
    mixed, nor are trainings of one name."""

    scores: pd.DataFrame = field(default_factory=lambda: framed([], [*SCORES, *MORE]))  # fractions
    gaps: pd.DataFrame = field(default_factory=lambda: framed([], [*GAPS, "adjusted_p"]))  # points
    curve: pd.DataFrame = field(default_factory=lambda: framed([], CURVE))
    items: Mapping[tuple[str, ...], pa.Table] = field(
        default_factory=dict
    )  # by `OF`; rows as `probes.results.store` has them


def read(name: str, content: bytes) -> Results:
    """A file of `bgt-probe`. BgtError for any other."""
    if name.endswith(".csv"):
        return read_csv(name, content)
    if name.endswith(".parquet"):
        return read_items(name, content)
    try:
        document = json.loads(content)
        schema = document["schema"]
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError):
        raise DataError(f"{name}: no JSON document of bgt-probe; make one with: bgt-probe --json > FILE") from None
    if schema != SCHEMA:
        raise DataError(f"{name}: its schema is {schema}, this version reads {SCHEMA}; run bgt-probe again.")
    try:
        return of_results(document["results"])
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(f"{name}: not whole: {error} is missing or of a wrong kind; run bgt-probe again.") from None


def of_results(found: Sequence[Mapping[str, Any]]) -> Results:
    """The `results` of a document."""
    scores, gaps, curve = [], [], []
    for result in found:
        trail = result["trail"]
        place = {"model": result["model"], "fingerprint": weights(trail["fingerprint"]), "probe": trail["probe"]}
        scores += [{**row, **place} for row in result["rows"]]
        langs = " ".join(trail["langs"])
        gaps += [{**result["difference"], "langs": langs, **place}] if result["difference"] else []
        of = {"lang": result["lang"], "task": result["task"], **place}
        curve += [{**point, "family": point["probe"], **of} for point in result["curve"]]
    return Results(framed(scores, SCORES, MORE), framed(gaps, GAPS, ["adjusted_p"]), framed(curve, CURVE))


def of_cell(cell: Cell) -> Results:
    """A result that was measured here, its predictions among it."""
    found = of_results([{"model": cell.model, **cell.result.as_dict(), "trail": cell.trail}])
    return Results(found.scores, found.gaps, found.curve, by_place(all_predictions([cell])))


def weights(fingerprint: str) -> str:
    """The hash of a model's weights; the precision and the device do not make it another model."""
    return fingerprint.partition(" ")[0]


def read_csv(name: str, content: bytes) -> Results:
    """Accuracies alone: a CSV has no differences."""
    try:
        table = pd.read_csv(io.BytesIO(content), keep_default_na=False)
        for column in MORE:
            table[column] = pd.to_numeric(table[column])
        # baselines have probes of their own, and stand below the latents they belong to
        probe = table["probe"].where(table["probe"] != table["latent"]).ffill().fillna("linear")
        return Results(table.assign(fingerprint=table["fingerprint"].map(weights), probe=probe)[[*SCORES, *MORE]])
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError, KeyError, TypeError, ValueError):
        raise DataError(f"{name}: no table of bgt-probe; make one with: bgt-probe --csv FILE") from None


def read_items(name: str, content: bytes) -> Results:
    """What was predicted of each item; which training it is of, the file does not say."""
    try:
        return Results(items=by_place(parquet.read_table(io.BytesIO(content)).select([*OF, *STORED.names])))
    except (pa.ArrowException, KeyError, ValueError):
        raise DataError(f"{name}: no predictions of bgt-probe; make them with: bgt-probe --predictions FILE") from None


def by_place(table: pa.Table) -> dict[tuple[str, ...], pa.Table]:
    """Predictions by what they are of."""
    found = {}
    for place in table.group_by(list(OF)).aggregate([]).select(list(OF)).to_pylist():
        rows = [compute.equal(table[name], value) for name, value in place.items()]
        found[tuple(place.values())] = table.filter(reduce(compute.and_, rows)).select(STORED.names)
    return found


def framed(rows: list[dict[str, Any]], columns: list[str], more: Sequence[str] = ()) -> pd.DataFrame:
    """A table of these columns, KeyError for a row that lacks one, and of `more`, empty where a row lacks one."""
    kept = [[row[column] for column in columns] + [row.get(column) for column in more] for row in rows]
    table = pd.DataFrame(kept, columns=[*columns, *more])
    return table.astype(dict.fromkeys(more, float))


def gathered(paths: Iterable[Path], more: Iterable[Results]) -> Results:
    """All of these files, those of folders included, and what came besides; a later row replaces an equal one.

    Models have the names that the app has for them; two trainings of one name are told apart by their hash, and a
    model probed otherwise than by a linear probe says how.
    """
    found = [*map(read_file, files(paths)), *more]
    scores, gaps, curve = (
        stacked([getattr(part, kind) for part in (Results(), *found)]) for kind in ("scores", "gaps", "curve")
    )
    items = {place: table for part in found for place, table in part.items.items()}
    titles = titled(pd.concat([scores[PLACE], gaps[PLACE]]), items)

    def called(table: pd.DataFrame, *keys: str) -> pd.DataFrame:
        names = [titles[row.model, row.fingerprint, row.probe] for row in table.itertuples()]
        own = ["model", "lang", "task", *keys]
        return table.assign(model=names).drop_duplicates(own, keep="last").reset_index(drop=True)

    items = {
        (titles[model, "", probe], task, lang, probe): table for (model, task, lang, probe), table in items.items()
    }
    return Results(called(scores, "latent"), called(gaps), called(curve, "latent", "family", "n_train"), items)


def stacked(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One below the other; those without rows do not decide the kinds of columns."""
    return pd.concat([table for table in tables if len(table)] or [tables[0]], ignore_index=True)


def titled(places: pd.DataFrame, items: Iterable[tuple[str, ...]]) -> dict[tuple[str, str, str], str]:
    """What to call each (model, fingerprint, probe); predictions know no weights, so theirs is ""."""
    rows = [*places[["model", "fingerprint", "probe"]].drop_duplicates().itertuples(index=False, name=None)]
    known = {path: name for name, path in options.read().models.items()}
    models = list(dict.fromkeys([*(model for model, *_ in rows), *(model for model, *_ in items)]))
    ours = known | {name: name for name in known.values()}
    short = options.named([model for model in models if model not in ours])
    names = {path: name for name, path in short.items()} | ours
    trainings = places.groupby("model")["fingerprint"].nunique()
    found = {}
    for model, fingerprint, probe in rows:
        if trainings[model] > 1:
            title = f"{names[model]} {fingerprint[:8]}"
        else:  # the same weights under two names are one model; the app's name is the one to use
            same = [other for other, of, _ in rows if of == fingerprint and trainings[other] == 1]
            title = names[next((other for other in same if other in ours), same[0])]
        found[model, fingerprint, probe] = title + how(probe)
        found[model, "", probe] = (title if trainings[model] == 1 else names[model]) + how(probe)
    return {(model, "", probe): names[model] + how(probe) for model, _, _, probe in items} | found


def how(probe: str) -> str:
    """How a model was probed, where that is not the usual way."""
    return "" if probe == "linear" else f", {probe}"


def files(paths: Iterable[Path]) -> list[Path]:
    """Those of folders that end as results do; others as they are."""
    return [
        file
        for path in paths
        for file in (sorted(p for p in path.iterdir() if p.suffix[1:] in KINDS) if path.is_dir() else [path])
    ]


def read_file(file: Path) -> Results:
    """What is in a file; read anew once it was written anew."""
    try:
        return _read_file(file, file.stat().st_mtime_ns)
    except OSError as error:
        raise NotFound(f"--results {file}: can't be read ({error.strerror}).") from None


@st.cache_resource(max_entries=32, show_spinner="Reading results")
def _read_file(file: Path, written: int) -> Results:
    return read(str(file), file.read_bytes())


def percentages(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores as they are read: percent, one row a latent or baseline."""
    more = [name for name in MORE if scores[name].notna().any()]
    shown = scores[
        ["model", "lang", "task", "latent", "accuracy", "ci_low", "ci_high", *more, "n_test", "classes", "note"]
    ]
    shares = [name for name in ("accuracy", "ci_low", "ci_high", "capacity") if name in shown]
    return shown.assign(**{name: 100 * shown[name] for name in shares})
