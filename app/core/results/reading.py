"""Stored results for readers: the latents that show a property, by the app's one rule; the latent that predicts it
better; tables with one row per result, or per latent or baseline."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from app.core import startup
from app.core.results import gather, task_names
from app.core.results.gather import CELL, OPTIONAL
from app.core.rows import language_name
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from bgt_core.data.columns import split_langs
from probes.result import MAJORITY, is_baseline

LATENTS = (SEMANTIC, LANGUAGE, SYNTACTIC)
SEPARABLE = 0.05  # Holm-adjusted p-value below which one latent is said to predict a property better than the other
RULE = (
    "A latent **shows** a property if the 95% interval of its probe's accuracy is above the accuracy of always giving "
    "the most frequent answer. A latent that does not may still hold the property: a linear probe can miss it."
)


def shown(scores: pd.DataFrame) -> pd.Series:
    """Return the latents that show the property by `RULE`, as in "semantic, language", by `CELL` and mark."""
    keys = [*CELL, "mark"]
    majority = scores[scores["latent"] == MAJORITY].set_index(keys)["accuracy"].groupby(level=keys).first()
    latents = scores[scores["latent"].isin(LATENTS)].join(majority.rename("majority"), on=keys)
    named = [row.latent if row.ci_low > row.majority else "" for row in latents.itertuples()]
    by_result = latents.assign(named=named).groupby(keys)["named"]
    return by_result.agg(lambda names: ", ".join(filter(None, names)))


def leads(model: Path, second_latent: str) -> dict[str, list[str]]:
    """Return, for each latent, the tasks that it shows and on which it leads in most languages, the largest lead first.
    They come from the probes stored in the model's folder; empty if it has none."""
    folder = model / startup.PROBES_FOLDER
    if not folder.is_dir():
        return {}
    stored = gather.gathered([folder])
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


def accuracies(model: Path, latents: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Return each task's accuracy from each of these latents, averaged over languages, from the probes stored in a
    model's folder. Tasks that were not measured on all of them are left out."""
    scores = gather.gathered([model / startup.PROBES_FOLDER]).scores
    means = scores.pivot_table("accuracy", "task", "latent").reindex(columns=list(latents)).dropna()
    return {str(task): tuple(row) for task, *row in means.itertuples()}


def nats(log: Sequence[Mapping[str, Any]], langs: Sequence[str]) -> tuple[float, float]:
    """Return the information about a sentence in the language latent, and in both latents, in nats: the mean KL on
    held-out pairs, over the model's languages; NaN without a training log."""
    held_out: Mapping[str, Any] = next((row for row in reversed(log) if row.get("kind") == "valid"), {})
    every = f"kl/{SEMANTIC}"  # for models of many languages, the report has one value per language
    own = float(np.mean([held_out.get(f"kl/{lang}", np.nan) for lang in langs]))
    shared = float(np.mean([held_out.get(f"{every}/{lang}", held_out.get(every, np.nan)) for lang in langs]))
    return own, own + shared


def named(tasks: list[str], notes: Mapping[str, str], most: int = 3) -> str:
    """List the titles of tasks, each with its note if it has one, as in "length, tense (90 %) and 2 more"."""
    titles = [f"{task_names.title(task).lower()}{notes.get(task, '')}" for task in tasks[:most]]
    parts = [*titles, *([f"{len(tasks) - most} more"] if len(tasks) > most else [])]
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def language_names(lang: str) -> str:
    """Name the languages of a result: "en-fr" -> "English and French"."""
    return " and ".join(map(language_name, split_langs(lang)))


def p_value(p: float) -> str:
    return "" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def provenance(results: pd.DataFrame) -> str:
    """Describe the source of results for a caption: models with the start of their hash, data, sentences and seeds."""
    trainings = dict.fromkeys(results[["model", "fingerprint"]].itertuples(index=False, name=None))
    models = [f"{model} (fingerprint {name[:8]})" for model, name in trainings]
    if len(models) > 1:  # the numbers are those in the figures
        models = [f"{number} {model}" for number, model in enumerate(models, 1)]
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
    """Return one row per result, in the order of `scores`: each latent's accuracy in percent, the difference of the two
    in points with its interval and p-value, and the best baseline; then the model and data."""
    keys = [*CELL, "mark"]
    results = scores.drop_duplicates(keys)[[*keys, "run", "data"]]
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
    table["task"] = [task_names.title(task) for task in table["task"]]
    table["lang"] = table["lang"].map(language_names)
    first, last = "points ci_low ci_high p paper_gap shown best which".split(), "model run data mark".split()
    order = ["task", "lang", *latents, *first, *last]
    return table[[name for name in order if name in table and (name != "p" or len(gaps))]]


def percentages(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores for readers: in percent, one row per latent or baseline."""
    optional = [name for name in OPTIONAL if scores[name].notna().any()]
    first, last = "task latent accuracy ci_low ci_high".split(), "lang model classes run note mark".split()
    fractions = ["accuracy", "ci_low", "ci_high"]
    return scores[[*first, *optional, *last]].assign(**{name: 100 * scores[name] for name in fractions})
