"""Finished trainings -> the rows of a comparison: scores, differences, claims, and the provenance of each training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analysis.reproduce import runner
from analysis.reproduce.bootstrapped_scores import Bootstrap, Scores, bootstrapped_scores
from analysis.reproduce.experiments import (
    AVERAGE,
    DEV,
    FIDELITY,
    GAPS,
    RETRIEVAL,
    SETS,
    SYNTAX,
    Comparison,
    ExperimentSpec,
)
from analysis.reproduce.pair_scores import MEASURES
from analysis.reproduce.stored import KINDS, Records
from analysis.reproduce.trainings import Training
from bgt_core.evaluation.bootstrap import (
    NOT_RUN,
    BootstrappedScore,
    ContrastEstimate,
    contrast,
    holm,
    interval,
    verdict,
)

MEAN = "mean"


def records(
    workspace: runner.Workspace,
    comparison: Comparison,
    trainings: Mapping[str, Sequence[Training]],
    bootstrap: Bootstrap,
) -> Records:
    """The rows of a comparison, from those of each system's trainings that are finished."""
    states = {
        training.key: runner.state(workspace, training) for of_system in trainings.values() for training in of_system
    }
    finished = {
        system.name: done
        for system in comparison.systems
        if not system.best_of
        and (done := [training for training in trainings[system.name] if states[training.key] == runner.FINISHED])
    }
    provenance = {
        training.key: runner.read(workspace.folder(training) / runner.RESULT)
        for of_system in finished.values()
        for training in of_system
    }
    scores = {**bootstrapped_scores(workspace, comparison, finished, bootstrap)}
    for name, chosen in choices(comparison, scores).items():
        scores[name], finished[name] = scores[chosen], finished[chosen]
    return {
        "scores": [
            row
            for system in comparison.systems
            if system.name in finished
            for row in score_rows(
                comparison, system, finished[system.name], scores[system.name], provenance, bootstrap.level
            )
        ],
        "differences": differences(comparison, scores, bootstrap.level),
        "claims": claims(comparison, scores, bootstrap.level),
        "cells": [
            {
                "system": system.name,
                "cell": training.name,
                "state": states[training.key],
                "error": error(workspace, training),
                **provenance_row(provenance.get(training.key) or specified(training)),
            }
            for system in comparison.systems
            for training in (finished.get(system.name, ()) if system.best_of else trainings[system.name])
        ],
    }


def choices(comparison: Comparison, scores: Scores) -> dict[str, str]:
    """For each system defined as the best of several: the one with the highest score on the dev set."""
    chosen = {}
    for system in comparison.systems:
        if measured := [name for name in system.best_of if DEV in scores.get(name, {})]:
            chosen[system.name] = max(measured, key=lambda name: scores[name][DEV].values.mean())
    return chosen


def published(comparison: Comparison, system: str, measure: str, measured: Sequence[str]) -> float | None:
    """The paper's number; its average over the years that we have, where it states them."""
    numbers = comparison.published.get(system, {})
    years = [name for name in measured if name.startswith("STS 2")]
    if measure == AVERAGE and years and all(name in numbers for name in years):
        return round(float(np.mean([numbers[name] for name in years])), 1)
    return numbers.get(measure)


def score_rows(
    comparison: Comparison,
    system: ExperimentSpec,
    trainings: Sequence[Training],
    scores: Mapping[str, BootstrappedScore],
    provenance: Mapping[str, Mapping[str, Any]],
    level: float,
) -> list[dict[str, Any]]:
    """Of one system: each measure's mean and each seed's, with the interval over pairs; and the last validations."""
    rows: list[dict[str, Any]] = []
    for measure, score in scores.items():
        parts: list[tuple[str | int, str, float, np.ndarray]] = [(MEAN, "", score.values.mean(), score.draws.mean(0))]
        parts += [
            (training.seed, training.name, value, draws)
            for training, value, draws in zip(trainings, score.values, score.draws, strict=True)
        ]
        for seed, name, value, draws in parts:
            low, high = interval(draws, level)
            row = {"seed": seed, "measure": measure, "value": value, "ci_low": low, "ci_high": high, "cell": name}
            rows.append(row | {"published": published(comparison, system.name, measure, list(scores))})
    for training in trainings:
        for measure, value in provenance[training.key]["validation"].items():
            row = {"seed": training.seed, "measure": f"validation {measure}", "value": value, "cell": training.name}
            rows.append(row)
    return [{"system": system.name, "latent": system.latent, **row} for row in rows]


def differences(comparison: Comparison, scores: Scores, level: float) -> list[dict[str, Any]]:
    """Of each system and the one it is compared with, on the measures of the page; Holm's correction over all."""
    rows, estimates = [], []
    for system in comparison.systems:
        if system.name == system.against:
            continue
        first, second = scores.get(system.name, {}), scores.get(system.against, {})
        for measure in first:
            if measure in second and is_shown(measure):
                rows.append({"measure": measure, "first": system.name, "second": system.against})
                estimates.append(contrast([(1, first[measure]), (-1, second[measure])], level))
    adjusted = holm(np.array([estimate.p for estimate in estimates]))
    return [
        row | {"difference": estimate.value} | statistics(estimate, p_holm)
        for row, estimate, p_holm in zip(rows, estimates, adjusted, strict=True)
    ]


def statistics(estimate: ContrastEstimate, p_holm: float) -> dict[str, Any]:
    """The columns that differences and claims share."""
    return {
        "ci_low": estimate.low,
        "ci_high": estimate.high,
        "p": estimate.p,
        "p_holm": float(p_holm),
        "seeds_counted": estimate.counts_seeds,
    }


def is_shown(measure: str) -> bool:
    """Whether it is a column of the page: all but the further splits of Hard STS."""
    others = (SETS, "Hard+", "Hard-", RETRIEVAL, *FIDELITY, *SYNTAX, *GAPS, *MEASURES)
    return measure.startswith(("STS", "SICK")) or measure in others


def claims(comparison: Comparison, scores: Scores, level: float) -> list[dict[str, Any]]:
    """Each claim of the paper with its verdict; Holm's correction over those that could be measured."""
    estimates = {
        number: contrast([(weight, scores[name][claim.measure]) for name, weight in claim.weights.items()], level)
        for number, claim in enumerate(comparison.claims)
        if all(claim.measure in scores.get(name, {}) for name in claim.weights)
    }
    adjusted = dict(zip(estimates, holm(np.array([estimate.p for estimate in estimates.values()])), strict=True))
    rows = []
    for number, claim in enumerate(comparison.claims):
        row: dict[str, Any] = {"claim": claim.statement, "where": claim.where, "measure": claim.measure, "level": level}
        numbers = [
            (weight, stated(comparison.published.get(name, {}), claim.measure))
            for name, weight in claim.weights.items()
        ]
        known = [weight * value for weight, value in numbers if value is not None]
        if len(known) == len(numbers):
            row["published"] = round(sum(known), 1)
        if estimate := estimates.get(number):
            p_holm = float(adjusted[number])
            row |= {"value": estimate.value} | statistics(estimate, p_holm)
            row["verdict"] = verdict(estimate.value, p_holm, level)
        rows.append(row if "verdict" in row else row | {"verdict": NOT_RUN})
    return rows


def stated(numbers: Mapping[str, float], measure: str) -> float | None:
    """The paper's number of a measure, its average over all its years."""
    years = [value for name, value in numbers.items() if name.startswith("STS 2")]
    return float(np.mean(years)) if measure == AVERAGE and years else numbers.get(measure)


def error(workspace: runner.Workspace, training: Training) -> str:
    """Why it failed, on one line, without the paths of this machine."""
    message = str(runner.read(workspace.folder(training) / runner.ERROR).get("error", ""))
    return " ".join(message.replace(str(workspace.out), "OUT").split())[:300]


def specified(training: Training) -> dict[str, Any]:
    """What is known of a training before it is finished."""
    return {"recipe": training.recipe, "overrides": dict(training.overrides), "seed": training.seed}


def provenance_row(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of result.json that are columns, as CSV holds them."""
    return {
        name: json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else value
        for name, value in provenance.items()
        if name in KINDS["cells"].split(",")
    }
