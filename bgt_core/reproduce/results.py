"""Finished cells -> the rows of a table: scores, differences, claims, and the trail of each training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bgt_core.evaluation.bootstrap import holm, interval
from bgt_core.reproduce import runner
from bgt_core.reproduce.cells import Cell
from bgt_core.reproduce.contrasts import Sample, contrast, verdict
from bgt_core.reproduce.experiments import AVERAGE, RETRIEVAL, System, Table
from bgt_core.reproduce.samples import Bootstrap, Samples, sampled
from bgt_core.reproduce.stored import KINDS, Records

NOT_RUN = "not run"
MEAN = "mean"


def records(place: runner.Place, table: Table, cells: Mapping[str, Sequence[Cell]], how: Bootstrap) -> Records:
    """The rows of a table, from those of each system's cells that are finished."""
    states = {cell.key: runner.state(place, cell) for of in cells.values() for cell in of}
    there = {
        system.name: done
        for system in table.systems
        if (done := [cell for cell in cells[system.name] if states[cell.key] == runner.FINISHED])
    }
    trails = {cell.key: runner.read(place.folder(cell) / runner.RESULT) for of in there.values() for cell in of}
    samples = sampled(place, table, there, how)
    scores = [
        row
        for system in table.systems
        if system.name in there
        for row in score_rows(table, system, there[system.name], samples[system.name], trails, how)
    ]
    about = [
        {"system": system.name, "cell": cell.name, "state": states[cell.key], "error": error(place, cell)}
        | trail_row(trails.get(cell.key, {"recipe": cell.recipe, "overrides": dict(cell.overrides), "seed": cell.seed}))
        for system in table.systems
        for cell in cells[system.name]
    ]
    claimed = claims(table, samples, how)
    return {"scores": scores, "differences": differences(table, samples, how), "claims": claimed, "cells": about}


def published(table: Table, system: str, measure: str, measured: Sequence[str]) -> float | None:
    """The paper's number; its average over the years that we have, where it states them."""
    numbers = table.published.get(system, {})
    ours = [name for name in measured if name.startswith("STS 2")]
    if measure == AVERAGE and ours and all(name in numbers for name in ours):
        return round(float(np.mean([numbers[name] for name in ours])), 1)
    return numbers.get(measure)


def score_rows(
    table: Table,
    system: System,
    cells: Sequence[Cell],
    samples: Mapping[str, Sample],
    trails: Mapping[str, Mapping[str, Any]],
    how: Bootstrap,
) -> list[dict[str, Any]]:
    """Of one system: each measure's mean and each seed's, with the interval over pairs; and what its runs reported."""
    rows = []
    for name, sample in samples.items():
        parts = [(MEAN, "", sample.values.mean(), sample.draws.mean(0))]
        parts += [
            (cell.seed, cell.name, value, draws)
            for cell, value, draws in zip(cells, sample.values, sample.draws, strict=True)
        ]
        for seed, cell, value, draws in parts:
            low, high = interval(draws, how.level)
            row = {"seed": seed, "measure": name, "value": value, "ci_low": low, "ci_high": high, "cell": cell}
            rows.append(row | {"published": published(table, system.name, name, list(samples))})
    for cell in cells:
        for name, value in trails[cell.key]["validation"].items():
            rows.append({"seed": cell.seed, "measure": f"validation {name}", "value": value, "cell": cell.name})
    return [{"system": system.name, "latent": system.latent, **row} for row in rows]


def differences(table: Table, samples: Samples, how: Bootstrap) -> list[dict[str, Any]]:
    """Of each system and the one it is compared with, on the measures of the report; Holm over all of them."""
    found, of = [], []
    for system in table.systems:
        pair = [samples.get(name, {}) for name in (system.name, system.against)]
        for name in pair[0] if system.name != system.against else ():
            if name in pair[1] and is_shown(name):
                of.append({"measure": name, "first": system.name, "second": system.against})
                found.append(contrast([(1, pair[0][name]), (-1, pair[1][name])], how.level))
    adjusted = holm(np.array([one.p for one in found]))
    return [
        {**row, "difference": one.value, "ci_low": one.low, "ci_high": one.high, "p": one.p, "p_holm": float(p)}
        | {"seeds_counted": one.seeds}
        for row, one, p in zip(of, found, adjusted, strict=True)
    ]


def is_shown(measure: str) -> bool:
    """Whether it is a column of the report: all but the further splits of Hard STS."""
    return measure.startswith("STS") or measure in ("Hard+", "Hard-", RETRIEVAL)


def claims(table: Table, samples: Samples, how: Bootstrap) -> list[dict[str, Any]]:
    """Each claim of the paper with its verdict; Holm over those that could be measured."""
    found = {
        number: contrast([(weight, samples[name][claim.measure]) for name, weight in claim.weights.items()], how.level)
        for number, claim in enumerate(table.claims)
        if all(claim.measure in samples.get(name, {}) for name in claim.weights)
    }
    adjusted = dict(zip(found, holm(np.array([one.p for one in found.values()])), strict=True))
    rows = []
    for number, claim in enumerate(table.claims):
        row = {"claim": claim.says, "where": claim.where, "measure": claim.measure, "level": how.level}
        numbers = [(weight, table.published.get(name, {})) for name, weight in claim.weights.items()]
        theirs = [(weight, stated(of, claim.measure)) for weight, of in numbers]
        if all(value is not None for _, value in theirs):
            row["published"] = round(sum(weight * value for weight, value in theirs), 1)
        if one := found.get(number):
            p = float(adjusted[number])
            row |= {"value": one.value, "ci_low": one.low, "ci_high": one.high, "p": one.p, "p_holm": p}
            row |= {"seeds_counted": one.seeds, "verdict": verdict(one.value, p, how.level)}
        rows.append(row if "verdict" in row else row | {"verdict": NOT_RUN})
    return rows


def stated(numbers: Mapping[str, float], measure: str) -> float | None:
    """The paper's number of a measure, its average over all its years."""
    years = [value for name, value in numbers.items() if name.startswith("STS 2")]
    return float(np.mean(years)) if measure == AVERAGE and years else numbers.get(measure)


def error(place: runner.Place, cell: Cell) -> str:
    """Why it failed, on one line, without the places of this machine."""
    said = str(runner.read(place.folder(cell) / runner.ERROR).get("error", "")).replace(str(place.out), "OUT")
    return " ".join(said.split())[:300]


def trail_row(trail: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else value
        for name, value in trail.items()
        if name in KINDS["cells"].split(",")
    }
