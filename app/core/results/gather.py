"""Gather probe results from the Parquet files of `bgt-probe` and from this session, without mixing models."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from app.core import startup
from bgt_core.errors import NotFound
from probes.results.store import Cell, read_cells

# Columns that identify a result. `probe` is the kind of probe, `run` has the numbers of sentences and of seeds, `items`
# identifies the labelled sentences, `live` is true if a user of the app ran it, `data` is the source of the items.
# `mark` distinguishes results of the same model, language and task.
SOURCE = ["model", "fingerprint", "lang", "task", "probe", "items", "run", "seed", "live", "data", "mark"]
CELL = ["model", "lang", "task"]
SCORES = [*SOURCE, *"latent accuracy ci_low ci_high n_train n_test classes sd note".split()]
OPTIONAL = ["selectivity", "information"]  # present only if requested
GAPS = [*SOURCE, *"langs first second points ci_low ci_high p adjusted_p n_test".split()]  # langs: as "en fr"
FLOATS = [*"accuracy ci_low ci_high sd points p adjusted_p".split(), *OPTIONAL]
COMMAND = "bgt-probe --lang {lang} --model {model} --out {lang}.parquet"


class Key(NamedTuple):
    """The key of the result to which predictions belong."""

    model: str
    task: str
    lang: str
    mark: str
    live: bool  # run by a user of the app


@dataclass(frozen=True, eq=False)
class ResultTables:
    """Accuracies, differences of two latents, and predictions; trainings with the same name stay separate."""

    scores: pd.DataFrame  # accuracies as fractions
    gaps: pd.DataFrame  # differences in percentage points
    items: Mapping[Key, Cell]  # the results with predictions


def gathered(paths: Iterable[Path], uploaded: Iterable[Cell] = (), probed: Iterable[Cell] = ()) -> ResultTables:
    """Gather the results in all files and folders, uploaded results, and those of probes run in this session.

    Equal results are included once; different ones are all kept. Models have the same names as in the app. If two
    trainings have the same name, a hash is added; if a probe is not linear, its kind is added.
    """
    stored = [*(cell for path in paths for cell in read_path(path)), *uploaded]
    every = [*((cell, False) for cell in stored), *((cell, True) for cell in probed)]
    titles = model_titles([cell for cell, _ in every])
    distinct = {identity(cell, live): (cell, live) for cell, live in reversed(every)}  # the first of equal results
    sources = [(cell, source_of(cell, live, titles)) for cell, live in reversed(distinct.values())]
    mark([source for _, source in sources])
    scores, gaps = [], []
    items: dict[Key, Cell] = {}
    for cell, source in sources:
        result = cell.result
        scores += [{**vars(row), **source} for row in result.rows]
        if result.difference:
            more = {"langs": " ".join(cell.trail["langs"]), "n_test": result.rows[0].n_test}
            gaps.append({**vars(result.difference), **more, **source})
        if len(cell.predictions):
            items[Key(*(source[name] for name in Key._fields))] = cell
    return ResultTables(framed(scores, [*SCORES, *OPTIONAL]), framed(gaps, GAPS), items)


def source_of(cell: Cell, live: bool, titles: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Return the values of `SOURCE`; `mark` is empty for a stored result."""
    result, trail = cell.result, cell.trail
    first, seeds = result.rows[0], f"{result.seeds} {'seed' if result.seeds == 1 else 'seeds'}"
    run = f"{first.n_train:,} + {first.n_test:,} sentences, {seeds}"
    data = startup.public(", ".join(trail.get("card", {}).get("sources", [])) or trail["data"])
    probe = "" if trail["probe"] == "linear" else f", {trail['probe']}"  # linear probes are the default
    return {
        "model": titles[cell.model, weights(cell)] + probe,
        "fingerprint": weights(cell),
        "lang": result.lang,
        "task": result.task,
        "probe": trail["probe"],
        "items": trail.get("items_sha256", "")[:12] or startup.public(trail["data"]),
        "run": run,
        "seed": result.seed,
        "live": live,
        "data": data,
        "mark": f"run here: {run}, {data}" if live else "",
    }


def weights(cell: Cell) -> str:
    """Return the hash of a model's weights, which does not depend on the precision or device."""
    return cell.trail["fingerprint"].partition(" ")[0]


def identity(cell: Cell, live: bool) -> tuple[Any, ...]:
    """Return a key that is equal for the same result in two files, even if the model's name or other rows differ."""
    result = cell.result
    numbers = tuple(replace(row, note="") for row in result.rows)
    return live, weights(cell), cell.trail["probe"], cell.trail.get("items_sha256"), result.seed, numbers


def mark(sources: Sequence[dict[str, Any]]) -> None:
    """Mark stored results by their data if the same model, language and task has several."""
    runs = defaultdict(set)
    for source in sources:
        runs[tuple(source[name] for name in CELL)].add((source["items"], source["run"], source["seed"]))
    again: Counter[tuple[str, ...]] = Counter()
    for source in sources:
        cell = tuple(source[name] for name in CELL)
        if len(runs[cell]) > 1 and not source["live"]:
            source["mark"] = f"{source['run']}, {source['data']}"
        again[*cell, source["mark"]] += 1
        if (count := again[*cell, source["mark"]]) > 1:  # the same result from another device or version
            source["mark"] += f" ({count})"


def model_titles(cells: Sequence[Cell]) -> dict[tuple[str, str], str]:
    """Return a title for each training, (model, weights)."""
    trainings = list(dict.fromkeys((cell.model, weights(cell)) for cell in cells))
    names = {known: name for name, path in startup.read().models.items() for known in (path, name)}
    in_app = set(names)
    others = dict.fromkeys(model for model, _ in trainings if model not in in_app)
    names |= {path: name for name, path in startup.short_names(list(others), in_app).items()}
    count = Counter(model for model, _ in trainings)
    titles = {}
    for model, fingerprint in trainings:
        if count[model] > 1:
            titles[model, fingerprint] = f"{names[model]} {fingerprint[:8]}"
        else:  # the same weights under two names are one model; prefer the app's name
            same = [other for other, its in trainings if its == fingerprint and count[other] == 1]
            titles[model, fingerprint] = names[next((other for other in same if other in in_app), same[0])]
    return titles


def framed(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    """Make a table with these columns; None becomes NaN."""
    return pd.DataFrame(rows, columns=columns).astype({name: float for name in FLOATS if name in columns})


def read_path(path: Path) -> list[Cell]:
    """Read a file, or all files of a folder. Results in a model's folder with its name are assigned to that model."""
    if not path.is_dir():
        return read_file(path)
    cells = [cell for file in sorted(path.glob("*.parquet")) for cell in read_file(file)]
    if path.name != startup.PROBES_FOLDER:
        return cells
    own = path.parent  # the app identifies models by their paths
    return [replace(cell, model=str(own)) if startup.short_name(cell.model) == own.name else cell for cell in cells]


def read_file(file: Path) -> list[Cell]:
    """Read a file; it is read again only after a change."""
    try:
        return _read_file(file, file.stat().st_mtime_ns)
    except OSError as error:
        raise NotFound(f"{file}: can't be read ({error.strerror}).") from None


@st.cache_resource(max_entries=32, show_spinner="Reading results")
def _read_file(file: Path, written: int) -> list[Cell]:
    return read_cells(file)


def all_results() -> ResultTables:
    """Return the results from the files given at the start, from uploaded files, and from this session's probes."""
    uploaded = [cell for cells in st.session_state.get("uploaded", []) for cell in cells]
    return gathered(startup.read().results, uploaded, st.session_state.get("probed", []))
