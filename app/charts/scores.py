"""Scores with their intervals: dots on bars, gaps around zero, gaps against distance, cosines against people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.charts.theme import EDGE, INK, PALETTE, PIXELS, REST, SYMBOLS, cycled, finish, latent_colour, plain
from app.rows import language_name
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC

ROW = 34  # pixels
COLOURS = {SEMANTIC: 0, LANGUAGE: 1, SYNTACTIC: 1}  # of latents, in the palette: every second latent has one


def probe_dots(scores: pd.DataFrame, theme: str = "light", by: str = "accuracy") -> go.Figure:
    """Accuracy of each latent and baseline with its interval, or `by` "compression"; columns `probe_results.SCORES`.

    One line per task, language and model; baselines are grey, and the majority is a tick.
    """
    scores = scores.assign(row=[label(row, scores) for row in scores.itertuples()])
    order = list(dict.fromkeys(scores["row"]))[::-1]
    scale = 100 if by == "accuracy" else 1
    figure = go.Figure()
    for index, latent in enumerate(dict.fromkeys(scores["latent"])):
        part = scores[scores["latent"] == latent]
        own = latent in COLOURS
        figure.add_trace(
            go.Scatter(
                x=scale * part[by],
                y=part["row"],
                name=plain(latent),
                mode="markers",
                marker={
                    "size": 11 if own else 9,
                    "symbol": "line-ns" if latent == "majority" else cycled(SYMBOLS, index),
                    "color": PALETTE[theme][COLOURS[latent]] if own else REST,
                    "line": {"width": 2 if latent == "majority" else 0.6, "color": REST if not own else EDGE},
                },
                error_x=bars(100 * part["accuracy"], 100 * part["ci_low"], 100 * part["ci_high"])
                if by == "accuracy"
                else None,
                hovertemplate="%{y}<br>" + plain(latent) + " %{x:.1f}<extra></extra>",
            )
        )
    titles = {"accuracy": "Test accuracy, %, with 95% intervals", "compression": "Compression by online codelength"}
    figure = finish(figure, titles[by], 120 + ROW * len(order), theme)
    figure.update_yaxes(categoryorder="array", categoryarray=order, title=None)
    figure.update_xaxes(title=None)
    return figure


def paper_dots(figure: go.Figure, gaps: pd.DataFrame) -> go.Figure:
    """The figure of `probe_dots` with the paper's accuracies, if any, in grey; rows of `languages.with_paper`."""
    published = gaps.dropna(subset=["paper_gap"])
    lines = [label(row, gaps) for row in published.itertuples()]
    for latent, symbol in zip((SEMANTIC, LANGUAGE), SYMBOLS, strict=False):
        mark = {"size": 10, "symbol": f"{symbol}-open", "color": REST, "line": {"width": 1.5}}
        title = f"paper, {latent}"
        figure.add_trace(
            go.Scatter(x=published[f"paper_{latent}"], y=lines, name=title, mode="markers", marker=mark,
                       visible=len(published) > 0, hovertemplate="%{y}<br>" + title + " %{x:.1f}<extra></extra>")
        )  # fmt: skip
    return figure


def learning_curves(curve: pd.DataFrame, theme: str = "light") -> go.Figure:
    """Test accuracy over training items, one line per latent, and probes of more capacity at the end.

    Rows (latent, family, n_train, accuracy, ci_low, ci_high) of one result, fractions.
    """
    figure = go.Figure()
    for index, (latent, part) in enumerate(curve.groupby("latent", sort=False)):
        colour = cycled(PALETTE[theme], COLOURS.get(latent, index))
        first = part["family"].iloc[0]
        for nth, (family, points) in enumerate(part.groupby("family", sort=False)):
            points = points.sort_values("n_train")
            figure.add_trace(
                go.Scatter(
                    x=points["n_train"],
                    y=100 * points["accuracy"],
                    name=plain(latent if family == first else f"{latent}, {family}"),
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


def label(row: Any, among: pd.DataFrame) -> str:
    """What a line of a figure is called; the model is named where there are several."""
    parts = [row.task, language_name(row.lang)] + ([row.model] if among["model"].nunique() > 1 else [])
    return plain(" · ".join(parts)) + (f"<br>{plain(row.mark)}" if row.mark else "")


def second_latents(gaps: pd.DataFrame) -> str:
    """The latents that the semantic one is compared with."""
    return " or ".join(gaps["second"].unique())


def bars(value: pd.Series, low: pd.Series, high: pd.Series) -> dict[str, object]:
    """Error bars from both ends of an interval."""
    return {"type": "data", "symmetric": False, "array": high - value, "arrayminus": value - low, "width": 0}


def gap_dots(gaps: pd.DataFrame, theme: str = "light") -> go.Figure:
    """Semantic minus second latent in points, an interval each, the paper's in grey; rows of `languages.with_paper`."""
    tasks = list(dict.fromkeys(gaps["task"]))[::-1]
    figure = go.Figure()
    figure.add_vline(0, line={"color": REST, "width": 1})
    groups = list(gaps.groupby(["model", "lang", "mark"], sort=False))
    for index, ((model, lang, mark), part) in enumerate(groups):
        shift = 0.5 * ((index + 0.5) / len(groups) - 0.5)
        title = language_name(lang) + (f" · {model}" if gaps["model"].nunique() > 1 else "")
        title += f" · {mark}" if mark else ""
        figure.add_trace(
            go.Scatter(
                x=part["points"],
                y=[tasks.index(task) - shift for task in part["task"]],
                name=plain(title),
                mode="markers",
                marker={
                    "size": 11,
                    "symbol": cycled(SYMBOLS, index),
                    "color": cycled(PALETTE[theme], index),
                    "line": {"width": 0.6, "color": EDGE},
                },
                error_x=bars(part["points"], part["ci_low"], part["ci_high"]),
                text=part["task"],
                hovertemplate="%{text} %{x:+.1f} points<extra>" + plain(title) + "</extra>",
            )
        )
        published = part.dropna(subset=["paper_gap"])
        if len(published):
            figure.add_trace(
                go.Scatter(
                    x=published["paper_gap"],
                    y=[tasks.index(task) - shift for task in published["task"]],
                    name="the paper",
                    legendgroup="paper",
                    showlegend=not any(trace.legendgroup == "paper" for trace in figure.data),
                    mode="markers",
                    marker={
                        "size": 10,
                        "symbol": f"{cycled(SYMBOLS, index)}-open",
                        "color": REST,
                        "line": {"width": 1.5},
                    },
                    text=published["task"],
                    hovertemplate="%{text} %{x:+.1f} points<extra>the paper</extra>",
                )
            )
    title = "Separation, points of accuracy"
    figure = finish(figure, title, 150 + ROW * len(tasks) * max(1, len(groups) // 2), theme)
    figure.update_yaxes(tickvals=list(range(len(tasks))), ticktext=tasks, zeroline=False, title=None)
    figure.update_xaxes(title_text=f"← {second_latents(gaps)} · semantic →", zeroline=False)
    return figure


def gap_by_distance(gaps: pd.DataFrame, distance: Mapping[str, float], axis: str, theme: str = "light") -> go.Figure:
    """The gap of each task against the distance of the model's other language to English; one line per task."""
    figure = go.Figure()
    figure.add_hline(0, line={"color": REST, "width": 1})
    with_distance = gaps[gaps["other"].isin(distance)]
    for index, (task, part) in enumerate(with_distance.groupby("task", sort=False)):
        part = part.assign(distance=[distance[lang] for lang in part["other"]]).sort_values("distance")
        colour = cycled(PALETTE[theme], index)
        figure.add_trace(
            go.Scatter(
                x=part["distance"],
                y=part["points"],
                name=plain(task),
                mode="lines+markers+text",
                text=[language_name(lang) for lang in part["other"]],
                textposition="top center",
                line={"color": colour, "width": 1},
                marker={"size": 9, "symbol": cycled(SYMBOLS, index), "color": colour},
                error_y=bars(part["points"], part["ci_low"], part["ci_high"]),
            )
        )
    figure = finish(figure, "Separation against distance to English", 380, theme)
    figure.update_xaxes(title_text=axis)
    figure.update_yaxes(title_text="points", zeroline=False)
    return figure


def alike_scatter(
    scored: pd.DataFrame, x: str, x_title: str, systems: Mapping[str, str], theme: str = "light"
) -> go.Figure:
    """The cosine of each system, a panel for each, against a column: what people said, or another system.

    Rows (left, right, `x`, and a column per system); a point's `customdata` is its row's place.
    """
    figure = make_subplots(rows=1, cols=len(systems), shared_yaxes=True, subplot_titles=list(systems.values()))
    kind = go.Scatter if len(scored) <= 2_000 else go.Scattergl
    values = scored[x].to_numpy(float)
    if x == "gold":  # people give few different scores: equal ones would overlap
        values = values + np.random.default_rng(0).uniform(-0.06, 0.06, len(scored))
    texts = [
        f"{plain(left[:60])}<br>{plain(right[:60])}"
        for left, right in zip(scored["left"], scored["right"], strict=True)
    ]
    for column, (system, title) in enumerate(systems.items(), 1):
        figure.add_trace(
            kind(
                x=values,
                y=scored[system],
                name=title,
                mode="markers",
                customdata=list(range(len(scored))),
                marker={
                    "size": 5,
                    "opacity": 0.6 if len(scored) <= 2_000 else 0.25,
                    "color": latent_colour(system, theme),
                    "line": {"width": 0},
                },
                text=texts,
                hovertemplate="%{text}<br>%{y:.2f}<extra></extra>",
                selected={"marker": {"opacity": 1, "size": 10}},
                unselected={"marker": {"opacity": 0.2}},
            ),
            row=1,
            col=column,
        )
    figure = finish(figure, "", 360, theme, legend=False)
    figure.update_annotations(font={"size": PIXELS["small"], "color": INK[theme]})
    figure.update_xaxes(title_text=x_title, zeroline=False)
    figure.update_yaxes(title_text="cosine", zeroline=False, col=1)
    return figure.update_layout(dragmode="pan")
