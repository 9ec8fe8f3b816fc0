"""Stored results of probes as figures, for notebooks and papers; they need `pip install "bgt[analysis]"`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bgt_core.tables.figures import HOLLOW, OURS, PAPER, interval, legend, sheet
from probes.results.languages import LanguageGap, by_task
from probes.results.separation import Line

COLOURS = {"the paper": PAPER, "ours": OURS}
COLUMNS = 3  # panels side by side
MARKS = {"semantic": "o", "language": "X", "neither": "s"}  # by the latent that holds more


def separation_dots(lines: Sequence[Line]) -> Figure:
    """One line per task and language: semantic minus language in points, its interval, and the paper's difference."""
    figure, axes = sheet([f"{line.difference.task}, {line.difference.lang}" for line in lines], "points")
    axes.axvline(0, color="0.6", linewidth=1)
    for height, line in enumerate(lines):
        gap = line.difference
        interval(axes, height, {"value": gap.points, "ci_low": gap.ci_low, "ci_high": gap.ci_high}, MARKS[line.holds])
        if line.paper:
            axes.plot(line.paper.gap, height, **HOLLOW)
    legend(axes, {f"holds more: {name}": mark for name, mark in MARKS.items()})
    return figure


def gaps_by_distance(gaps: Mapping[str, Sequence[LanguageGap]], distance: Mapping[str, float], axis: str) -> Figure:
    """A panel for each task: its gap against the distance of each language; `gaps` are "the paper" and "ours"."""
    tasks = list(dict.fromkeys(gap.task for some in gaps.values() for gap in some))
    rows = -(-len(tasks) // COLUMNS)
    figure = Figure(figsize=(8, 0.8 + 1.7 * rows), dpi=110, layout="constrained")
    panels = figure.subplots(rows, COLUMNS, sharex=True, squeeze=False).ravel()
    for panel in panels[len(tasks) :]:
        panel.set_visible(False)
    for panel, task in zip(panels, tasks, strict=False):
        panel.axhline(0, color="0.6", linewidth=1)
        panel.margins(0.15)
        panel.set_title(task, fontsize=9)
        panel.tick_params(labelsize=8, labelbottom=True)
        for name, some in gaps.items():
            for lang, gap in by_task(some).get(task, {}).items():
                if lang in distance:
                    at = distance[lang], gap.points
                    panel.errorbar(*at, 1.96 * gap.error, color=COLOURS[name], marker=".")
                    panel.annotate(lang, at, (3, 3), textcoords="offset points", fontsize=7, color=COLOURS[name])
    figure.supxlabel(axis, fontsize=9)
    figure.supylabel("semantic minus language, points", fontsize=9)
    marks = [Line2D([], [], color=COLOURS[name], marker=".", linestyle="none", label=name) for name in gaps]
    figure.legend(handles=marks, loc="outside upper right", ncols=len(marks), frameon=False, fontsize=9)
    return figure
