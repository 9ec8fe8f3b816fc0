"""Draw results of probes: each latent's accuracy and the best baseline's, or the difference between two latents. The
name of each row is above its points, so that the figure fits on a phone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from app.core.display import EDGE, INK, PAGE, PIXELS, REST, SOFT, finish, lang_colour, lang_symbol, latent_colour, plain
from app.core.results import OTHER_TASKS, TASK_GROUPS, language_names, task_group, task_title
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from probes.results.store import is_baseline

# Latent -> plotly symbol of its results. All other results are of baselines.
LATENTS = {SEMANTIC: "circle", LANGUAGE: "diamond", SYNTACTIC: "diamond"}
LINE = ["task", "lang", "model", "mark"]  # columns whose values identify a row of a figure
RUN_HERE = "Run here"
BASELINE = "best baseline"
PAPER = "the paper"
UNIT, NAME, MARK = 25, 12, 9  # heights in pixels of a row, of its name, and of its points below the name
HIGHLIGHT = "rgba(230, 159, 0, 0.16)"  # background of results that were computed in this session
GRID = "rgba(128, 128, 128, 0.25)"


@dataclass
class Lines:
    """The rows of a figure, from the top (y = 0) to negative y. A row is `UNIT` pixels per unit of y high."""

    figure: go.Figure
    theme: str
    total: float = 0.0
    grid: list[float] = field(default_factory=list)
    # All texts are added to the figure together, because plotly copies all of them at each addition.
    texts: list[dict[str, Any]] = field(default_factory=list)
    bands: list[dict[str, Any]] = field(default_factory=list)

    def heading(self, text: str, ticks: tuple[int, ...]) -> None:
        """Add a heading above a group of rows, with the values of the x axis."""
        y = self._take(0.9)
        self._write(f"<b>{plain(text)}</b>", y, PIXELS["title"])
        font = {"size": 11, "color": SOFT[self.theme]}
        self.texts += [{"x": tick, "y": y, "text": str(tick), "showarrow": False, "font": font} for tick in ticks]

    def row(self, name: str, mark: str = "", live: bool = False) -> float:
        """Add a row, and return the y of its points. `mark`, a second line, tells results with equal names apart."""
        height = 1.5 if mark else 1
        middle = self._take(height)
        if live:
            ends = {"y0": middle - height / 2, "y1": middle + height / 2}
            band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, **ends, "fillcolor": HIGHLIGHT}
            self.bands.append({**band, "line": {"width": 0}, "layer": "below"})
        lines = [name, f'<span style="font-size:11px">{plain(mark)}</span>'] if mark else [name]
        self._write("<br>".join(lines), middle + 0.24, NAME)
        self.grid.append(middle - height / 2 + 0.24)
        return self.grid[-1]

    def finished(self, title: str) -> go.Figure:
        figure = finish(self.figure, title, round(120 + UNIT * self.total), self.theme)
        figure.layout.annotations += tuple(map(go.layout.Annotation, self.texts))
        figure.layout.shapes += tuple(map(go.layout.Shape, self.bands))
        figure.update_yaxes(
            range=[-self.total, 0], tickvals=self.grid, showticklabels=False, gridcolor=GRID, zeroline=False, title=None
        )
        figure.update_xaxes(showgrid=True, gridcolor=GRID, zeroline=False)
        return figure

    def _take(self, height: float) -> float:
        """Reserve space for a row, and return the y of its middle."""
        self.total += height
        return -self.total + height / 2

    def _write(self, text: str, y: float, size: int) -> None:
        place = {"x": 0, "xref": "paper", "xanchor": "left", "y": y, "align": "left", "showarrow": False}
        font = {"size": size, "color": INK[self.theme]}
        # no border, because it would cover the name of the row above
        self.texts.append({**place, "text": text, "font": font, "bgcolor": PAGE[self.theme], "borderpad": 0})


def probe_dots(scores: pd.DataFrame, theme: str = "light") -> go.Figure:
    """Draw each latent's accuracy with its interval, and a tick for the best baseline, whose hover text lists all
    baselines. `scores` has the columns `results.SCORES`, sorted by `in_order`; each result gets one line."""
    fractions = ["accuracy", "ci_low", "ci_high"]
    scores = scores.assign(**{name: 100 * scores[name] for name in fractions})
    values = scores[scores["latent"].isin(list(LATENTS))].pivot_table("accuracy", LINE, "latent", sort=False)
    second = values[[name for name in (LANGUAGE, SYNTACTIC) if name in values]].bfill(axis=1)
    leads = values.get(SEMANTIC, 0) - (second.iloc[:, 0] if len(second.columns) else 0)
    results = scores.drop_duplicates(LINE)[[*LINE, "live"]].merge(leads.rename("lead").reset_index(), "left", LINE)
    figure = go.Figure()
    lines, y = placed(figure, results, (25, 50, 75, 100), theme)
    several = scores["model"].nunique() > 1
    for latent in [latent for latent in LATENTS if latent in set(scores["latent"])]:
        hover = f"%{{text}}<br>{plain(latent)} %{{x:.1f}}"
        look = {"symbol": LATENTS[latent], "color": latent_colour(latent, theme)}
        figure.add_trace(dots(scores[scores["latent"] == latent], "accuracy", y, latent, look, several, hover))
    rivals = [is_baseline(name, list(LATENTS)) for name in scores["latent"]]
    baselines = scores[rivals].sort_values("accuracy", ascending=False)
    best = baselines.drop_duplicates(LINE)
    texts = {
        name: "<br>".join(f"{plain(row.latent)} {row.accuracy:.1f}" for row in part.itertuples())
        for name, part in baselines.groupby(LINE)
    }
    figure.add_trace(
        go.Scatter(
            x=best["accuracy"],
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
    """Draw the difference in accuracy between the semantic and the second latent, with its interval. Points have the
    colour and symbol of the language; open grey points are the paper's values. `gaps` comes from `page.with_paper`."""
    figure = go.Figure()
    figure.add_vline(0, line={"color": REST, "width": 1.5})
    lines, y = placed(figure, gaps.assign(lead=gaps["points"]), (), theme)
    several = gaps["model"].nunique() > 1
    for lang, part in gaps.groupby("lang", sort=False):
        look = {"symbol": lang_symbol(lang), "color": lang_colour(lang, theme)}
        hover = "%{text}: %{x:+.1f} points"
        figure.add_trace(dots(part, "points", y, language_names(lang), look, several, hover))
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


def dots(
    part: pd.DataFrame,
    value: str,
    y: Mapping[tuple[str, ...], float],
    name: str,
    look: Mapping[str, str],
    several: bool,
    hover: str,
) -> go.Scatter:
    """Return one point per row at the number in the column `value`, with the interval from `ci_low` to `ci_high`."""
    x, low, high = part[value], part["ci_low"], part["ci_high"]
    return go.Scatter(
        x=x,
        y=[y[key(row)] for row in part.itertuples()],
        name=plain(name),
        mode="markers",
        marker={"size": MARK, "line": {"width": 0.6, "color": EDGE}, **look},
        error_x={"type": "data", "symmetric": False, "array": high - x, "arrayminus": x - low, "width": 0},
        text=[label(row, several) for row in part.itertuples()],
        hovertemplate=f"{hover}<extra></extra>",
    )


def placed(
    figure: go.Figure, results: pd.DataFrame, ticks: tuple[int, ...], theme: str
) -> tuple[Lines, dict[tuple[str, ...], float]]:
    """Add a row for each of `results`, and headings with `ticks` (x values). Return the rows and y of each result."""
    lines, y = Lines(figure, theme), {}
    several = results["model"].nunique() > 1
    for group, part in in_order(results).groupby("group", sort=False):
        lines.heading(str(group), ticks)
        for row in part.itertuples():
            y[key(row)] = lines.row(label(row, several), row.mark, row.live)
    return lines, y


def in_order(results: pd.DataFrame) -> pd.DataFrame:
    """Sort by the new column `group`, then by the mean of `lead` (difference of both latents) per task and language."""
    names = [RUN_HERE, *TASK_GROUPS, OTHER_TASKS]
    groups = [RUN_HERE if row.live else task_group(row.task) for row in results.itertuples()]
    mean, of_lang = (results.groupby(keys)["lead"].transform("mean") for keys in ("task", ["task", "lang"]))
    results = results.assign(group=groups, place=[names.index(group) for group in groups], mean=mean, of_lang=of_lang)
    live, stored = results[results["place"] == 0], results[results["place"] > 0]
    order = {"place": True, "mean": False, "task": True, "of_lang": False, "lang": True}
    return pd.concat([live, stored.sort_values([*order], ascending=[*order.values()], kind="stable")])


def key(row: Any) -> tuple[str, ...]:
    return row.task, row.lang, row.model, row.mark


def label(row: Any, several: bool) -> str:
    """Return the name of a row of the figure; it includes the model if the figure has several models."""
    return plain(" · ".join([task_title(row.task), language_names(row.lang), *([row.model] if several else [])]))
