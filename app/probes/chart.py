"""Learning curves of probes."""

from __future__ import annotations

import re

import pandas as pd
import plotly.graph_objects as go

from app.core.theme import SYMBOLS, bars, cycled, finish, latent_colour, plain

HIDDEN = re.compile("^mlp")  # how the name of a probe with a hidden layer begins


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
                    name=plain(latent if family == first else f"{latent}, {HIDDEN.sub('hidden layer of ', family)}"),
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
