"""Figures of our numbers and published ones; they need `pip install "bgt[analysis]"`."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

OURS, PAPER = "#0072b2", "#d55e00"  # colours by Okabe and Ito: distinct for colour-blind readers and in grey
HOLLOW: dict[str, Any] = {
    "marker": "D",
    "markersize": 5,
    "markerfacecolor": "none",
    "markeredgecolor": PAPER,
    "linestyle": "none",
}


def sheet(names: list[str], unit: str) -> tuple[Figure, Axes]:
    """An empty figure with one line per name, the first at the top."""
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
    """Plot the value of a row with its interval."""
    axes.plot([row["ci_low"], row["ci_high"]], [height, height], color=OURS, linewidth=1.5)
    axes.plot(row["value"], height, mark, color=OURS, markersize=6)


def legend(axes: Axes, ours: dict[str, str], more: Sequence[Line2D] = ()) -> None:
    """Put the legend below the figure, where it covers nothing."""
    marks = [Line2D([], [], color=OURS, marker=mark, label=name) for name, mark in ours.items()]
    marks += [*more, Line2D([], [], label="the paper", **HOLLOW)]
    axes.figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False)
