"""Draw the stored results of a comparison, for notebooks and papers.

This needs matplotlib: `pip install "bgt[analysis]"`.
"""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.reproduce.comparisons import F1_GAP, SYNTAX, Comparison
from analysis.reproduce.measure import OF_PAIRS
from analysis.reproduce.results import MEAN, Records
from bgt_core.evaluation.bootstrap import NOT_RUN

OURS, PAPER = "#0072b2", "#d55e00"  # colours of Okabe and Ito, which colour-blind readers can distinguish, also in grey
HOLLOW: dict[str, Any] = {"marker": "D", "markersize": 5, "mfc": "none", "mec": PAPER, "linestyle": "none"}
VERDICTS = {"holds": "o", "does not hold": "X", "not separable": "s"}  # marker of each verdict
SMALL: dict[str, Any] = {"marker": ".", "markersize": 4, "linestyle": "none"}


def systems(comparison: Comparison, records: Records, measure: str = "") -> Figure:
    """Draw one line per system: its score with a confidence interval, the score of each of its trainings, and the
    paper's score. A system that was not trained only has the paper's score. If `measure` is empty, use the main
    measure of the comparison."""
    measure = measure or comparison.measure
    unit = "x 100" if measure in (*SYNTAX, F1_GAP, *OF_PAIRS) else "Pearson x 100"
    figure, axes = sheet([system.name for system in comparison.systems], f"{measure}, {unit}")
    heights = {system.name: height for height, system in enumerate(comparison.systems)}
    paper = {name: numbers.get(measure) for name, numbers in comparison.published.items() if name in heights}
    for row in (row for row in records["scores"] if row["measure"] == measure and row["system"] in heights):
        if row["seed"] == MEAN:
            interval(axes, heights[row["system"]], row)
            paper[row["system"]] = row["published"]
        else:
            axes.plot(row["value"], heights[row["system"]] + 0.25, color=OURS, **SMALL)
    for name, value in paper.items():
        if value is not None:
            axes.plot(value, heights[name], **HOLLOW)
    legend(axes, {"ours": "o"}, [Line2D([], [], color=OURS, label="each training", **SMALL)])
    return figure


def verdicts(records: Records) -> Figure:
    """Draw one line per claim of the paper: our difference in points with its interval, and the paper's difference."""
    names = [row["claim"] + (f" ({NOT_RUN})" if row["verdict"] == NOT_RUN else "") for row in records["claims"]]
    figure, axes = sheet(names, "points")
    axes.axvline(0, color="0.6", linewidth=1)
    for height, row in enumerate(records["claims"]):
        if row["verdict"] in VERDICTS:
            interval(axes, height, row, VERDICTS[row["verdict"]])
        if row["published"] is not None:
            axes.plot(row["published"], height, **HOLLOW)
    legend(axes, VERDICTS)
    return figure


def sheet(names: list[str], unit: str) -> tuple[Figure, Axes]:
    """Return an empty figure with one horizontal line per name, the first at the top."""
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
    """Plot the value of a row and its confidence interval."""
    axes.plot([row["ci_low"], row["ci_high"]], [height, height], color=OURS, linewidth=1.5)
    axes.plot(row["value"], height, mark, color=OURS, markersize=6)


def legend(axes: Axes, ours: dict[str, str], more: Sequence[Line2D] = ()) -> None:
    """Place the legend below the figure, so that it covers no data."""
    marks = [Line2D([], [], color=OURS, marker=mark, label=name) for name, mark in ours.items()]
    marks += [*more, Line2D([], [], label="the paper", **HOLLOW)]
    axes.figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False)
