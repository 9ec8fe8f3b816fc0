"""The one rule by which the app says that a latent shows a property, and which latent tells more by stored probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from app.core import startup
from app.core.results import gather, task_names
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from bgt_core.data.columns import split_langs
from probes.result import MAJORITY

LATENTS = (SEMANTIC, LANGUAGE, SYNTACTIC)
SEPARABLE = 0.05  # p-value, after Holm, below which one latent is said to tell more of a property than the other
RULE = (
    "A latent **shows** a property if the 95% interval of its probe's accuracy is above the accuracy of always giving "
    "the most frequent answer. A latent that does not may still hold the property: a linear probe can miss it."
)


def shows(low: float, most_frequent: float) -> bool:
    """Apply `RULE` to the lower end of a probe's interval and the accuracy of the most frequent answer."""
    return low > most_frequent


def shown(scores: pd.DataFrame) -> pd.Series:
    """Name the latents that show the property of each result, as in "semantic, language", by `CELL` and mark."""
    keys = [*gather.CELL, "mark"]
    majority = scores[scores["latent"] == MAJORITY].set_index(keys)["accuracy"].groupby(level=keys).first()
    latents = scores[scores["latent"].isin(LATENTS)].join(majority.rename("majority"), on=keys)
    named = [row.latent if shows(row.ci_low, row.majority) else "" for row in latents.itertuples()]
    by_result = latents.assign(named=named).groupby(keys)["named"]
    return by_result.agg(lambda names: ", ".join(filter(None, names)))


def leads(model: Path, second_latent: str) -> dict[str, list[str]]:
    """For each latent the tasks that it shows and that it leads on in most languages, the largest lead first, by the
    probes stored in a model's folder; empty if nothing is stored."""
    folder = model / startup.PROBES_FOLDER
    if not folder.is_dir():
        return {}
    stored = gather.gathered([folder], [])
    gaps = stored.gaps.join(shown(stored.scores).rename("shown"), on=[*gather.CELL, "mark"])
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
    """The accuracy of each task by each of these latents, the mean over languages, by the probes stored in a model's
    folder; tasks that were not measured on all of them are left out."""
    scores = gather.gathered([model / startup.PROBES_FOLDER], []).scores
    means = scores.pivot_table("accuracy", "task", "latent").reindex(columns=list(latents)).dropna()
    return {str(task): tuple(row) for task, *row in means.itertuples()}


def nats(log: Sequence[Mapping[str, Any]], langs: Sequence[str]) -> tuple[float, float]:
    """The information of the language latent about a sentence, and of both latents, in nats: the mean KL on pairs held
    out of training, over the model's languages; NaN without a training log."""
    held_out: Mapping[str, Any] = next((row for row in reversed(log) if row.get("kind") == "valid"), {})
    every = f"kl/{SEMANTIC}"  # of all languages, in the report of a model of many
    own = float(np.mean([held_out.get(f"kl/{lang}", np.nan) for lang in langs]))
    shared = float(np.mean([held_out.get(f"{every}/{lang}", held_out.get(every, np.nan)) for lang in langs]))
    return own, own + shared


def named(tasks: list[str], notes: Mapping[str, str], most: int = 3) -> str:
    """List tasks by their titles, and the `notes` of some, as in "length, tense (90 %) and 2 more"."""
    titles = [f"{task_names.title(task).lower()}{notes.get(task, '')}" for task in tasks[:most]]
    parts = [*titles, *([f"{len(tasks) - most} more"] if len(tasks) > most else [])]
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
