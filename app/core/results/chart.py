"""Accuracies of probes on each latent, beside the best baseline, and their learning curves.

A figure of many rows has their names above their marks, so that a phone is wide enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from app.core.results import task_names
from app.core.rows import language_name
from app.core.theme import EDGE, INK, PAGE, PIXELS, SOFT, SYMBOLS, bars, cycled, finish, latent_colour, plain
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from bgt_core.data.columns import split_langs
from probes.result import is_baseline

# symbols of the latents; other rows are baselines
LATENTS = {SEMANTIC: "circle", LANGUAGE: "diamond", SYNTACTIC: "diamond"}
LINE = ["task", "lang", "model", "mark"]  # columns that identify a line of the figure
RUN_HERE = "Run here"
BASELINE = "best baseline"
UNIT = 33  # pixels
SLIM = 0.39  # height of a slim row
HIGHLIGHT = "rgba(230, 159, 0, 0.16)"  # behind results that were run here
GRID = "rgba(128, 128, 128, 0.25)"


@dataclass
class Lines:
    """Rows from the top down, at y of 0 and below; a row of height 1 takes `UNIT` pixels."""

    figure: go.Figure
    theme: str
    total: float = 0.0
    grid: list[float] = field(default_factory=list)
    # all given to the figure at once: it copies everything whenever something is added
    texts: list[dict[str, Any]] = field(default_factory=list)
    bands: list[dict[str, Any]] = field(default_factory=list)

    def heading(self, text: str, ticks: tuple[int, ...] = ()) -> None:
        """A row that names those below it, and repeats the values of the x axis."""
        y = self._take(0.9)
        self._write(f"<b>{plain(text)}</b>", y, PIXELS["title"], INK)
        for tick in ticks:
            font = {"size": 11, "color": SOFT[self.theme]}
            self.texts.append({"x": tick, "y": y, "text": str(tick), "showarrow": False, "font": font})

    def name(self, text: str) -> None:
        """A row with only a name, for the rows below it."""
        self._write(text, self._take(0.58), PIXELS["small"], INK)

    def row(self, name: str, mark: str = "", live: bool = False) -> float:
        """The y of the marks below a name; `mark`, on its own line, tells several results apart."""
        height = 1.5 if mark else 1
        middle = self._take(height)
        if live:
            self._highlight(middle, height)
        lines = [name, f'<span style="font-size:11px">{plain(mark)}</span>'] if mark else [name]
        self._write("<br>".join(lines), middle + 0.22, PIXELS["small"], INK)
        self.grid.append(middle - height / 2 + 0.24)
        return self.grid[-1]

    def slim(self, name: str, live: bool = False) -> float:
        """The y of marks beside a short name."""
        y = self._take(SLIM)
        if live:
            self._highlight(y, SLIM)
        self._write(plain(name), y, 11, SOFT)
        self.grid.append(y)
        return y

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
        """The middle of the next row."""
        self.total += height
        return -self.total + height / 2

    def _write(self, text: str, y: float, size: int, colour: dict[str, str]) -> None:
        self.texts.append(
            {
                "x": 0,
                "xref": "paper",
                "xanchor": "left",
                "y": y,
                "text": text,
                "showarrow": False,
                "align": "left",
                "font": {"size": size, "color": colour[self.theme]},
                "bgcolor": PAGE[self.theme],
                "borderpad": 0,  # so that no name covers the one above it
            }
        )

    def _highlight(self, y: float, height: float) -> None:
        top, bottom = y + height / 2, y - height / 2
        place = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": bottom, "y1": top}
        self.bands.append({**place, "fillcolor": HIGHLIGHT, "line": {"width": 0}, "layer": "below"})


def edge(size: int, symbol: str, colour: str) -> dict[str, object]:
    """A filled mark with a thin edge."""
    return {"size": size, "symbol": symbol, "color": colour, "line": {"width": 0.6, "color": EDGE}}


def papers(symbol: str, colour: str) -> dict[str, object]:
    """The paper's mark: the same symbol, open and grey."""
    return {"size": 10, "symbol": f"{symbol}-open", "color": colour, "line": {"width": 1.5}}


def probe_dots(scores: pd.DataFrame, theme: str = "light") -> go.Figure:
    """Each latent's accuracy with its interval, and a tick for the best baseline, whose hover text lists all of them.

    Columns `gather.SCORES`. One line per result, those run here first, then by the group of the task and by the
    gap of the latents.
    """
    figure = go.Figure()
    lines = Lines(figure, theme)
    y: dict[tuple[str, ...], float] = {}
    several = scores["model"].nunique() > 1
    for group, part in in_order(scores).groupby("group", sort=False):
        lines.heading(str(group), (25, 50, 75, 100))
        for row in part.itertuples():
            y[key(row)] = lines.row(label(row, several), row.mark, row.live)
    for latent in [latent for latent in LATENTS if latent in set(scores["latent"])]:
        part = scores[scores["latent"] == latent]
        figure.add_trace(
            go.Scatter(
                x=100 * part["accuracy"],
                y=[y[key(row)] for row in part.itertuples()],
                name=plain(latent),
                mode="markers",
                marker=edge(11, LATENTS[latent], latent_colour(latent, theme)),
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


def in_order(scores: pd.DataFrame) -> pd.DataFrame:
    """One row per line of the figure, with the columns `LINE`, live, group and gap. Results that were run here come
    first, then the groups of tasks, sorted by the lead of the semantic latent."""
    lines = scores.drop_duplicates(LINE)[[*LINE, "live"]]
    values = scores[scores["latent"].isin(list(LATENTS))].pivot_table("accuracy", LINE, "latent", sort=False)
    second = values[[name for name in (LANGUAGE, SYNTACTIC) if name in values]].bfill(axis=1)
    gaps = values.get(SEMANTIC, 0) - (second.iloc[:, 0] if len(second.columns) else 0)
    lines = lines.merge(gaps.rename("gap").reset_index(), "left", LINE)
    names = [RUN_HERE, *task_names.GROUPS, task_names.OTHERS]
    groups = [RUN_HERE if row.live else task_names.group(row.task) for row in lines.itertuples()]
    lines = lines.assign(
        group=groups,
        place=[names.index(group) for group in groups],
        mean=lines.groupby("task")["gap"].transform("mean"),
    )
    live, stored = lines[lines["place"] == 0], lines[lines["place"] > 0]
    stored = stored.sort_values(["place", "mean", "task", "gap"], ascending=[True, False, True, False], kind="stable")
    return pd.concat([live, stored])


def key(row: Any) -> tuple[str, ...]:
    return row.task, row.lang, row.model, row.mark


def label(row: Any, several: bool) -> str:
    """The name of a line of a figure; with the model if there are several."""
    names = [language_name(lang) for lang in split_langs(row.lang)]
    parts = [task_names.title(row.task), " and ".join(names), *([row.model] if several else [])]
    return plain(" · ".join(parts))


def learning_curves(curve: pd.DataFrame, theme: str = "light") -> go.Figure:
    """Test accuracy over training items, one line per latent, and probes of more capacity at the end.

    Rows (latent, family, n_train, accuracy, ci_low, ci_high) of one result, fractions.
    """
    figure = go.Figure()
    for latent, part in curve.groupby("latent", sort=False):
        colour = latent_colour(latent, theme)
        first = part["family"].iloc[0]
        for nth, (family, points) in enumerate(part.groupby("family", sort=False)):
            points = points.sort_values("n_train")
            figure.add_trace(
                go.Scatter(
                    x=points["n_train"],
                    y=100 * points["accuracy"],
                    name=plain(
                        latent if family == first else f"{latent}, hidden layer of {family.removeprefix('mlp')}"
                    ),
                    mode="lines+markers",
                    line={"color": colour, "width": 2},
                    marker={"size": 9, "color": colour, "symbol": cycled(SYMBOLS, nth) + ("-open" if nth else "")},
                    error_y=None
                    if nth
                    else bars(100 * points["accuracy"], 100 * points["ci_low"], 100 * points["ci_high"]),
                    hovertemplate="%{x:,} sentences: %{y:.1f}<extra></extra>",
                )
            )
    figure = finish(figure, "Test accuracy, %, over the sentences trained on", 360, theme)
    ticks = sorted(set(curve["n_train"]))
    figure.update_xaxes(
        type="log", tickvals=ticks, ticktext=[f"{tick:,}" for tick in ticks], title="training sentences"
    )
    figure.update_yaxes(title=None)
    return figure
