"""Collect finished trainings into rows of a comparison: scores, differences, claims, and each training's provenance.

They are stored as one Parquet file per comparison, without any text of the data:

    scores        one row per system, measure and seed; the seed "mean" is the mean over seeds
    differences   each system minus the system that it is compared with
    claims        the paper's claims and our verdicts
    cells         provenance: one row per training
    statistics    back-translation only: how the translations of each table differ from the references
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from analysis.reproduce import measure
from analysis.reproduce import trainings as running
from analysis.reproduce.comparisons import (
    AVERAGE,
    COMPARISONS,
    DEV,
    FIDELITY,
    GAPS,
    RETRIEVAL,
    SETS,
    SYNTAX,
    Comparison,
    ExperimentSpec,
)
from analysis.reproduce.paraphrases import text_statistics
from analysis.reproduce.trainings import Training, TrainingPlan
from bgt_core.errors import DataError, NotFound
from bgt_core.evaluation.bootstrap import (
    NOT_RUN,
    BootstrappedScore,
    ContrastEstimate,
    contrast,
    holm,
    interval,
    verdict,
)
from bgt_core.files import atomic_file, reading_parquet

MEAN = "mean"
ESTIMATE = ("value", "ci_low", "ci_high")
COLUMNS = {
    "scores": ("system", "latent", "seed", "measure", *ESTIMATE, "published", "cell"),
    "differences": ("measure", "first", "second", "difference", "ci_low", "ci_high", "p", "p_holm", "seeds_counted"),
    "claims": ("claim", "where", "measure", "published", *ESTIMATE, "p", "p_holm", "seeds_counted", "level", "verdict"),
    "cells": (
        *("system", "cell", "state", "error", "recipe", "overrides", "left_out", "langs", "seed", "data", "version"),
        *("git", "measured", "torch", "machine", "threads", "parameters", "updates", "tokens", "seconds"),
        *("tokens_per_second", "epoch_seconds", "arguments"),
    ),
    "statistics": (
        *("table", "pairs", "statistic", "unit", "reference", "translation", "difference", "ci_low", "ci_high"),
        *("published", "verdict", "rho", "rho_low", "rho_high", "rho_published"),
    ),
}
Records = dict[str, list[dict[str, Any]]]  # kind -> rows
Scores = Mapping[str, Mapping[str, BootstrappedScore]]  # system -> measure -> score


def write(folder: Path, name: str, records: Records) -> None:
    """Store a comparison. Raises NotFound if `folder` can't be written."""
    rows = {
        kind: [{column: row.get(column) for column in columns} for row in records.get(kind, ())]
        for kind, columns in COLUMNS.items()
    }
    with atomic_file(folder / f"{name}.parquet") as partial:
        parquet.write_table(pa.Table.from_pylist([rows]), partial)


def stored(folder: Path, name: str) -> Records:
    """Read a file of `write`. Raises NotFound if it is missing, and DataError if it is damaged."""
    path = folder / f"{name}.parquet"
    if not path.exists():
        raise NotFound(f"{path}: no results; run `python -m analysis.reproduce {name}` first.")
    with reading_parquet(path), parquet.ParquetFile(path) as file:
        (records,) = file.read().to_pylist()
    return records


def records(plan: TrainingPlan, name: str, level: float) -> Records:
    """Return the rows of a comparison, from the finished trainings of each system."""
    comparison, trainings = COMPARISONS[name], plan.trainings[name]
    states = {training.key: plan.state(training) for of_system in trainings.values() for training in of_system}
    finished = {
        system: done
        for system, of_system in trainings.items()
        if (done := [training for training in of_system if states[training.key] == running.FINISHED])
    }
    scores = {
        system.name: measured(plan, comparison, system, finished[system.name])
        for system in comparison.systems
        if system.name in finished
    }
    for name, chosen in choices(comparison, scores).items():
        scores[name], finished[name] = scores[chosen], finished[chosen]
    known = {
        training.key: running.read(plan.folder(training) / running.RESULT)
        for of_system in finished.values()
        for training in of_system
    }
    score_table, cells = [], []
    for system in comparison.systems:
        done = finished.get(system.name, [])
        if done:
            score_table += score_rows(comparison, system, done, scores[system.name], known, level)
        for training in done if system.best_of else trainings.get(system.name, ()):
            about = known.get(training.key) or vars(training)
            row = {"system": system.name, "cell": training.name, "state": states[training.key]}
            cells.append(row | {"error": error(plan, training), **cell(about)})
    has_statistics = comparison.data == "paraphrases"
    return {
        "scores": score_table,
        "differences": differences(comparison, scores, level),
        "claims": claims(comparison, scores, level),
        "cells": cells,
        "statistics": text_statistics(plan.datasets, plan.out / "data", plan.device) if has_statistics else [],
    }


def measured(
    plan: TrainingPlan, comparison: Comparison, system: ExperimentSpec, finished: Sequence[Training]
) -> dict[str, BootstrappedScore]:
    """Return every measure that all finished trainings of a system have.

    Raises DataError if a training lacks the latent in which its system is measured.
    """
    by_seed = []
    for training in finished:
        by_latent = measure.read(plan.folder(training) / running.SCORES)
        if system.latent not in by_latent:
            latents = ", ".join(by_latent)
            raise DataError(f"{system.name}: {training.name} has no {system.latent} latent; it has {latents}.")
        by_seed.append(by_latent[system.latent])
    stacks = {
        name: np.stack([of_seed[name] for of_seed in by_seed])  # (seeds, 1 + B)
        for name in by_seed[0]
        if all(name in of_seed for of_seed in by_seed) and (name != SETS or comparison.measure == SETS)
    }
    return {name: BootstrappedScore(stack[:, 0], stack[:, 1:]) for name, stack in stacks.items()}


def choices(comparison: Comparison, scores: Scores) -> dict[str, str]:
    """Return, for each system that is the best of several, the one with the highest score on the dev set."""
    chosen = {}
    for system in comparison.systems:
        if with_dev := [name for name in system.best_of if DEV in scores.get(name, {})]:
            chosen[system.name] = max(with_dev, key=lambda name: scores[name][DEV].values.mean())
    return chosen


def published(comparison: Comparison, system: str, measure: str, measured: Sequence[str]) -> float | None:
    """Return the paper's number; an average is over the years that we have, if the paper has a number for each."""
    numbers = comparison.published.get(system, {})
    years = [name for name in measured if name.startswith("STS 2")]
    if measure == AVERAGE and years and all(name in numbers for name in years):
        return round(float(np.mean([numbers[name] for name in years])), 1)
    return numbers.get(measure)


def average_of_years(comparison: Comparison, system: str, measure: str) -> float | None:
    """Return the paper's number of a measure; the STS average is over all of the paper's years."""
    numbers = comparison.published.get(system, {})
    years = [value for name, value in numbers.items() if name.startswith("STS 2")]
    return sum(years) / len(years) if measure == AVERAGE and years else numbers.get(measure)


def score_rows(
    comparison: Comparison,
    system: ExperimentSpec,
    trainings: Sequence[Training],
    scores: Mapping[str, BootstrappedScore],
    provenance: Mapping[str, Mapping[str, Any]],
    level: float,
) -> list[dict[str, Any]]:
    """Return one system's scores by measure, their mean and each seed's, with intervals; and the last validations."""
    rows: list[dict[str, Any]] = []
    for name, score in scores.items():
        paper = published(comparison, system.name, name, list(scores))
        parts = [(MEAN, "", score.values.mean(), score.draws.mean(0))]
        parts += [
            (str(training.seed), training.name, value, draws)
            for training, value, draws in zip(trainings, score.values, score.draws, strict=True)
        ]
        for seed, of, value, draws in parts:
            low, high = interval(draws, level)
            row = {"seed": seed, "measure": name, "cell": of, "published": paper}
            rows.append(row | {"value": float(value), "ci_low": float(low), "ci_high": float(high)})
    rows += [
        {"seed": str(training.seed), "measure": f"validation {name}", "value": value, "cell": training.name}
        for training in trainings
        for name, value in provenance[training.key]["validation"].items()
    ]
    return [{"system": system.name, "latent": system.latent, **row} for row in rows]


def differences(comparison: Comparison, scores: Scores, level: float) -> list[dict[str, Any]]:
    """Return the difference of each system and the one to compare it with, by shown measure, with Holm's correction."""
    rows, estimates = [], []
    for system in comparison.systems:
        if system.name == system.against:
            continue
        first, second = scores.get(system.name, {}), scores.get(system.against, {})
        for name in first:
            if name in second and is_shown(name):
                rows.append({"measure": name, "first": system.name, "second": system.against})
                estimates.append(contrast([(1, first[name]), (-1, second[name])], level))
    adjusted = holm(np.array([estimate.p for estimate in estimates]))
    return [
        row | {"difference": estimate.value} | statistics(estimate, p_holm)
        for row, estimate, p_holm in zip(rows, estimates, adjusted, strict=True)
    ]


def statistics(estimate: ContrastEstimate, p_holm: float) -> dict[str, Any]:
    """Return the columns that differences and claims share."""
    ends = {"ci_low": estimate.low, "ci_high": estimate.high}
    return ends | {"p": estimate.p, "p_holm": float(p_holm), "seeds_counted": estimate.counts_seeds}


def is_shown(measure_name: str) -> bool:
    """Return whether a measure is a column of the page: all except the finer splits of Hard STS."""
    others = (SETS, "Hard+", "Hard-", RETRIEVAL, *FIDELITY, *SYNTAX, *GAPS, *measure.OF_PAIRS)
    return measure_name.startswith(("STS", "SICK")) or measure_name in others


def claims(comparison: Comparison, scores: Scores, level: float) -> list[dict[str, Any]]:
    """Return each claim of the paper with its verdict; Holm's correction is over the claims that could be measured."""
    estimates = {
        number: contrast([(weight, scores[name][claim.measure]) for name, weight in claim.weights.items()], level)
        for number, claim in enumerate(comparison.claims)
        if all(claim.measure in scores.get(name, {}) for name in claim.weights)
    }
    adjusted = dict(zip(estimates, holm(np.array([estimate.p for estimate in estimates.values()])), strict=True))
    rows = []
    for number, claim in enumerate(comparison.claims):
        row: dict[str, Any] = {"claim": claim.statement, "where": claim.where, "measure": claim.measure, "level": level}
        numbers: dict[str, Any] = {name: average_of_years(comparison, name, claim.measure) for name in claim.weights}
        if None not in numbers.values():
            row["published"] = round(sum(weight * numbers[name] for name, weight in claim.weights.items()), 1)
        if estimate := estimates.get(number):
            p_holm = float(adjusted[number])
            row |= {"value": estimate.value} | statistics(estimate, p_holm)
            row["verdict"] = verdict(estimate.value, p_holm, level)
        rows.append(row if "verdict" in row else row | {"verdict": NOT_RUN})
    return rows


def error(plan: TrainingPlan, training: Training) -> str:
    """Return why a training failed, on one line, without paths of this machine."""
    message = str(running.read(plan.folder(training) / running.ERROR).get("error", ""))
    return " ".join(message.replace(str(plan.out), "OUT").split())[:300]


def cell(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known facts about a training, as the columns of its row."""
    known = {name: about.get(name) for name in COLUMNS["cells"] if name in about and name != "seed"}
    texts = {
        name: json.dumps(value, sort_keys=True)
        for name, value in known.items()
        if isinstance(value, dict | list | tuple)
    }
    return known | texts | {"seed": str(about["seed"])}
