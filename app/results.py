"""Results of probes: the files of `bgt-probe --json` and `--csv`, and probes trained while somebody waits.

All that knows the form of these files is here.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from app import options
from app.options import Corpus
from app.spaces import sentences
from app.state import Loaded, Shared
from bgt_core import BadInput, info
from bgt_core.evaluation.distance import FSI_WEEKS, PAPER_ORDER, Trend, trend
from bgt_core.tables import Table
from probes.run import run_probe
from probes.tasks import TASKS

SCHEMA = "bgt-probe/1"
LATENTS = ("semantic", "language")
SCORES = "model lang task latent accuracy ci_low ci_high n_train n_test classes sd note".split()
MORE = ["selectivity", "compression", "information"]  # only where it was asked for
GAPS = ["model", "lang", "task", "first", "second", "points", "ci_low", "ci_high", "mcnemar_p"]
COMMAND = "bgt-probe --lang {lang} --model {model} --json > {lang}.json"
DISTANCES = {"weeks": (FSI_WEEKS, "Weeks until English speakers speak it (Foreign Service Institute)"),
             "paper": (PAPER_ORDER, "The paper's order: close, more distant, very distant")}  # fmt: skip


@dataclass(frozen=True)
class Results:
    """Accuracies and the differences of two latents, a row each; models are never mixed."""

    scores: pd.DataFrame  # columns SCORES; fractions
    gaps: pd.DataFrame  # columns GAPS; points


def read(name: str, content: bytes) -> Results:
    """A file of `bgt-probe`. BadInput for any other.

    A CSV names no model and no differences: it is called by its own name, and has no gaps.
    """
    if name.endswith(".csv"):
        return read_csv(name, content)
    try:
        document = json.loads(content)
        schema = document["schema"]
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError):
        raise BadInput(f"{name}: no JSON document of bgt-probe; make one with: bgt-probe --json > FILE") from None
    if schema != SCHEMA:
        raise BadInput(f"{name}: its schema is {schema}, this version reads {SCHEMA}; run bgt-probe again.")
    try:
        return of_document(document)
    except (KeyError, TypeError) as error:
        raise BadInput(f"{name}: not whole: {error} is missing or of a wrong kind; run bgt-probe again.") from None


def of_document(document: Mapping[str, Any]) -> Results:
    model = document["model"]
    found = document["results"]
    rows = [{"model": model, **row} for result in found for row in result["rows"]]
    gaps = [{"model": model, **result["difference"]} for result in found if result["difference"]]
    return Results(framed(rows, SCORES, MORE), framed(gaps, GAPS))


def read_csv(name: str, content: bytes) -> Results:
    try:
        table = pd.read_csv(io.BytesIO(content), keep_default_na=False).assign(model=Path(name).stem)
        for column in MORE:
            table[column] = pd.to_numeric(table.get(column))
        return Results(table[[*SCORES, *MORE]], framed([], GAPS))
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError, KeyError, TypeError, ValueError):
        raise BadInput(f"{name}: no table of bgt-probe; make one with: bgt-probe --csv FILE") from None


def framed(rows: list[dict[str, Any]], columns: list[str], more: Sequence[str] = ()) -> pd.DataFrame:
    """A table of these columns, KeyError for a row that lacks one, and of `more`, empty where a row lacks one."""
    kept = [[row[column] for column in columns] + [row.get(column) for column in more] for row in rows]
    table = pd.DataFrame(kept, columns=[*columns, *more])
    return table.astype(dict.fromkeys(more, float))


def gathered(paths: Iterable[Path], more: Iterable[Results]) -> Results:
    """All of these files, those of folders included, and what came besides; a later row replaces an equal one."""
    found = [*(read(str(file), content) for file, content in map(opened, files(paths))), *more]
    titles = named([model for part in found for model in (*part.scores["model"], *part.gaps["model"])])
    found = [
        Results(*(table.assign(model=table["model"].map(titles)) for table in vars(part).values())) for part in found
    ]
    scores = pd.concat([framed([], SCORES, MORE), *(part.scores for part in found if len(part.scores))])
    gaps = pd.concat([framed([], GAPS), *(part.gaps for part in found if len(part.gaps))])
    keys = ["model", "lang", "task"]
    return Results(
        scores.drop_duplicates([*keys, "latent"], keep="last").reset_index(drop=True),
        gaps.drop_duplicates(keys, keep="last").reset_index(drop=True),
    )


def named(models: Iterable[str]) -> dict[str, str]:
    """What to call the models of results: by the app's own name, or the last part of a path where no other ends so."""
    known = {path: name for name, path in options.read().models.items()}
    short = options.named([model for model in dict.fromkeys(models) if model not in known])
    return {path: name for name, path in short.items()} | known | {name: name for name in known.values()}


def files(paths: Iterable[Path]) -> list[Path]:
    return [
        file
        for path in paths
        for file in (sorted(p for p in path.iterdir() if p.suffix in (".json", ".csv")) if path.is_dir() else [path])
    ]


def opened(file: Path) -> tuple[Path, bytes]:
    try:
        return file, file.read_bytes()
    except OSError as error:
        raise BadInput(f"--results {file}: can't be read ({error.strerror}).", 3) from None


def tasks(lang: str) -> list[str]:
    """The tasks that are defined in a language and need nothing but its sentences."""
    return [task.name for task in TASKS.values() if "text" in task.builds and lang in (task.langs or (lang,))]


def compute(
    loaded: Loaded,
    task: str,
    lang: str,
    corpus: Corpus | None,
    items: int,
    seeds: int,
    report: Callable[[str], None],
) -> dict[str, Any]:
    """A small probe as a document of `bgt-probe --json`; on the built-in sentences where no corpus is given.

    `report` is told each step; what it raises ends the work.
    """
    texts = None
    if corpus and corpus.file:
        table = sentences(corpus, items)
        texts = table.loc[table["lang"] == lang, "text"].tolist()
    found = run_probe(Shared(loaded), task, lang, texts, max_items=items, seeds=seeds, report=report)
    data = str(corpus.file) if corpus and corpus.file else "built-in grammar"
    return {"schema": SCHEMA, "model": loaded.title, "data": data, "results": [found.as_dict()]}


def other_language(model: str, lang: str) -> str:
    """The language of a gap: the probed one, or for English the other one of its model, where we know that model."""
    models = options.read().models
    path = models.get(model)
    if lang != "en" or path is None:
        return lang
    langs = info(Path(path))["arguments"].get("langs", []) if Path(path).is_dir() else []
    others = [other for other in langs if other != "en"]
    return others[0] if len(others) == 1 else lang


def placed(gaps: pd.DataFrame) -> pd.DataFrame:
    """The gaps of semantic minus language, with the column `other`: the language each model sets beside English."""
    wanted = gaps[(gaps["first"] == LATENTS[0]) & (gaps["second"] == LATENTS[1])]
    others = [other_language(row.model, row.lang) for row in wanted.itertuples()]
    return wanted.assign(other=others)


def trends(gaps: pd.DataFrame, by: str) -> dict[str, Trend]:
    """How the gap of each task goes with distance to English, for tasks with three languages and more."""
    weeks, _ = DISTANCES[by]
    found = {}
    for task, part in gaps[gaps["other"].isin(weeks)].groupby("task", sort=False):
        mean = part.groupby("other")["points"].mean().to_dict()
        if len(mean) >= 3 and len(set(mean.values())) > 1 and len({weeks[lang] for lang in mean}) > 1:
            found[task] = trend(mean, weeks)
    return found


def percentages(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores as they are read: percent, one row a latent or baseline."""
    more = [name for name in MORE if scores[name].notna().any()]
    shown = scores[
        ["model", "lang", "task", "latent", "accuracy", "ci_low", "ci_high", *more, "n_test", "classes", "note"]
    ]
    return shown.assign(**{name: 100 * shown[name] for name in ("accuracy", "ci_low", "ci_high")})


def printable(table: pd.DataFrame) -> Table:
    """For `bgt_core.tables`."""
    return Table(list(table.columns), [[plain(value) for value in row] for row in table.itertuples(index=False)])


def plain(value: object) -> str | int | float | None:
    value = value.item() if hasattr(value, "item") else value
    return None if value != value else value
