"""Cosines of pairs against the scores of people; and error bars, which all scores have."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.charts.theme import PALETTE, SYMBOLS, cycled, finish, plain


def bars(value: pd.Series, low: pd.Series, high: pd.Series) -> dict[str, object]:
    """Error bars from both ends of an interval."""
    return {"type": "data", "symmetric": False, "array": high - value, "arrayminus": value - low, "width": 0}


def gold_scatter(scored: pd.DataFrame, systems: Mapping[str, str], theme: str = "light") -> go.Figure:
    """The cosine of each system against the gold score of people; rows (left, right, gold, and a column per system)."""
    figure = go.Figure()
    kind = go.Scatter if len(scored) <= 5_000 else go.Scattergl
    rng = np.random.default_rng(0)
    shift = rng.uniform(-0.06, 0.06, len(scored))  # people give few different scores: equal ones would overlap
    for index, (column, title) in enumerate((key, value) for key, value in systems.items() if key in scored):
        figure.add_trace(
            kind(
                x=scored["gold"] + shift,
                y=scored[column],
                name=title,
                mode="markers",
                marker={
                    "size": 5,
                    "opacity": 0.6,
                    "symbol": cycled(SYMBOLS, index),
                    "color": cycled(PALETTE[theme], index),
                },
                text=[f"{plain(row.left[:60])}<br>{plain(row.right[:60])}" for row in scored.itertuples()],
                hovertemplate="%{text}<br>%{y:.2f}<extra></extra>",
                visible=True if index == 0 else "legendonly",
            )
        )
    figure = finish(figure, "Cosine against the score people gave", 400, theme)
    figure.update_xaxes(title_text="gold score (spread a little)")
    figure.update_yaxes(title_text="cosine", zeroline=False)
    return figure
