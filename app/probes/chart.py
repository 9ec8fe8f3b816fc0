"""Draw results of probes: each latent's accuracy beside the best baseline, or the difference of the two latents.

The names of rows are above their marks, so that the figure fits on a phone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from app.core.results import task_names
from app.core.results.reading import language_names
from app.core.theme import (
    EDGE,
    INK,
    PAGE,
    PIXELS,
    REST,
    SOFT,
    bars,
    finish,
    lang_colour,
    lang_symbol,
    latent_colour,
    plain,
)
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from probes.result import is_baseline

# symbols of the latents; other rows are baselines
LATENTS = {SEMANTIC: "circle", LANGUAGE: "diamond", SYNTACTIC: "diamond"}
LINE = ["task", "lang", "model", "mark"]  # columns that identify a line of a figure
RUN_HERE = "Run here"
BASELINE = "best baseline"
PAPER = "the paper"
UNIT = 25  # pixels of a row
HIGHLIGHT = "rgba(230, 159, 0, 0.16)"  # behind results that were run here
GRID = "rgba(128, 128, 128, 0.25)"


@dataclass
class Lines:
    """The rows of a figure, from y = 0 downwards; a row of height 1 has `UNIT` pixels."""

    figure: go.Figure
    theme: str
    total: float = 0.0
    grid: list[float] = field(default_factory=list)
    # added to the figure all at once, because it copies everything at each addition
    texts: list[dict[str, Any]] = field(default_factory=list)
    bands: list[dict[str, Any]] = field(default_factory=list)

    def heading(self, text: str, ticks: tuple[int, ...]) -> None:
        """Add a heading for the rows below it, with the values of the x axis."""
        y = self._take(0.9)
        self._write(f"<b>{plain(text)}</b>", y, PIXELS["title"])
        font = {"size": 11, "color": SOFT[self.theme]}
        self.texts += [{"x": tick, "y": y, "text": str(tick), "showarrow": False, "font": font} for tick in ticks]

    def row(self, name: str, mark: str = "", live: bool = False) -> float:
        """Add a row, and return the y of its marks; `mark`, on its own line, distinguishes results of the same name."""
        height = 1.5 if mark else 1
        middle = self._take(height)
        if live:
            ends = {"y0": middle - height / 2, "y1": middle + height / 2}
            band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, **ends, "fillcolor": HIGHLIGHT}
            self.bands.append({**band, "line": {"width": 0}, "layer": "below"})
        lines = [name, f'<span style="font-size:11px">{plain(mark)}</span>'] if mark else [name]
        self._write("<br>".join(lines), middle + 0.22, PIXELS["small"])
        self.grid.append(middle - height / 2 + 0.24)
        return self.grid[-1]

    def finished(self, title: str) -> go.Figure:
        figure = finish(self.figure, title, round(130 + UNIT * self.total), self.theme)
        figure.layout.annotations += tuple(map(go.layout.Annotation, self.texts))
        figure.layout.shapes += tuple(map(go.layout.Shape, self.bands))
        figure.update_yaxes(
            range=[-self.total, 0], tickvals=self.grid, showticklabels=False, gridcolor=GRID, zeroline=False, title=None
        )
        figure.update_xaxes(showgrid=True, gridcolor=GRID, zeroline=False)
        return figure

    def _take(self, height: float) -> float:
        """Make room for a row, and return its middle."""
        self.total += height
        return -self.total + height / 2

    def _write(self, text: str, y: float, size: int) -> None:
        place = {"x": 0, "xref": "paper", "xanchor": "left", "y": y, "align": "left", "showarrow": False}
        font = {"size": size, "color": INK[self.theme]}
        # without a border, so that a name does not cover the name above it
        self.texts.append({**place, "text": text, "font": font, "bgcolor": PAGE[self.theme], "borderpad": 0})


def probe_dots(scores: pd.DataFrame, theme: str = "light") -> go.Figure:
    """Draw each latent's accuracy with its interval, and a tick for the best baseline; its hover text lists all.

    `scores` has the columns `gather.SCORES`. There is one line per result: first results that were run here, then by
    group of the task and by the lead of the semantic latent.
    """
    values = scores[scores["latent"].isin(list(LATENTS))].pivot_table("accuracy", LINE, "latent", sort=False)
    second = values[[name for name in (LANGUAGE, SYNTACTIC) if name in values]].bfill(axis=1)
    leads = values.get(SEMANTIC, 0) - (second.iloc[:, 0] if len(second.columns) else 0)
    results = scores.drop_duplicates(LINE)[[*LINE, "live"]].merge(leads.rename("lead").reset_index(), "left", LINE)
    figure = go.Figure()
    lines, y = placed(figure, results, (25, 50, 75, 100), theme)
    several = scores["model"].nunique() > 1
    for latent in [latent for latent in LATENTS if latent in set(scores["latent"])]:
        part = scores[scores["latent"] == latent]
        figure.add_trace(
            go.Scatter(
                x=100 * part["accuracy"],
                y=[y[key(row)] for row in part.itertuples()],
                name=plain(latent),
                mode="markers",
                marker=edge(LATENTS[latent], latent_colour(latent, theme)),
                error_x=bars(100 * part["accuracy"], 100 * part["ci_low"], 100 * part["ci_high"]),
                text=[label(row, several) for row in part.itertuples()],
                hovertemplate="%{text}<br>" + plain(latent) + " %{x:.1f}<extra></extra>",
            )
        )
    rivals = [is_baseline(name, list(LATENTS)) for name in scores["latent"]]
    baselines = scores[rivals].sort_values("accuracy", ascending=False)
    best = baselines.drop_duplicates(LINE)
    texts = {
        name: "<br>".join(f"{plain(row.latent)} {100 * row.accuracy:.1f}" for row in part.itertuples())
        for name, part in baselines.groupby(LINE)
    }
    figure.add_trace(
        go.Scatter(
            x=100 * best["accuracy"],
            y=[y[key(row)] for row in best.itertuples()],
            name=BASELINE,
            mode="markers",
            marker={"size": 16, "symbol": "line-ns", "line": {"width": 2.5, "color": SOFT[theme]}},
            text=[texts[key(row)] for row in best.itertuples()],
            hovertemplate="Baselines<br>%{text}<extra></extra>",
            visible=len(best) > 0,
        )
    )
    figure = lines.finished("Test accuracy, %, with 95% intervals")
    figure.update_xaxes(title=None, range=[0, 100], dtick=25)
    return figure


def gap_dots(gaps: pd.DataFrame, theme: str = "light") -> go.Figure:
    """Draw the difference between semantic and second latent in points, with intervals, in the colour and symbol of the
    language, and the paper's difference, open and grey. `gaps` comes from `results.with_paper`."""
    figure = go.Figure()
    figure.add_vline(0, line={"color": REST, "width": 1.5})
    lines, y = placed(figure, gaps.assign(lead=gaps["points"]), (), theme)
    several = gaps["model"].nunique() > 1
    for lang, part in gaps.groupby("lang", sort=False):
        figure.add_trace(
            go.Scatter(
                x=part["points"],
                y=[y[key(row)] for row in part.itertuples()],
                name=plain(language_names(lang)),
                mode="markers",
                marker=edge(lang_symbol(lang), lang_colour(lang, theme)),
                error_x=bars(part["points"], part["ci_low"], part["ci_high"]),
                text=[label(row, several) for row in part.itertuples()],
                hovertemplate="%{text}: %{x:+.1f} points<extra></extra>",
            )
        )
    published = gaps.dropna(subset=["paper_gap"])
    symbols = [f"{lang_symbol(lang)}-open" for lang in published["lang"]]
    figure.add_trace(
        go.Scatter(
            x=published["paper_gap"],
            y=[y[key(row)] for row in published.itertuples()],
            name=PAPER,
            mode="markers",
            marker={"size": 10, "symbol": symbols, "color": SOFT[theme], "line": {"width": 1.5}},
            hovertemplate="the paper: %{x:+.1f} points<extra></extra>",
            visible=len(published) > 0,
        )
    )
    figure = lines.finished("Difference of accuracies, points, with 95% intervals")
    figure.update_xaxes(title_text=f"← {' or '.join(gaps['second'].unique())} · semantic →")
    return figure


def placed(
    figure: go.Figure, results: pd.DataFrame, ticks: tuple[int, ...], theme: str
) -> tuple[Lines, dict[tuple[str, ...], float]]:
    """Write the names of `results` (columns `LINE`, live and lead) in order, with `ticks` in the headings; also return
    the y of each result."""
    lines, y = Lines(figure, theme), {}
    several = results["model"].nunique() > 1
    for group, part in in_order(results).groupby("group", sort=False):
        lines.heading(str(group), ticks)
        for row in part.itertuples():
            y[key(row)] = lines.row(label(row, several), row.mark, row.live)
    return lines, y


def in_order(results: pd.DataFrame) -> pd.DataFrame:
    """Sort results, and add a column `group`: first those run here, in their order, then by group of the task, mean
    lead of the task, and own lead."""
    names = [RUN_HERE, *task_names.GROUPS, task_names.OTHERS]
    groups = [RUN_HERE if row.live else task_names.group(row.task) for row in results.itertuples()]
    means = results.groupby("task")["lead"].transform("mean")
    results = results.assign(group=groups, place=[names.index(group) for group in groups], mean=means)
    live, stored = results[results["place"] == 0], results[results["place"] > 0]
    order = {"place": True, "mean": False, "task": True, "lead": False}
    return pd.concat([live, stored.sort_values([*order], ascending=[*order.values()], kind="stable")])


def key(row: Any) -> tuple[str, ...]:
    return row.task, row.lang, row.model, row.mark


def label(row: Any, several: bool) -> str:
    """Return the name of a line of a figure, with the model if there are several."""
    return plain(" · ".join([task_names.title(row.task), language_names(row.lang), *([row.model] if several else [])]))


def edge(symbol: str, colour: str) -> dict[str, object]:
    """Return the style of a filled mark with a thin edge."""
    return {"size": 11, "symbol": symbol, "color": colour, "line": {"width": 0.6, "color": EDGE}}
