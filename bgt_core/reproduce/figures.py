"""The stored results of a table as figures, for notebooks and papers.

They need matplotlib: `pip install "bgt[analysis]"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bgt_core.reproduce.experiments import AVERAGE, Table
from bgt_core.reproduce.results import MEAN, NOT_RUN
from bgt_core.reproduce.stored import Records

OURS, PAPER = "#0072b2", "#d55e00"  # of Okabe and Ito: told apart by all eyes, and in grey
VERDICTS = {"holds": "o", "does not hold": "X", "not separable": "s"}  # a verdict's mark
HOLLOW = {"marker": "D", "markersize": 5, "markerfacecolor": "none", "markeredgecolor": PAPER, "linestyle": "none"}
SMALL = {"marker": ".", "markersize": 4, "linestyle": "none"}


def systems(table: Table, found: Records, measure: str = AVERAGE) -> Figure:
    """A line a system: its score, the interval over pairs, each training below it, the paper's number.

    A system that was not trained, or can't be measured so, has no mark of ours.
    """
    figure, axes = sheet([system.name for system in table.systems], f"{measure}, Pearson x 100")
    line = {system.name: height for height, system in enumerate(table.systems)}
    stated = {name: numbers.get(measure) for name, numbers in table.published.items() if name in line}
    for row in (row for row in found["scores"] if row["measure"] == measure):
        if row["seed"] == MEAN:
            interval(axes, line[row["system"]], row)
            stated[row["system"]] = row["published"]
        else:
            axes.plot(row["value"], line[row["system"]] + 0.25, color=OURS, **SMALL)
    for name, value in stated.items():
        if value is not None:
            axes.plot(value, line[name], **HOLLOW)
    legend(axes, {"ours": "o"}, [Line2D([], [], color=OURS, label="each training", **SMALL)])
    return figure


def verdicts(found: Records) -> Figure:
    """A line a claim of the paper: by how much it is so here, in points, with the interval; and in the paper."""
    names = [row["claim"] + (f" ({NOT_RUN})" if row["verdict"] == NOT_RUN else "") for row in found["claims"]]
    figure, axes = sheet(names, "points")
    axes.axvline(0, color="0.6", linewidth=1)
    for height, row in enumerate(found["claims"]):
        if row["verdict"] in VERDICTS:
            interval(axes, height, row, VERDICTS[row["verdict"]])
        if row["published"] is not None:
            axes.plot(row["published"], height, **HOLLOW)
    legend(axes, VERDICTS)
    return figure


def sheet(names: list[str], unit: str) -> tuple[Figure, Axes]:
    """An empty figure with a line a name, the first at the top."""
    figure = Figure(figsize=(8, 1.1 + 0.36 * len(names)), dpi=110, layout="constrained")
    axes = figure.subplots()
    axes.set_yticks(range(len(names)), [fill(name, 46) for name in names])
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.set_xlabel(unit)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return figure, axes


def interval(axes: Axes, height: int, row: dict[str, float], mark: str = "o") -> None:
    axes.plot([row["ci_low"], row["ci_high"]], [height, height], color=OURS, linewidth=1.5)
    axes.plot(row["value"], height, mark, color=OURS, markersize=6)


def legend(axes: Axes, ours: dict[str, str], more: Sequence[Line2D] = ()) -> None:
    """Below the figure, so that it hides nothing."""
    marks = [Line2D([], [], color=OURS, marker=mark, label=name) for name, mark in ours.items()]
    marks += [*more, Line2D([], [], label="the paper", **HOLLOW)]
    axes.figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False)
