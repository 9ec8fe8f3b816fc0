"""Results of probes as tables for readers: one row per result, or one row per latent or baseline."""

from __future__ import annotations

import re

import pandas as pd

from app.core.results import reading, task_names
from app.core.results.gather import CELL, OPTIONAL
from app.core.rows import language_name
from bgt_core.data.columns import split_langs
from probes.result import is_baseline


def language_names(lang: str) -> str:
    """Name the languages of a result: "en-fr" -> "English and French"."""
    return " and ".join(map(language_name, split_langs(lang)))


def p_value(p: float) -> str:
    return "" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def provenance(results: pd.DataFrame) -> str:
    """Describe the source of results for a caption: models with their hashes' start, data, sentences and seeds."""
    models = [f"{model} (fingerprint {name[:8]})" for model, name in pairs(results, "model", "fingerprint")]
    if len(models) > 1:  # numbered as in the figures
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


def pairs(results: pd.DataFrame, *columns: str) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(results[list(columns)].itertuples(index=False, name=None)))


def by_result(scores: pd.DataFrame, gaps: pd.DataFrame) -> pd.DataFrame:
    """A row per result, in the order of `scores`: each latent in percent, the difference of the two in points with its
    interval and p, the best baseline; then its model and data."""
    keys = [*CELL, "mark"]
    results = scores.drop_duplicates(keys)[[*keys, "run", "data"]]
    accuracies = (100 * scores.set_index([*keys, "latent"])["accuracy"]).groupby(level=[*keys, "latent"]).first()
    wide = accuracies.unstack("latent")
    latents = [name for name in reading.LATENTS if name in wide]
    baselines = wide.drop(columns=[name for name in wide if not is_baseline(name, latents)])
    best = pd.DataFrame({"best": baselines.max(axis=1)})
    if len(baselines.columns):
        best["which"] = baselines.fillna(-1).idxmax(axis=1)
    best = best.join(reading.shown(scores).rename("shown"))
    table = results.merge(wide[latents].join(best).reset_index(), "left", keys)
    differences = gaps.assign(p=[p_value(p) for p in gaps["p"]])[[*keys, "points", "ci_low", "ci_high", "p"]]
    table = table.merge(differences, "left", keys)
    table["task"] = [task_names.title(task) for task in table["task"]]
    table["lang"] = table["lang"].map(language_names)
    order = [
        "task",
        "lang",
        *latents,
        "points",
        "ci_low",
        "ci_high",
        "p",
        "shown",
        "best",
        "which",
        "model",
        "run",
        "data",
        "mark",
    ]
    return table[[name for name in order if name in table and (name != "p" or len(gaps))]]


def percentages(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores for reading: in percent, one row per latent or baseline."""
    optional = [name for name in OPTIONAL if scores[name].notna().any()]
    shown = scores[
        [
            "task",
            "latent",
            "accuracy",
            "ci_low",
            "ci_high",
            *optional,
            "lang",
            "model",
            "classes",
            "run",
            "note",
            "mark",
        ]
    ]
    fractions = [name for name in ("accuracy", "ci_low", "ci_high", "capacity") if name in shown]
    return shown.assign(**{name: 100 * shown[name] for name in fractions})
