"""Collect the scores of finished trainings into rows, store them, and format them as a Markdown page.

Each comparison has a Parquet file with these tables, which contain no sentences of the data:

    scores        one row per system, measure and seed; rows with the seed "mean" have the mean over seeds
    differences   the score of each system minus the score of the system that it is compared with
    claims        the paper's claims and our verdicts
    cells         one row per training, with its provenance
    statistics    only for `backtranslation`: how the translations in each table differ from the references

The Markdown page is made only from this file.
"""

import json
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from analysis.reproduce import comparisons as names
from analysis.reproduce import measure
from analysis.reproduce import trainings as running
from analysis.reproduce.comparisons import AVERAGE, COMPARISONS, DEV, SETS, Comparison, ExperimentSpec
from analysis.reproduce.paraphrases import text_statistics
from analysis.reproduce.trainings import Training, TrainingPlan
from bgt_core.contracts import SEMANTIC, SYNTACTIC
from bgt_core.errors import DataError, NotFound
from bgt_core.evaluation import bootstrap
from bgt_core.evaluation.bootstrap import NOT_RUN, BootstrappedScore, ContrastEstimate, contrast, holm
from bgt_core.evaluation.tasks.pairs import ACCURACY
from bgt_core.files import atomic_file, reading_parquet
from bgt_core.tables import Estimate, Table, Value, markdown, p_text, plain

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
Row = dict[str, Any]
Records = dict[str, list[Row]]  # table name, a key of COLUMNS -> rows
Scores = Mapping[str, Mapping[str, BootstrappedScore]]  # scores by system and measure


def write(folder: Path, name: str, records: Records) -> None:
    """Store the rows of a comparison in a Parquet file. Raises NotFound if `folder` can't be written."""
    rows = {
        kind: [{column: row.get(column) for column in columns} for row in records.get(kind, ())]
        for kind, columns in COLUMNS.items()
    }
    with atomic_file(folder / f"{name}.parquet") as partial:
        parquet.write_table(pa.Table.from_pylist([rows]), partial)


def stored(folder: Path, name: str) -> Records:
    """Read the rows that `write` stored. Raises NotFound if the file is missing, and DataError if it is damaged."""
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
    finished, scores = {}, {}
    for system in comparison.systems:
        done = [each for each in trainings.get(system.name, ()) if states[each.key] == running.FINISHED]
        if done:
            finished[system.name], scores[system.name] = done, measured(plan, comparison, system, done)
    for name, chosen in choices(comparison, scores).items():
        scores[name], finished[name] = scores[chosen], finished[chosen]
    done = [training for of_system in finished.values() for training in of_system]
    known = {training.key: running.read(plan.folder(training) / running.RESULT) for training in done}
    score_table, cells = [], []
    for system in comparison.systems:
        done = finished.get(system.name, [])
        if done:
            score_table += score_rows(comparison, system, done, scores[system.name], known, level)
        for training in done if system.best_of else trainings.get(system.name, ()):
            about = known.get(training.key) or vars(training)
            row = {"system": system.name, "cell": training.name, "state": states[training.key]}
            row |= {name: about[name] for name in COLUMNS["cells"] if name in about} | {"seed": str(about["seed"])}
            nested = {name: value for name, value in row.items() if isinstance(value, dict | list | tuple)}
            texts = {name: json.dumps(value, sort_keys=True) for name, value in nested.items()}
            cells.append(row | texts | {"error": error(plan, training)})
    has_statistics = comparison.data == "paraphrases"
    return {
        "scores": score_table,
        "differences": difference_rows(comparison, scores, level),
        "claims": claim_rows(comparison, scores, level),
        "cells": cells,
        "statistics": text_statistics(plan.datasets, plan.out / "data", plan.device) if has_statistics else [],
    }


def error(plan: TrainingPlan, training: Training) -> str:
    """Return a training's error on one line, without paths of this machine; "" if the training has not failed."""
    message = str(running.read(plan.folder(training) / running.ERROR).get("error", ""))
    return " ".join(message.replace(str(plan.out), "OUT").split())[:300]


def measured(
    plan: TrainingPlan, comparison: Comparison, system: ExperimentSpec, finished: Sequence[Training]
) -> dict[str, BootstrappedScore]:
    """Return a system's scores in all measures that every finished training of the system has.

    Raises DataError if a training does not have the latent in which the system is measured.
    """
    by_seed = []
    for training in finished:
        by_latent = measure.read(plan.folder(training) / running.SCORES)
        if system.latent not in by_latent:
            latents = ", ".join(by_latent)
            raise DataError(f"{system.name} needs a {system.latent} latent; {training.name} only has {latents}.")
        by_seed.append(by_latent[system.latent])
    stacks = {
        name: np.stack([of_seed[name] for of_seed in by_seed])  # (seeds, 1 + B)
        for name in by_seed[0]
        if all(name in of_seed for of_seed in by_seed) and (name != SETS or comparison.measure == SETS)
    }
    return {name: BootstrappedScore(stack[:, 0], stack[:, 1:]) for name, stack in stacks.items()}


def choices(comparison: Comparison, scores: Scores) -> dict[str, str]:
    """For each system that stands for the best of several candidates (`best_of`), return the name of the candidate with
    the highest score on the dev set."""
    chosen = {}
    for system in comparison.systems:
        if with_dev := [name for name in system.best_of if DEV in scores.get(name, {})]:
            chosen[system.name] = max(with_dev, key=lambda name: scores[name][DEV].values.mean())
    return chosen


def published(comparison: Comparison, system: str, measure: str, measured: Sequence[str] | None = None) -> float | None:
    """Return the paper's score of a system, or None. The STS average is the mean over the years in `measured` if the
    paper has a score for each of them, else the mean over all years in the paper."""
    numbers = comparison.published.get(system, {})
    years = [name for name in (numbers if measured is None else measured) if name.startswith("STS 2")]
    if measure == AVERAGE and years and all(name in numbers for name in years):
        return sum(numbers[name] for name in years) / len(years)
    return numbers.get(measure)


def score_rows(
    comparison: Comparison,
    system: ExperimentSpec,
    trainings: Sequence[Training],
    scores: Mapping[str, BootstrappedScore],
    provenance: Mapping[str, Mapping[str, Any]],
    level: float,
) -> list[Row]:
    """Return the rows of a system: in each measure, a row for the mean over seeds and for each seed; and a row for each
    metric of the last validation of each training."""
    rows: list[Row] = []
    for name, score in scores.items():
        paper = published(comparison, system.name, name, list(scores))
        parts = [(MEAN, "", score.values.mean(), score.draws.mean(0))]
        parts += [
            (str(training.seed), training.name, value, draws)
            for training, value, draws in zip(trainings, score.values, score.draws, strict=True)
        ]
        for seed, cell, value, draws in parts:
            low, high = map(float, bootstrap.interval(draws, level))
            row = {"seed": seed, "measure": name, "cell": cell, "published": paper and round(paper, 1)}
            rows.append(row | {"value": float(value), "ci_low": low, "ci_high": high})
    rows += [
        {"seed": str(training.seed), "measure": f"validation {name}", "value": value, "cell": training.name}
        for training in trainings
        for name, value in provenance[training.key]["validation"].items()
    ]
    return [{"system": system.name, "latent": system.latent, **row} for row in rows]


def difference_rows(comparison: Comparison, scores: Scores, level: float) -> list[Row]:
    """Return the difference, with p-values, between each system and the system it is compared with, in each measure
    that the page shows."""
    rows, estimates = [], []
    for system in comparison.systems:
        first, second = scores.get(system.name, {}), scores.get(system.against, {})
        for name in first if system.name != system.against else ():
            if name in second and is_shown(name):
                rows.append({"measure": name, "first": system.name, "second": system.against})
                estimates.append(contrast([(1, first[name]), (-1, second[name])], level))
    adjusted = holm(np.array([estimate.p for estimate in estimates]))
    return [
        row | {"difference": estimate.value} | tested(estimate, p_holm)
        for row, estimate, p_holm in zip(rows, estimates, adjusted, strict=True)
    ]


def tested(estimate: ContrastEstimate, p_holm: float) -> Row:
    """Return the columns that the tables of differences and of claims share: estimate, interval and p-values."""
    ends = {"ci_low": estimate.low, "ci_high": estimate.high}
    return ends | {"p": estimate.p, "p_holm": float(p_holm), "seeds_counted": estimate.counts_seeds}


def is_shown(measure_name: str) -> bool:
    """Return whether the page shows a measure. It shows all except those of parts of Hard STS."""
    others = (SETS, "Hard+", "Hard-", names.RETRIEVAL, *names.FIDELITY, *names.SYNTAX, *names.GAPS, *measure.OF_PAIRS)
    return measure_name.startswith(("STS", "SICK")) or measure_name in others


def claim_rows(comparison: Comparison, scores: Scores, level: float) -> list[Row]:
    """Return each claim of the paper with its verdict. Holm's correction is over the claims that were measured."""
    estimates = {
        number: contrast([(weight, scores[name][claim.measure]) for name, weight in claim.weights.items()], level)
        for number, claim in enumerate(comparison.claims)
        if all(claim.measure in scores.get(name, {}) for name in claim.weights)
    }
    adjusted = dict(zip(estimates, holm(np.array([estimate.p for estimate in estimates.values()])), strict=True))
    rows = []
    for number, claim in enumerate(comparison.claims):
        row: Row = {"claim": claim.statement, "where": claim.where, "measure": claim.measure, "level": level}
        numbers: dict[str, Any] = {name: published(comparison, name, claim.measure) for name in claim.weights}
        if None not in numbers.values():
            row["published"] = round(sum(weight * numbers[name] for name, weight in claim.weights.items()), 1)
        row["verdict"] = NOT_RUN
        if estimate := estimates.get(number):
            row |= {"value": estimate.value} | tested(estimate, adjusted[number])
            row["verdict"] = bootstrap.verdict(estimate.value, row["p_holm"], level)
        rows.append(row)
    return rows


SHOWN_SETTINGS = ("recipe", "langs", "seed", "fuse")  # the tables show these settings, so `settings` leaves them out
# The explanations of scores and tables on the page.
ABOUT: dict[str, str] = tomllib.loads(Path(__file__).with_name("about.toml").read_text("utf-8"))


def scores(comparison: Comparison, records: Records) -> Table:
    """Make a table of scores with one row per system. A cell is empty if the system has no such score."""
    means = means_of(records)
    columns = [name for name in dict.fromkeys(row["measure"] for row in records["scores"]) if is_shown(name)]
    columns = sorted(columns, key=lambda name: name != comparison.measure)
    rows: list[list[Value]] = []
    for system in comparison.systems:
        by_seed = [
            row["value"]
            for row in records["scores"]
            if (row["system"], row["measure"]) == (system.name, comparison.measure) and row["seed"] != MEAN
        ]
        states = Counter(row["state"] for row in records["cells"] if row["system"] == system.name)
        trained = ", ".join(f"{count} {state}" for state, count in states.items())
        values = [
            beside_paper(means.get((system.name, name)), published(comparison, system.name, name, columns))
            for name in columns
        ]
        seeds = ", ".join(plain(value, 1) for value in by_seed) if len(by_seed) > 1 else ""
        rows.append([system.name, trained, *values, seeds])
    return Table(["system", "trainings", *columns, f"{comparison.measure.removeprefix('STS ')} by seed"], rows)


def means_of(records: Records) -> dict[tuple[str, str], Row]:
    """Return the rows with a mean over seeds, by system and measure."""
    return {(row["system"], row["measure"]): row for row in records["scores"] if row["seed"] == MEAN}


def by_latent(comparison: Comparison, records: Records) -> Table:
    """Make a table with the scores of both latents, one row for each pair of a semantic and a syntactic latent. It is
    empty if no system has a syntactic latent."""
    means = means_of(records)
    other = {system.against: system.name for system in comparison.systems if system.latent == SYNTACTIC}
    measures = [
        name for name in (DEV, names.F1, AVERAGE, names.EDITS, names.TAGS) if any(key[1] == name for key in means)
    ]
    rows: list[list[Value]] = []
    for system in comparison.systems if other else ():
        if system.latent == SEMANTIC:
            both = [(name, each) for each in measures for name in (system.name, other.get(system.name, ""))]
            numbers = [comparison.published.get(name, {}).get(each) for name, each in both]
            rows.append([system.name, *map(beside_paper, map(means.get, both), numbers)])
    head = [f"{measure}, {latent}" for measure in measures for latent in (SEMANTIC, SYNTACTIC)]
    return Table(["system", *head], rows)


def beside_paper(row: Row | None, paper: float | None) -> str:
    """Format a score as in "66.2 [65.0, 67.4] (71.6)", with the paper's number last."""
    ours = "" if row is None else plain(Estimate(row["value"], row["ci_low"], row["ci_high"]), 1)
    return " ".join(filter(None, (ours, "" if paper is None else f"({plain(paper, 1)})")))


def claims(records: Records) -> Table:
    """Make a table with the verdict on each claim of the paper."""
    rows = []
    for row in records["claims"]:
        ours, p = "", ""
        if row["verdict"] != NOT_RUN:
            ours, p = beside_paper(row, None), p_text(row["p_holm"])
        rows.append([row["claim"], row["where"], row["published"], ours, p, row["verdict"]])
    return Table(["the paper's claim", "where", "paper", "ours", "p (Holm)", "verdict"], rows)


def differences(comparison: Comparison, records: Records) -> Table:
    """Make a table of the differences between systems in the comparison's main measure."""
    rows: list[list[Value]] = []
    for row in records["differences"]:
        if row["measure"] == comparison.measure:
            difference = Estimate(row["difference"], row["ci_low"], row["ci_high"])
            rows.append([f"{row['first']} - {row['second']}", difference, p_text(row["p"]), p_text(row["p_holm"])])
    return Table([comparison.measure, "points", "p", "p (Holm)"], rows)


def chosen(comparison: Comparison, records: Records) -> Table:
    """Make a table of the systems that stand for the best of several candidates (`best_of`): their candidates, the
    scores on the dev set, and which candidate was chosen."""
    cells: dict[str, set[str]] = {}  # names of each system's trainings
    for row in records["cells"]:
        cells.setdefault(row["system"], set()).add(row["cell"])
    means = means_of(records)
    rows: list[list[Value]] = []
    for system in comparison.systems:
        own = cells.get(system.name)
        for name in system.best_of if own else ():
            dev = means[name, DEV]["value"] if (name, DEV) in means else None
            rows.append([system.name, name, dev, "chosen" if cells.get(name) == own else ""])
    return Table(["system", "one of", DEV, ""], rows)


def statistics(records: Records) -> Table:
    """Make a table with one row for each statistic of each file of back-translations."""
    rows: list[list[Value]] = []
    for row in records.get("statistics", ()):
        difference: Value = row["difference"]
        if row["ci_low"] is not None:
            difference = Estimate(row["difference"], row["ci_low"], row["ci_high"])
        rho = None if row["rho"] is None else Estimate(row["rho"], row["rho_low"], row["rho_high"])
        name = ", ".join(filter(None, (row["statistic"], row["unit"])))
        sides = [row["reference"], row["translation"], difference, row["published"], row["verdict"]]
        rows.append([row["table"], f"{row['pairs']:,.0f}", name, *sides, rho, row["rho_published"]])
    head = ["table", "pairs", "", "references", "translations", "difference", "paper", "verdict", "rho", "paper's rho"]
    return Table(head, rows, digits=2)


def trainings(records: Records) -> Table:
    """Make a table with one row per training: its size, its speed, and the KL and active units of its latents."""
    latents: dict[tuple[str, str], list[str]] = {}
    for row in records["scores"]:
        name = row["measure"].removeprefix("validation ")
        if name != row["measure"] and name.startswith(("kl/", "active/")):
            latents.setdefault((row["system"], row["cell"]), []).append(f"{name} {row['value']:.4g}")
    rows = []
    for row in records["cells"]:
        minutes = None if row["seconds"] is None else row["seconds"] / 60
        columns = ("parameters", "updates", "tokens", "tokens_per_second", "epoch_seconds")
        counts = [None if row[name] is None else f"{row[name]:,.0f}" for name in columns]
        state = f"{row['state']}: {row['error']}" if row["error"] else row["state"]
        held_out = ", ".join(latents.get((row["system"], row["cell"]), []))
        rows.append([row["system"], str(row["seed"] or ""), state, *counts[:3], minutes, *counts[3:], held_out])
    head = ["system", "seed", "state", "parameters", "updates", "tokens", "minutes", "tokens per second"]
    return Table([*head, "seconds per epoch", "KL in nats and active units, held-out pairs"], rows)


def settings(records: Records) -> str:
    """Describe in one sentence the settings that all trainings have in common."""
    rows = [row for row in records["cells"] if row["arguments"]]
    if not rows:
        return "No system has been trained."
    overrides = [json.loads(row["overrides"]) for row in rows]
    first = overrides[0].items()
    shared = {name: value for name, value in first if all(other.get(name) == value for other in overrides)}
    common = ", ".join(f"{name}={value}" for name, value in shared.items() if name not in SHOWN_SETTINGS)
    parts = [f"Settings of all trainings: {common}" if common else "Every training has its recipe's own settings"]
    for name, what in (("data", "data (SHA-256)"), ("git", "commits"), ("threads", "threads"), ("machine", "machine")):
        values = list(dict.fromkeys(str(row[name])[:10] if name == "data" else plain(row[name], 0) for row in rows))
        parts.append(f"{what}: {', '.join(values)}")
    return "; ".join(parts) + "."


def page(name: str, records: Records) -> str:
    """Return the Markdown page of a comparison, from its stored results."""
    comparison = COMPARISONS[name]
    table = scores(comparison, records)
    level = records["claims"][0]["level"] if records["claims"] else 0.95
    kind = "pairs" if comparison.measure == ACCURACY else "scores"
    about = [f"{ABOUT[kind]} All intervals are {100 * level:g}% intervals."]
    about += [ABOUT["fidelity"]] if set(names.FIDELITY) & set(table.columns) else []
    about += [ABOUT["sets"]] if comparison.measure == SETS else []
    about += [ABOUT["syntax"]] if set(names.SYNTAX) & set(table.columns) else []
    parts = [f"# {comparison.title}", f"`python -m analysis.reproduce {name}`", comparison.note, settings(records)]
    parts += ["\n".join(about), *section("Scores", table)]
    parts += section("By latent", by_latent(comparison, records), ABOUT["latents"])
    parts += section("Claims of the paper", claims(records), ABOUT["p"])
    parts += section("Differences", differences(comparison, records), ABOUT["p"] if not records["claims"] else "")
    parts += section("Ranges chosen on the dev set", chosen(comparison, records))
    parts += section("How translations differ from references", statistics(records), ABOUT["statistics"])
    parts += section("Trainings", trainings(records))
    return "\n\n".join(filter(None, parts)) + "\n"


def section(title: str, table: Table, about: str = "") -> Sequence[str]:
    """Return a section of the page: title, introduction and table; nothing if the table is empty."""
    return [f"## {title}", *([about] if about else []), "\n".join(markdown(table))] if table.rows else []


def verdicts(records: Records) -> str:
    """Count the verdicts in one line, such as "12 claims: 7 holds, 1 does not hold, 4 not separable"."""
    count = Counter(row["verdict"] for row in records["claims"])
    order = ("holds", "does not hold", "not separable", NOT_RUN)
    return f"{count.total()} claims: " + ", ".join(f"{count[name]} {name}" for name in order if count[name])
