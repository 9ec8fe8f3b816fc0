"""The stored results of a comparison -> what people read: a Markdown page, and its first table on a terminal.

Nothing is measured here; a page drawn again from the same files is the same page.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bgt_core import tables
from bgt_core.reproduce.experiments import AVERAGE, FIDELITY, Comparison
from bgt_core.reproduce.results import MEAN, NOT_RUN, is_shown, published
from bgt_core.reproduce.stored import Records
from bgt_core.tables import Estimate, Table, markdown, plain

if TYPE_CHECKING:
    from bgt_core.tables import Value

SHOWN_SETTINGS = ("recipe", "langs", "seed", "fuse")  # shown in other columns
ABOUT = """\
Pearson x 100 of cosine and gold; the average is the mean over years, a year that over its sets; P@1 is translations
found, in per cent, both ways. In square brackets the interval from a bootstrap over pairs, in round ones the paper's
number, its average over the years that ours has where it states them. Several trainings: their mean, each average."""
ABOUT_FIDELITY = """
Of 300 translations written anew, means of both languages: chrF and, in per cent, exact matches from their own latents;
chrF with the meaning of the other language in the manner of the reference, and of a random sentence (beam 4,
lower-cased)."""
ABOUT_P = """\
p is two-sided, of a paired bootstrap over pairs; where a system has several seeds it counts how trainings vary too, and
otherwise it can't. Holm's correction is over all rows of the stored table."""

Record = dict[str, Any]


def scores(comparison: Comparison, records: Records) -> Table:
    """One row per system; an empty cell where it was not trained, or can't be measured."""
    means = {(row["system"], row["measure"]): row for row in records["scores"] if row["seed"] == MEAN}
    columns = [name for name in dict.fromkeys(row["measure"] for row in records["scores"]) if is_shown(name)]
    columns = sorted(columns, key=lambda name: name != AVERAGE)
    rows: list[list[Value]] = []
    for system in comparison.systems:
        by_seed = [
            row["value"]
            for row in records["scores"]
            if (row["system"], row["measure"]) == (system.name, AVERAGE) and row["seed"] != MEAN
        ]
        states = Counter(row["state"] for row in records["cells"] if row["system"] == system.name)
        trained = ", ".join(f"{count} {state}" for state, count in states.items())
        values = [
            beside_paper(means.get((system.name, name)), published(comparison, system.name, name, columns))
            for name in columns
        ]
        seeds = ", ".join(plain(value, 1) for value in by_seed) if len(by_seed) > 1 else ""
        rows.append([system.name, trained, *values, seeds])
    return Table(["system", "trainings", *columns, "average of each"], rows)


def beside_paper(row: Record | None, paper: float | None) -> str:
    """As in "66.2 [65.0, 67.4] (71.6)"."""
    if row is None:
        return f"({plain(paper, 1)})" if paper is not None else ""
    ours = plain(Estimate(row["value"], row["ci_low"], row["ci_high"]), 1)
    return ours if paper is None else f"{ours} ({plain(paper, 1)})"


def claims(records: Records) -> Table:
    """One row per claim of the paper."""
    rows = []
    for row in records["claims"]:
        ours = "" if row["value"] is None else plain(Estimate(row["value"], row["ci_low"], row["ci_high"]), 1)
        rows.append([row["claim"], row["where"], row["published"], ours, p_text(row["p_holm"]), row["verdict"]])
    return Table(["the paper's claim", "where", "paper", "ours", "p (Holm)", "verdict"], rows)


def differences(records: Records) -> Table:
    """One row per difference in the average."""
    rows: list[list[Value]] = []
    for row in records["differences"]:
        if row["measure"] == AVERAGE:
            difference = Estimate(row["difference"], row["ci_low"], row["ci_high"])
            rows.append([f"{row['first']} - {row['second']}", difference, p_text(row["p"]), p_text(row["p_holm"])])
    return Table(["STS average", "points", "p", "p (Holm)"], rows)


def p_text(p: float | None) -> str:
    """Nothing where there was no test."""
    return "" if p is None else tables.p_text(p)


def trainings(records: Records) -> Table:
    """One row per training: what it took, and what its latents hold."""
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
    """The settings that all trainings share, in a sentence."""
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


def page(name: str, comparison: Comparison, records: Records) -> str:
    """The Markdown page of a comparison."""
    level = f"{100 * records['claims'][0]['level']:g}%" if records["claims"] else "95%"
    note = [comparison.note] if comparison.note else []
    parts = [f"# {comparison.title}", f"`bgt reproduce {name}`", *note, settings(records)]
    table = scores(comparison, records)
    rewritten = ABOUT_FIDELITY if set(FIDELITY) & set(table.columns) else ""
    parts += [f"{ABOUT} Intervals are of {level}.{rewritten}", *section("Scores", table)]
    parts += section("What the paper claims", claims(records), ABOUT_P)
    parts += section("Differences", differences(records), ABOUT_P if not records["claims"] else "")
    parts += section("Trainings", trainings(records))
    return "\n\n".join(parts) + "\n"


def section(title: str, table: Table, about: str = "") -> Sequence[str]:
    """Nothing where the table is empty."""
    return [f"## {title}", *([about] if about else []), "\n".join(markdown(table))] if table.rows else []


def verdicts(records: Records) -> str:
    """In one line: "12 claims: 7 holds, 1 does not hold, 4 not separable"."""
    count = Counter(row["verdict"] for row in records["claims"])
    order = ("holds", "does not hold", "not separable", NOT_RUN)
    return f"{count.total()} claims: " + ", ".join(f"{count[name]} {name}" for name in order if count[name])
