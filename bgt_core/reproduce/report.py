"""The stored results of a table -> what is read: a Markdown page, and its first table on a terminal.

Nothing is measured here; a page drawn again from the same files is the same page.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from bgt_core.reproduce.experiments import AVERAGE, Table
from bgt_core.reproduce.results import MEAN, NOT_RUN, is_shown, published
from bgt_core.reproduce.stored import Records
from bgt_core.tables import Estimate, markdown, p_text, plain
from bgt_core.tables import Table as Grid

SHOWN_SETTINGS = ("recipe", "langs", "seed", "fuse")  # said in other columns
ABOUT = """\
Pearson x 100 of cosine and gold; the average is the mean over years, a year that over its sets; P@1 is translations
found, in per cent, both ways. In square brackets the interval from a bootstrap over pairs, in round ones the paper's
number, its average over the years that ours has where it states them. Several trainings: their mean, each average."""
ABOUT_P = """\
p is two-sided, of a paired bootstrap over pairs; where a system has several seeds it counts how trainings vary too, and
otherwise it can't. Holm's correction is over all rows of the stored table."""

Row = dict[str, Any]


def scores(table: Table, found: Records) -> Grid:
    """A row a system; an empty cell where it was not trained, or can't be measured."""
    means = {(row["system"], row["measure"]): row for row in found["scores"] if row["seed"] == MEAN}
    columns = [name for name in dict.fromkeys(row["measure"] for row in found["scores"]) if is_shown(name)]
    columns = sorted(columns, key=lambda name: name != AVERAGE)
    rows = []
    for system in table.systems:
        each = [row["value"] for row in found["scores"] if named(row, system.name, AVERAGE) and row["seed"] != MEAN]
        states = Counter(row["state"] for row in found["cells"] if row["system"] == system.name)
        trained = ", ".join(f"{count} {state}" for state, count in states.items())
        cells = [cell(means.get((system.name, name)), published(table, system.name, name, columns)) for name in columns]
        seeds = ", ".join(plain(value, 1) for value in each) if len(each) > 1 else ""
        rows.append([system.name, trained, *cells, seeds])
    return Grid(["system", "trainings", *columns, "average of each"], rows)


def named(row: Row, system: str, measure: str) -> bool:
    return (row["system"], row["measure"]) == (system, measure)


def cell(row: Row | None, stated: float | None) -> str:
    """As in "66.2 [65.0, 67.4] (71.6)"."""
    if row is None:
        return f"({plain(stated, 1)})" if stated is not None else ""
    ours = plain(Estimate(row["value"], row["ci_low"], row["ci_high"]), 1)
    return ours if stated is None else f"{ours} ({plain(stated, 1)})"


def claims(found: Records) -> Grid:
    """A row a claim of the paper."""
    rows = []
    for row in found["claims"]:
        ours = "" if row["value"] is None else plain(Estimate(row["value"], row["ci_low"], row["ci_high"]), 1)
        rows.append([row["claim"], row["where"], row["published"], ours, chance(row["p_holm"]), row["verdict"]])
    return Grid(["the paper's claim", "where", "paper", "ours", "p (Holm)", "verdict"], rows)


def differences(found: Records) -> Grid:
    """A row a difference in the average."""
    rows = []
    for row in found["differences"]:
        if row["measure"] == AVERAGE:
            gap = Estimate(row["difference"], row["ci_low"], row["ci_high"])
            rows.append([f"{row['first']} - {row['second']}", gap, chance(row["p"]), chance(row["p_holm"])])
    return Grid(["STS average", "points", "p", "p (Holm)"], rows)


def chance(p: float | None) -> str:
    """Nothing where there was no test."""
    return "" if p is None else p_text(p)


def trainings(found: Records) -> Grid:
    """A row a training: what it took, and what its latents hold."""
    valid: dict[tuple[str, str], list[str]] = {}
    for row in found["scores"]:
        name = row["measure"].removeprefix("validation ")
        if name != row["measure"] and name.startswith(("kl/", "active/")):
            valid.setdefault((row["system"], row["cell"]), []).append(f"{name} {row['value']:.4g}")
    rows = []
    for row in found["cells"]:
        minutes = None if row["seconds"] is None else row["seconds"] / 60
        counts = [None if row[name] is None else f"{row[name]:,.0f}" for name in ("parameters", "updates", "tokens")]
        speed = [None if row[name] is None else f"{row[name]:,.0f}" for name in ("tokens_per_second", "epoch_seconds")]
        state = f"{row['state']}: {row['error']}" if row["error"] else row["state"]
        held = ", ".join(valid.get((row["system"], row["cell"]), []))
        rows.append([row["system"], str(row["seed"] or ""), state, *counts, minutes, *speed, held])
    head = ["system", "seed", "state", "parameters", "updates", "tokens", "minutes", "tokens a second"]
    return Grid([*head, "seconds an epoch", "KL in nats and active units, held-out pairs"], rows)


def settings(found: Records) -> str:
    """What the trainings have in common, in words."""
    rows = [row for row in found["cells"] if row["arguments"]]
    if not rows:
        return "No system has been trained."
    each = [json.loads(row["overrides"]) for row in rows]
    common = {name: value for name, value in each[0].items() if all(one.get(name) == value for one in each)}
    said = ", ".join(f"{name}={value}" for name, value in common.items() if name not in SHOWN_SETTINGS)
    parts = [f"Set in every training: {said}" if said else "Every training has its recipe's own settings"]
    for name, what in (("data", "data (SHA-256)"), ("git", "code"), ("threads", "threads"), ("machine", "machine")):
        values = list(dict.fromkeys(str(row[name])[:10] if name == "data" else plain(row[name], 0) for row in rows))
        parts.append(f"{what}: {', '.join(values)}")
    return "; ".join(parts) + "."


def page(name: str, table: Table, found: Records) -> str:
    """The Markdown page of a table."""
    level = f"{100 * found['claims'][0]['level']:g}%" if found["claims"] else "95%"
    parts = [f"# {table.title}", f"`bgt reproduce {name}`", *([table.note] if table.note else []), settings(found)]
    parts += [f"{ABOUT} Intervals are of {level}.", *section("Scores", scores(table, found))]
    parts += section("What the paper claims", claims(found), ABOUT_P)
    parts += section("Differences", differences(found), ABOUT_P if not found["claims"] else "")
    parts += section("Trainings", trainings(found))
    return "\n\n".join(parts) + "\n"


def section(title: str, grid: Grid, about: str = "") -> Sequence[str]:
    """Nothing where the table is empty."""
    return [f"## {title}", *([about] if about else []), "\n".join(markdown(grid))] if grid.rows else []


def verdicts(found: Records) -> str:
    """In one line: "12 claims: 7 holds, 1 does not hold, 4 not separable"."""
    count = Counter(row["verdict"] for row in found["claims"])
    order = ("holds", "does not hold", "not separable", NOT_RUN)
    return f"{count.total()} claims: " + ", ".join(f"{count[name]} {name}" for name in order if count[name])
