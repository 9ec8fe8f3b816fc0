"""Format the stored results of a comparison for readers: a Markdown page, and its first table on the terminal.

Nothing is measured here: the same files give the same page.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analysis.reproduce.comparisons import (
    AVERAGE,
    COMPARISONS,
    DEV,
    EDITS,
    F1,
    FIDELITY,
    SETS,
    SYNTAX,
    TAGS,
    Comparison,
)
from analysis.reproduce.results import MEAN, Records, is_shown, published
from bgt_core import tables
from bgt_core.contracts import SEMANTIC, SYNTACTIC
from bgt_core.evaluation.bootstrap import NOT_RUN
from bgt_core.evaluation.tasks.pairs import ACCURACY
from bgt_core.tables import Estimate, Table, markdown, plain

if TYPE_CHECKING:
    from bgt_core.tables import Value

SHOWN_SETTINGS = ("recipe", "langs", "seed", "fuse")  # settings shown in other columns
ABOUT = """\
Pearson x 100 of cosine and gold; the average is the mean over years, a year that over its sets; P@1 is translations
found, in per cent, both ways. In square brackets the interval from a bootstrap over pairs, in round ones the paper's
number, its average over the years that ours has where it states them. Several trainings: their mean, each average."""
ABOUT_FIDELITY = """
Of 300 translations written anew, means of both languages: chrF and, in per cent, exact matches from their own latents;
chrF with the meaning of the other language in the style of the reference, and of a random sentence (beam 4,
lower-cased)."""
ABOUT_SETS = """
The mean of sets is of all data sets of the years, and SICK, each counted once; the paper's has STS 2012-2015 with SMT,
SemEval-2015's Twitter and SICK's test set."""
ABOUT_SYNTAX = """
Of parsed sentences and their nearest neighbours of the same number of words, x 100, as `bgt evaluate syntax` has them:
labelled F1 of constituents, edits per 100 nodes of both trees (lower is better), parts of speech that agree."""
ABOUT_PAIRS = """\
x 100, of labelled pairs: accuracy, and AUC, the area under the ROC curve, by each way to compare two posteriors (w2 is
Wasserstein-2, wmd Word Mover's Distance, probability the trained classifier's). In square brackets the interval from a
bootstrap over pairs, in round ones the paper's number. Several trainings: their mean."""
ABOUT_LATENTS = "Each measure of one training, by both latents; a system with one latent has one."
ABOUT_STATISTICS = """\
For the random pairs. A difference is reference minus translation, with a bootstrap interval over pairs. Rho is
Spearman's, x 100, of translations with the probability that people wrote them, where a classifier was trained. The
paper says that translations repeat more, and use more frequent words: a verdict is by the interval."""
ABOUT_P = """\
p is two-sided, of a paired bootstrap over pairs; where a system has several seeds it counts how trainings vary too, and
otherwise it can't. Holm's correction is over all rows of the stored table."""

Record = dict[str, Any]


def scores(comparison: Comparison, records: Records) -> Table:
    """Return one row per system; a cell is empty if the system was not trained, or lacks the measure."""
    means = {(row["system"], row["measure"]): row for row in records["scores"] if row["seed"] == MEAN}
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
    return Table(["system", "trainings", *columns, f"{comparison.measure.removeprefix('STS ')} of each"], rows)


def by_latent(comparison: Comparison, records: Records) -> Table:
    """Return one row per system that is measured in its semantic latent, with both latents' scores; empty if no system
    has both."""
    means = {(row["system"], row["measure"]): row for row in records["scores"] if row["seed"] == MEAN}
    other = {system.against: system.name for system in comparison.systems if system.latent == SYNTACTIC}
    measures = [measure for measure in (DEV, F1, AVERAGE, EDITS, TAGS) if any(key[1] == measure for key in means)]
    rows: list[list[Value]] = [
        [
            system.name,
            *(
                beside_paper(means.get((name, measure)), comparison.published.get(name, {}).get(measure))
                for measure in measures
                for name in (system.name, other.get(system.name, ""))
            ),
        ]
        for system in comparison.systems
        if other and system.latent == SEMANTIC
    ]
    return Table(
        ["system", *(f"{measure}, {latent}" for measure in measures for latent in (SEMANTIC, SYNTACTIC))], rows
    )


def beside_paper(row: Record | None, paper: float | None) -> str:
    """Format a score as in "66.2 [65.0, 67.4] (71.6)", with the paper's number last."""
    if row is None:
        return f"({plain(paper, 1)})" if paper is not None else ""
    ours = plain(Estimate(row["value"], row["ci_low"], row["ci_high"]), 1)
    return ours if paper is None else f"{ours} ({plain(paper, 1)})"


def claims(records: Records) -> Table:
    """Return one row per claim of the paper."""
    rows = []
    for row in records["claims"]:
        ours = "" if row["value"] is None else plain(Estimate(row["value"], row["ci_low"], row["ci_high"]), 1)
        rows.append([row["claim"], row["where"], row["published"], ours, p_text(row["p_holm"]), row["verdict"]])
    return Table(["the paper's claim", "where", "paper", "ours", "p (Holm)", "verdict"], rows)


def differences(comparison: Comparison, records: Records) -> Table:
    """Return one row per difference in the comparison's measure."""
    rows: list[list[Value]] = []
    for row in records["differences"]:
        if row["measure"] == comparison.measure:
            difference = Estimate(row["difference"], row["ci_low"], row["ci_high"])
            rows.append([f"{row['first']} - {row['second']}", difference, p_text(row["p"]), p_text(row["p_holm"])])
    return Table([comparison.measure, "points", "p", "p (Holm)"], rows)


def chosen(comparison: Comparison, records: Records) -> Table:
    """Return the candidates of each system that is the best of several, with their dev-set scores and the choice."""
    cells = {(row["system"], row["cell"]) for row in records["cells"]}
    dev = {row["system"]: row["value"] for row in records["scores"] if (row["seed"], row["measure"]) == (MEAN, DEV)}
    rows: list[list[Value]] = []
    for system in comparison.systems:
        own = {cell for name, cell in cells if name == system.name}
        for name in system.best_of if own else ():
            is_chosen = {cell for other, cell in cells if other == name} == own
            rows.append([system.name, name, dev.get(name), "chosen" if is_chosen else ""])
    return Table(["system", "one of", DEV, ""], rows)


def statistics(records: Records) -> Table:
    """Return one row per table and statistic."""
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


def p_text(p: float | None) -> str:
    """Format a p-value; "" without a test."""
    return "" if p is None else tables.p_text(p)


def trainings(records: Records) -> Table:
    """Return one row per training: its size and speed, and the KL and active units of its latents."""
    latents: dict[tuple[str, str], list[str]] = {}
    for row in records["scores"]:
        name = row["measure"].removeprefix("validation ")
        if name != row["measure"] and name.startswith(("kl/", "active/")):
            latents.setdefault((row["system"], row["cell"]), []).append(f"{name} {row['value']:.4g}")
    rows = []
    for row in records["cells"]:
        minutes = None if row["seconds"] is None else row["seconds"] / 60
        counts = [None if row[name] is None else f"{row[name]:,.0f}" for name in ("parameters", "updates", "tokens")]
        speed = [None if row[name] is None else f"{row[name]:,.0f}" for name in ("tokens_per_second", "epoch_seconds")]
        state = f"{row['state']}: {row['error']}" if row["error"] else row["state"]
        held = ", ".join(latents.get((row["system"], row["cell"]), []))
        rows.append([row["system"], str(row["seed"] or ""), state, *counts, minutes, *speed, held])
    head = ["system", "seed", "state", "parameters", "updates", "tokens", "minutes", "tokens a second"]
    return Table([*head, "seconds an epoch", "KL in nats and active units, held-out pairs"], rows)


def settings(records: Records) -> str:
    """Describe the settings that all trainings share, in one sentence."""
    rows = [row for row in records["cells"] if row["arguments"]]
    if not rows:
        return "No system has been trained."
    overrides = [json.loads(row["overrides"]) for row in rows]
    shared = {
        name: value for name, value in overrides[0].items() if all(other.get(name) == value for other in overrides)
    }
    common = ", ".join(f"{name}={value}" for name, value in shared.items() if name not in SHOWN_SETTINGS)
    parts = [f"Set in every training: {common}" if common else "Every training has its recipe's own settings"]
    for name, what in (("data", "data (SHA-256)"), ("git", "code"), ("threads", "threads"), ("machine", "machine")):
        values = list(dict.fromkeys(str(row[name])[:10] if name == "data" else plain(row[name], 0) for row in rows))
        parts.append(f"{what}: {', '.join(values)}")
    return "; ".join(parts) + "."


def page(name: str, records: Records) -> str:
    """Return the Markdown page of a comparison, from its stored results."""
    comparison = COMPARISONS[name]
    level = f"{100 * records['claims'][0]['level']:g}%" if records["claims"] else "95%"
    note = [comparison.note] if comparison.note else []
    parts = [f"# {comparison.title}", f"`python -m analysis.reproduce {name}`", *note, settings(records)]
    table = scores(comparison, records)
    rewritten = ABOUT_FIDELITY if set(FIDELITY) & set(table.columns) else ""
    rewritten += ABOUT_SETS if comparison.measure == SETS else ""
    rewritten += ABOUT_SYNTAX if set(SYNTAX) & set(table.columns) else ""
    about = ABOUT_PAIRS if comparison.measure == ACCURACY else ABOUT
    parts += [f"{about} Intervals are of {level}.{rewritten}", *section("Scores", table)]
    parts += section("By latent", by_latent(comparison, records), ABOUT_LATENTS)
    parts += section("What the paper claims", claims(records), ABOUT_P)
    parts += section("Differences", differences(comparison, records), ABOUT_P if not records["claims"] else "")
    parts += section("Ranges chosen", chosen(comparison, records))
    parts += section("How translations differ from references", statistics(records), ABOUT_STATISTICS)
    parts += section("Trainings", trainings(records))
    return "\n\n".join(parts) + "\n"


def section(title: str, table: Table, about: str = "") -> Sequence[str]:
    """Return the lines of a section; empty if the table is empty."""
    return [f"## {title}", *([about] if about else []), "\n".join(markdown(table))] if table.rows else []


def verdicts(records: Records) -> str:
    """Return one line such as "12 claims: 7 holds, 1 does not hold, 4 not separable"."""
    count = Counter(row["verdict"] for row in records["claims"])
    order = ("holds", "does not hold", "not separable", NOT_RUN)
    return f"{count.total()} claims: " + ", ".join(f"{count[name]} {name}" for name in order if count[name])
