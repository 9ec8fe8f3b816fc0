"""Semantic minus second latent: by task and language, and against the distance of the language to English."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.core.results import task_names
from app.core.results.chart import GRID, Lines, edge, papers
from app.core.rows import language_name
from app.core.theme import REST, SOFT, STARS, SYMBOLS, bars, cycled, finish, lang_colour, lang_place, lang_symbol, plain

PAPER = "the paper (open, grey)"
EDGES = (0.3, 0.05)  # empty margins at the left, for names, and at the right; shares of the range of values


def second_latents(gaps: pd.DataFrame) -> str:
    """The latents that the semantic one is compared with."""
    return " or ".join(gaps["second"].unique())


def gap_dots(gaps: pd.DataFrame, theme: str = "light") -> go.Figure:
    """Semantic minus second latent in points, with intervals; rows of `app.languages.page.with_paper`.

    Tasks are ordered by group and mean gap. Each has a row per language, model (numbered if several) and run, in the
    language's colour and symbol; stars were run here.
    """
    figure = go.Figure()
    figure.add_vline(0, line={"color": REST, "width": 1.5})
    lines, models = Lines(figure, theme), list(gaps["model"].unique())
    means = gaps.groupby("task")["points"].mean()
    groups = [*task_names.GROUPS, task_names.OTHERS]
    tasks = sorted(means.index, key=lambda task: (groups.index(task_names.group(task)), -means[task]))
    y: dict[object, float] = {}
    for index, task in enumerate(tasks):
        if index == 0 or task_names.group(task) != task_names.group(tasks[index - 1]):
            lines.heading(task_names.group(task))
        lines.name(plain(task_names.title(task)))
        for row in in_order(gaps[gaps["task"] == task], models).itertuples():
            number = f" {models.index(row.model) + 1}" if len(models) > 1 else ""
            y[row.Index] = lines.slim(f"{language_name(row.lang)}{number}{' ★' if row.live else ''}", row.live)
    named = set[str]()  # a language has one entry in the legend; the rows are numbered by model
    for (lang, model, live), part in gaps.groupby(["lang", "model", "live"], sort=False):
        title = plain(" · ".join([language_name(lang), *([model] if len(models) > 1 else [])]))
        name = plain(language_name(lang)) + (", run here" if live else "")
        symbol = cycled(STARS if live else SYMBOLS, lang_place(lang))
        figure.add_trace(
            go.Scatter(
                x=part["points"],
                y=[y[index] for index in part.index],
                name=name,
                legendgroup=name,
                showlegend=name not in named,
                mode="markers",
                marker=edge(14 if live else 11, symbol, lang_colour(lang, theme)),
                error_x=bars(part["points"], part["ci_low"], part["ci_high"]),
                text=[hover(row) for row in part.itertuples()],
                hovertemplate="%{text}: %{x:+.1f} points<extra>" + title + "</extra>",
            )
        )
        named.add(name)
        published = part.dropna(subset=["paper_gap"])
        if len(published) and not live:
            figure.add_trace(
                go.Scatter(
                    x=published["paper_gap"],
                    y=[y[index] for index in published.index],
                    name=PAPER,
                    legendgroup="paper",
                    legendrank=2_000,  # the last
                    showlegend=not any(trace.legendgroup == "paper" for trace in figure.data),
                    mode="markers",
                    marker=papers(lang_symbol(lang), SOFT[theme]),
                    text=[task_names.title(task) for task in published["task"]],
                    hovertemplate="%{text}: %{x:+.1f} points<extra>the paper</extra>",
                )
            )
    figure = lines.finished("Separation, points of accuracy")
    low = min(gaps["ci_low"].min(), gaps["paper_gap"].min(), 0)
    high = max(gaps["ci_high"].max(), gaps["paper_gap"].max(), 0)
    left, right = (share * (high - low) for share in EDGES)
    figure.update_xaxes(title_text=f"← {second_latents(gaps)} · semantic →", range=[low - left, high + right])
    return figure


def in_order(part: pd.DataFrame, models: list[str]) -> pd.DataFrame:
    """Ordered by language, then model; results run here come after stored ones."""
    return part.assign(
        lang_at=part["lang"].map(lang_place),
        model_at=part["model"].map(models.index),
        run_here=part["live"].astype(int),
    ).sort_values(["lang_at", "model_at", "run_here"], kind="stable")


def hover(row: Any) -> str:
    return plain(task_names.title(row.task)) + (f"<br>{plain(row.mark)}<br>" if row.mark else "")


def gap_by_distance(
    gaps: pd.DataFrame, task: str, distance: Mapping[str, float], axis: str, theme: str = "light"
) -> go.Figure:
    """Plot the gap of a task in each language, the mean of its models, against its distance from English, with a
    straight line."""
    figure = go.Figure()
    figure.add_hline(0, line={"color": REST, "width": 1})
    part = gaps[(gaps["task"] == task) & gaps["other"].isin(distance)]
    part = part.groupby("other", sort=False)[["points", "ci_low", "ci_high"]].mean().astype(float).reset_index()
    part = part.assign(distance=[distance[lang] for lang in part["other"]]).sort_values("distance")
    if part["distance"].nunique() > 1:
        slope, start = np.polyfit(part["distance"], part["points"], 1)
        ends = part["distance"].agg(["min", "max"])
        figure.add_trace(
            go.Scatter(x=ends, y=start + slope * ends, mode="lines", name="straight line", showlegend=False,
                       line={"color": SOFT[theme], "width": 1.5, "dash": "dash"}, hoverinfo="skip")
        )  # fmt: skip
    for row in part.itertuples():
        right = row.distance > part["distance"].mean()  # a name would leave the figure on the other side
        near = (part["distance"] == row.distance) & (part["points"] > row.points)
        figure.add_trace(
            go.Scatter(
                x=[row.distance],
                y=[row.points],
                name=language_name(row.other),
                mode="markers+text",
                text=[language_name(row.other)],
                textposition="middle left" if right or near.any() else "middle right",
                marker=edge(11, lang_symbol(row.other), lang_colour(row.other, theme)),
                error_y={"type": "data", "symmetric": False, "array": [row.ci_high - row.points],
                         "arrayminus": [row.points - row.ci_low], "width": 0},
                hovertemplate="%{x:.3g}: %{y:+.1f} points<extra></extra>",
                showlegend=False,
            )
        )  # fmt: skip
    figure = finish(figure, f"{task_names.title(task)}: separation", 380, theme)
    figure.update_xaxes(title_text="<br>".join(textwrap.wrap(axis, 40)), showgrid=True, gridcolor=GRID)
    figure.update_yaxes(title_text="points", zeroline=False, gridcolor=GRID)
    return figure
