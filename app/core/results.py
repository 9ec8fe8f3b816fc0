"""Results of probes: the tasks' titles and groups; reading results from files and from this session; result tables."""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from app.core import inventory
from app.core.rows import STYLES, language_name
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from bgt_core.data.columns import split_langs
from bgt_core.errors import NotFound
from probes.results.store import MAJORITY, Cell, is_baseline, read_cells
from probes.task import needs
from probes.tasks import GROUPS, TASKS

# Groups of probing tasks: the semantic latent should predict the first better, the language latent the second.
MEANING, ADDED = "Meaning", "What a language adds"
TASK_GROUPS = {
    ADDED: GROUPS["style"],
    MEANING: GROUPS["semantic"],
    "Form": GROUPS["syntax"],
    "Surface": GROUPS["surface"],
}
OTHER_TASKS = "Other tasks"
TASK_TITLES = tomllib.loads(Path(__file__).with_name("tasks.toml").read_text("utf-8")) | STYLES


def task_title(task: str) -> str:
    """Return the title of a probing task. The title of a user-defined task is its name."""
    return TASK_TITLES.get(task, task)


def task_group(task: str) -> str:
    return next((name for name, tasks in TASK_GROUPS.items() if task in tasks), OTHER_TASKS)


def why_not_run(name: str, lang: str) -> str:
    """Explain why the app can't label sentences in this language for a probing task; return "" if it can."""
    task = TASKS[name]
    if "texts" in task.builds:
        return "It can't be run here, as it needs sentences in two languages: use `bgt-probe --lang en-fr`."
    if lang not in (task.langs or (lang,)):
        return f"It does not exist in {language_name(lang)}, only in {', '.join(map(language_name, task.langs))}."
    if "text" not in task.builds:
        return f"It can't be labelled from sentences alone: use `bgt-probe --data` with {needs(task, lang)}."
    return ""


def tasks_in_order(tasks: Sequence[str]) -> list[str]:
    """Sort probing tasks by their group, in the order of `TASK_GROUPS`."""
    known = [task for members in TASK_GROUPS.values() for task in members]
    return sorted(tasks, key=lambda task: known.index(task) if task in known else len(known))


# Columns that identify a result. `probe` is the kind of classifier, `run` has the numbers of sentences and seeds,
# `items` hashes the labelled sentences, `live` is true if the user ran the probe in the app, `data` names the source of
# the sentences. `mark` is a text that tells results of one model, language and task apart.
SOURCE = ["model", "fingerprint", "lang", "task", "probe", "items", "run", "seed", "live", "data", "mark"]
CELL = ["model", "lang", "task"]
SCORES = [*SOURCE, *"latent accuracy ci_low ci_high n_train n_test classes sd note".split()]
OPTIONAL = ["selectivity", "information"]  # measures that are NaN unless the probe was run with them
GAPS = [*SOURCE, *"langs first second points ci_low ci_high p adjusted_p n_test".split()]  # langs: as in "en fr"
FLOATS = [*"accuracy ci_low ci_high sd points p adjusted_p".split(), *OPTIONAL]


class Key(NamedTuple):
    """The columns that identify a result whose predictions are stored."""

    model: str
    task: str
    lang: str
    mark: str
    live: bool  # whether a user ran the probe in the app


@dataclass(frozen=True, eq=False)
class ResultTables:
    """Results of probes as tables. Models with the same name but different weights stay separate."""

    scores: pd.DataFrame  # accuracies as fractions
    gaps: pd.DataFrame  # differences in percentage points
    items: Mapping[Key, Cell]  # the results whose predictions are stored


def gathered(paths: Iterable[Path], uploaded: Iterable[Cell] = (), probed: Iterable[Cell] = ()) -> ResultTables:
    """Gather results of files and folders, uploads, and this session's probes, each once. Models have the same names as
    in the app. A hash is added if different weights share a name; the kind of classifier unless it is linear."""
    stored = [*(cell for path in paths for cell in read_path(path)), *uploaded]
    every = [*((cell, False) for cell in stored), *((cell, True) for cell in probed)]
    titles = model_titles([cell for cell, _ in every])

    def identity(cell: Cell, live: bool) -> tuple[Any, ...]:
        """Return a key that equal results share. It ignores the model's name and the notes."""
        numbers = tuple(replace(row, note="") for row in cell.result.rows)
        return live, weights(cell), cell.trail["probe"], cell.trail.get("items_sha256"), cell.result.seed, numbers

    distinct = {identity(cell, live): (cell, live) for cell, live in reversed(every)}
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
    """Return the values of the columns `SOURCE` for a result. `live` is whether the user ran the probe in the app."""
    result, trail = cell.result, cell.trail
    first, seeds = result.rows[0], f"{result.seeds} {'seed' if result.seeds == 1 else 'seeds'}"
    run = f"{first.n_train:,} + {first.n_test:,} sentences, {seeds}"
    data = inventory.public(", ".join(trail.get("card", {}).get("sources", [])) or trail["data"])
    probe = "" if trail["probe"] == "linear" else f", {trail['probe']}"  # linear probes are the default
    return {
        "model": titles[cell.model, weights(cell)] + probe,
        "fingerprint": weights(cell),
        "lang": result.lang,
        "task": result.task,
        "probe": trail["probe"],
        "items": trail.get("items_sha256", "")[:12] or inventory.public(trail["data"]),
        "run": run,
        "seed": result.seed,
        "live": live,
        "data": data,
        "mark": f"run here: {run}, {data}" if live else "",
    }


def weights(cell: Cell) -> str:
    """Return the hash of the model's weights: its fingerprint without the precision and device that follow."""
    return cell.trail["fingerprint"].partition(" ")[0]


def mark(sources: Sequence[dict[str, Any]]) -> None:
    """If a model, language and task have several results from files, set their `mark` to their run and data."""
    runs = defaultdict(set)
    for source in sources:
        runs[tuple(source[name] for name in CELL)].add((source["items"], source["run"], source["seed"]))
    again: Counter[tuple[str, ...]] = Counter()
    for source in sources:
        cell = tuple(source[name] for name in CELL)
        if len(runs[cell]) > 1 and not source["live"]:
            source["mark"] = f"{source['run']}, {source['data']}"
        again[*cell, source["mark"]] += 1
        if (count := again[*cell, source["mark"]]) > 1:  # same run and data, but another device or version
            source["mark"] += f" ({count})"


def model_titles(cells: Sequence[Cell]) -> dict[tuple[str, str], str]:
    """Return the title of each model, by its name and the hash of its weights."""
    trainings = list(dict.fromkeys((cell.model, weights(cell)) for cell in cells))
    names = {known: name for name, path in inventory.read().models.items() for known in (path, name)}
    in_app = set(names)
    others = dict.fromkeys(model for model, _ in trainings if model not in in_app)
    names |= {path: name for name, path in inventory.short_names(list(others), in_app).items()}
    count = Counter(model for model, _ in trainings)
    titles = {}
    for model, fingerprint in trainings:
        if count[model] > 1:
            titles[model, fingerprint] = f"{names[model]} {fingerprint[:8]}"
        else:  # models with equal weights are one model; its name in the app is preferred
            same = [other for other, its in trainings if its == fingerprint and count[other] == 1]
            titles[model, fingerprint] = names[next((other for other in same if other in in_app), same[0])]
    return titles


def framed(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    """Make a table of these columns from rows, with NaN instead of None."""
    return pd.DataFrame(rows, columns=columns).astype({name: float for name in FLOATS if name in columns})


def read_path(path: Path) -> list[Cell]:
    """Read results from a file, or from all files of a folder. Results inside a model's folder belong to that model."""
    if not path.is_dir():
        return read_file(path)
    cells = [cell for file in sorted(path.glob("*.parquet")) for cell in read_file(file)]
    if path.name != inventory.PROBES_FOLDER:
        return cells
    own = path.parent  # files may name the model by another path
    return [replace(cell, model=str(own)) if inventory.short_name(cell.model) == own.name else cell for cell in cells]


def read_file(file: Path) -> list[Cell]:
    """Read results from a file. They are cached until the file changes."""
    try:
        return _read_file(file, file.stat().st_mtime_ns)
    except OSError as error:
        raise NotFound(f"{file}: can't be read ({error.strerror}).") from None


@st.cache_resource(max_entries=32, show_spinner="Reading results")
def _read_file(file: Path, written: int) -> list[Cell]:
    return read_cells(file)


def other_sentences(results: pd.DataFrame) -> pd.Series:
    """Return, for each row, whether its task and language has results of models on different sentences."""
    groups = results.assign(of=results["items"] + results["run"]).groupby(["live", "task", "lang"])
    return (groups["of"].transform("nunique") > 1) & (groups["model"].transform("nunique") > 1)


LATENTS = (SEMANTIC, LANGUAGE, SYNTACTIC)
BEST = "best baseline"
SEPARABLE = 0.05  # one latent predicts a property better than another if the Holm-adjusted p-value is below this


def shown(scores: pd.DataFrame) -> pd.Series:
    """Return, for each result, the latents that show the property, as in "semantic, language": the lower end of their
    accuracy's interval exceeds the accuracy of always predicting the most frequent label."""
    keys = [*CELL, "mark"]
    majority = scores[scores["latent"] == MAJORITY].set_index(keys)["accuracy"].groupby(level=keys).first()
    latents = scores[scores["latent"].isin(LATENTS)].join(majority.rename("majority"), on=keys)
    named = [row.latent if row.ci_low > row.majority else "" for row in latents.itertuples()]
    by_result = latents.assign(named=named).groupby(keys)["named"]
    return by_result.agg(lambda names: ", ".join(filter(None, names)))


def leads(model: Path, second_latent: str) -> dict[str, list[str]]:
    """Return, for each latent, the tasks whose property it shows (see `shown`) and predicts better than the other
    latent in most languages, those with the largest difference first. Empty if the model's folder has no results."""
    folder = model / inventory.PROBES_FOLDER
    if not folder.is_dir():
        return {}
    stored = gathered([folder])
    gaps = stored.gaps.join(shown(stored.scores).rename("shown"), on=[*CELL, "mark"])
    gaps = gaps[gaps["lang"].map(lambda lang: len(split_langs(lang)) == 1).astype(bool)]
    found = {}
    for latent, sign in ((SEMANTIC, 1), (second_latent, -1)):
        has = np.array([latent in names.split(", ") for names in gaps["shown"]], bool)
        leading = (sign * gaps["points"] > 0) & (gaps["adjusted_p"] < SEPARABLE) & has
        share = leading.groupby(gaps["task"], sort=False).mean()
        lead = (sign * gaps["points"]).groupby(gaps["task"], sort=False).mean()
        found[latent] = lead[share > 0.5].sort_values(ascending=False).index.tolist()
    return found


@st.cache_data(max_entries=32, show_spinner=False)
def accuracies(model: Path, lang: str = "") -> pd.DataFrame:
    """Return the accuracies of linear probes of each latent and baseline, and of the best baseline (`BEST`): one row
    per task, in one language or averaged over all. Empty if the model's folder has no results."""
    folder = model / inventory.PROBES_FOLDER
    scores = gathered([folder] if folder.is_dir() else []).scores
    scores = scores[(scores["probe"] == "linear") & scores["lang"].isin([lang] if lang else scores["lang"])]
    wide = scores.pivot_table("accuracy", ["task", "lang"], "latent")
    wide[BEST] = wide[[name for name in wide if is_baseline(name, LATENTS)]].max(axis=1)
    return wide.groupby("task").mean()


def nats(log: Sequence[Mapping[str, Any]], langs: Sequence[str]) -> tuple[float, float]:
    """Return the information about a sentence in the language latent, and in both latents together, in nats: the KLs on
    held-out pairs, averaged over the model's languages. Both numbers are NaN without a training log."""
    held_out: Mapping[str, Any] = next((row for row in reversed(log) if row.get("kind") == "valid"), {})
    every = f"kl/{SEMANTIC}"  # the log has this KL for all languages together, or one per language
    own = float(np.mean([held_out.get(f"kl/{lang}", np.nan) for lang in langs]))
    shared = float(np.mean([held_out.get(f"{every}/{lang}", held_out.get(every, np.nan)) for lang in langs]))
    return own, own + shared


def language_names(lang: str) -> str:
    """Return the names of a result's languages: "en-fr" -> "English and French"."""
    return " and ".join(map(language_name, split_langs(lang)))


def p_value(p: float) -> str:
    return "" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def provenance(results: pd.DataFrame) -> str:
    """Describe the source of results in a caption: models, data, numbers of sentences and seeds."""
    trainings = results[["model", "fingerprint"]].drop_duplicates().itertuples(index=False)
    models = [f"{model} (weights {name[:8]})" for model, name in trainings]
    data = dict.fromkeys(source for sources in results["data"] for source in sources.split(", "))
    counts = [map(int, re.findall(r"\d+", run.replace(",", ""))) for run in results["run"].unique()]
    trained, tested, seeds = (
        f"{min(n):,}" if min(n) == max(n) else f"{min(n):,} to {max(n):,}" for n in zip(*counts, strict=True)
    )
    return (
        f"{', '.join(models)}. Trained on {trained} and tested on {tested} sentences each, with {seeds} "
        f"{'seed' if seeds == '1' else 'seeds'}, of: {', '.join(data)}."
    )


def by_result(scores: pd.DataFrame, gaps: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model, language, task and `mark` of `scores`: accuracies, best baseline, latents' difference."""
    keys = [*CELL, "mark"]
    results = scores.drop_duplicates(keys)[[*keys, "run", "data", "items", "live"]]
    results.loc[other_sentences(results), "run"] += ", unlike the other model's"
    accuracies = (100 * scores.set_index([*keys, "latent"])["accuracy"]).groupby(level=[*keys, "latent"]).first()
    wide = accuracies.unstack("latent")
    latents = [name for name in LATENTS if name in wide]
    baselines = wide.drop(columns=[name for name in wide if not is_baseline(name, latents)])
    best = pd.DataFrame({"best": baselines.max(axis=1)})
    if len(baselines.columns):
        best["which"] = baselines.fillna(-1).idxmax(axis=1)
    best = best.join(shown(scores).rename("shown"))
    table = results.merge(wide[latents].join(best).reset_index(), "left", keys)
    beside = ["paper_gap"] if gaps.get("paper_gap", pd.Series(dtype=float)).notna().any() else []
    differences = gaps.assign(p=[p_value(p) for p in gaps["p"]])[[*keys, "points", "ci_low", "ci_high", "p", *beside]]
    table = table.merge(differences, "left", keys)
    table["task"] = [task_title(task) for task in table["task"]]
    table["lang"] = table["lang"].map(language_names)
    first, last = "points ci_low ci_high p paper_gap shown best which".split(), "model run data mark".split()
    order = ["task", "lang", *latents, *first, *last]
    return table[[name for name in order if name in table and (name != "p" or len(gaps))]]


def percentages(scores: pd.DataFrame) -> pd.DataFrame:
    """Return accuracies and intervals in percent, one row per latent or baseline."""
    optional = [name for name in OPTIONAL if scores[name].notna().any()]
    first, last = "task latent accuracy ci_low ci_high".split(), "lang model classes run note mark".split()
    fractions = ["accuracy", "ci_low", "ci_high"]
    return scores[[*first, *optional, *last]].assign(**{name: 100 * scores[name] for name in fractions})
