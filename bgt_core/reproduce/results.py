"""Finished cells -> the numbers of a table, as tidy CSV that a report is drawn from, without any text of the data.

NAME-scores.csv        a row for each system, measure and seed; seed "mean" is the system's score
NAME-differences.csv   each system minus the one that it is compared with
NAME-claims.csv        what the paper claims, and how it stands
NAME-cells.csv         the trail: a row a training
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from bgt_core.contracts import SEMANTIC, BadInput
from bgt_core.evaluation.bootstrap import holm, interval, resample
from bgt_core.evaluation.sts import Row, StsScores
from bgt_core.evaluation.sts_compare import drawn
from bgt_core.evaluation.sts_kept import read_scores
from bgt_core.reproduce import runner
from bgt_core.reproduce.cells import Cell
from bgt_core.reproduce.contrasts import Sample, contrast, verdict
from bgt_core.reproduce.listing import AVERAGE, DEV, RETRIEVAL, System, Table
from bgt_core.reproduce.measure import read_hits
from bgt_core.vectorfile import writing

KINDS = {
    "scores": "system,latent,seed,measure,value,ci_low,ci_high,published,cell",
    "differences": "measure,first,second,difference,ci_low,ci_high,p,p_holm,seeds_counted",
    "claims": "claim,where,measure,published,value,ci_low,ci_high,p,p_holm,seeds_counted,level,verdict",
    "cells": "system,cell,state,error,recipe,overrides,left_out,langs,seed,data,version,git,measured,torch,machine,"
    "threads,parameters,updates,tokens,seconds,tokens_per_second,epoch_seconds,arguments",
}
NUMBERS = set(
    "value,ci_low,ci_high,published,difference,p,p_holm,level,threads,parameters,updates,tokens,seconds,"
    "tokens_per_second,epoch_seconds".split(",")
)
NOT_RUN = "not run"
MEAN = "mean"

Records = dict[str, list[dict[str, Any]]]  # kind -> rows


@dataclass(frozen=True)
class Bootstrap:
    """How sure numbers are found out."""

    resamples: int = 2_000
    level: float = 0.95
    seed: int = 0


Samples = Mapping[str, Mapping[str, Sample]]  # system -> measure -> sample


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


def sampled(place: runner.Place, table: Table, there: Mapping[str, Sequence[Cell]], how: Bootstrap) -> Samples:
    """Every measure of every system in every resample. Those of the same sets are drawn together, to save time; each
    set's resamples follow from its name, so all are paired."""
    scores: dict[tuple[str, str], StsScores] = {}  # by cell and latent
    hits: dict[str, dict[str, np.ndarray]] = {}
    for system in table.systems:
        for cell in there.get(system.name, ()):
            kept = read_scores(place.folder(cell) / runner.COSINES)
            if system.latent not in kept:
                raise BadInput(f"{system.name}: {cell.name} has no {system.latent} latent; it has {', '.join(kept)}.")
            scores[cell.key, system.latent] = kept[system.latent]
            hits[cell.key] = read_hits(place.folder(cell) / runner.HITS)
    groups: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for which, of in scores.items():
        groups.setdefault(tuple(map(str, of.sets)), []).append(which)
    found: dict[tuple[str, str], dict[str, tuple[float, np.ndarray]]] = {}
    for members in groups.values():
        values, draws = drawn([scores[which] for which in members], resamples=how.resamples, seed=how.seed)
        for column, which in enumerate(members):
            found[which] = {
                name: (float(values[row][column]), draws[row][:, column]) for row in values if (name := measure_of(row))
            }
    for system in table.systems:
        for cell in there.get(system.name, ()):
            if hits[cell.key] and system.latent == SEMANTIC:
                found[cell.key, system.latent][RETRIEVAL] = retrieved(hits[cell.key], how)
    samples = {}
    for system in table.systems:
        of = [found[cell.key, system.latent] for cell in there.get(system.name, ())]
        if of:
            samples[system.name] = {
                name: Sample(np.array([one[name][0] for one in of]), np.stack([one[name][1] for one in of]))
                for name in of[0]
            }
    return samples


def measure_of(row: Row) -> str | None:
    """What a score is called in our tables; None for a year's own data sets."""
    if row.dataset == "average":
        return AVERAGE
    if row.year.isdigit():
        return f"STS {row.year}" if row.dataset == "all" else None
    if row.year == "hard":
        return "Hard STS, all" if row.dataset == "all" else row.dataset
    return DEV if row.year == "stsb" else f"{row.year.upper()} {row.dataset}"


def retrieved(hits: Mapping[str, np.ndarray], how: Bootstrap) -> tuple[float, np.ndarray]:
    """Precision at 1 x 100, the mean of both ways and all files, and in each resample of the translations."""
    found = []
    for name, ways in hits.items():
        stream = np.random.default_rng([how.seed, crc32(name.encode())])
        weights = resample(stream, ways.shape[1], how.resamples)  # (B, N)
        found.append((100 * ways.mean(), 100 * weights @ ways.mean(0) / ways.shape[1]))
    return float(np.mean([value for value, _ in found])), np.mean([draws for _, draws in found], axis=0)


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


def write(folder: Path, name: str, found: Records) -> None:
    """The four files of a table, each whole or not there."""
    for kind, rows in found.items():
        path = folder / f"{name}-{kind}.csv"
        partial = path.with_name(path.name + ".partial")
        with writing(path):
            folder.mkdir(parents=True, exist_ok=True)
            with partial.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, KINDS[kind].split(","), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            os.replace(partial, path)


def read(folder: Path, name: str) -> Records:
    """What `write` wrote, numbers as numbers and nothing as None. BadInput where it is absent (exit code 3)."""
    found: Records = {}
    for kind, columns in KINDS.items():
        path = folder / f"{name}-{kind}.csv"
        try:
            with path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
        except FileNotFoundError:
            raise BadInput(f"{path}: no results; run `bgt reproduce {name}` first.", 3) from None
        if rows and list(rows[0]) != columns.split(","):
            raise BadInput(f"{path}: its columns are not {columns}; make it anew.")
        found[kind] = [{name: as_was(name, value) for name, value in row.items()} for row in rows]
    return found


def as_was(column: str, text: str) -> Any:
    """A cell of a CSV file before it was written; hashes may look like numbers, so columns decide."""
    return None if not text else float(text) if column in NUMBERS else text
