"""Cosines of pairs against the scores of people."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.core.theme import finish, latent_colour, plain


def alike_scatter(
    scored: pd.DataFrame, x: str, x_title: str, systems: Mapping[str, str], theme: str = "light"
) -> go.Figure:
    """Plot the cosine of each system, in its own panel, against a column: people's scores, or another system.

    Rows (left, right, `x`, and a column per system); a point's `customdata` is its row's index.
    """
    figure = make_subplots(rows=1, cols=len(systems), shared_yaxes=True)
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
        figure.update_yaxes(title_text=f"{title}: cosine", zeroline=False, col=column)
    figure = finish(figure, "", 360, theme, legend=False)
    figure.update_xaxes(title_text=x_title, zeroline=False)
    return figure.update_layout(dragmode="pan")
