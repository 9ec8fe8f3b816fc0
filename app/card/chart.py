"""Curves of a training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.core.rows import language_name, latent_title
from app.core.theme import (
    INK,
    LATENTS,
    PIXELS,
    REST,
    finish,
    lang_colour,
    lang_symbol,
    latent_colour,
)
from bgt_core.contracts import SEMANTIC

COLUMNS = 3  # panels beside one another
PANEL = 190  # pixels


def elbo_curve(log: Sequence[Mapping[str, object]], theme: str = "light") -> go.Figure:
    """The ELBO of held-out pairs over training steps."""
    reports = validations(log)
    figure = finish(
        go.Figure([line(reports, "elbo", "ELBO", REST, "circle")]), "ELBO, nats per pair", 260, theme, False
    )
    figure.update_xaxes(title_text="step", showgrid=False)
    return figure.update_layout(hovermode="x")


def kl_curves(log: Sequence[Mapping[str, object]], langs: Sequence[str], theme: str = "light") -> go.Figure:
    """KL of each latent that has a prior on held-out pairs, a panel each: their sizes differ a hundredfold."""
    reports = validations(log)
    others = [name.removeprefix("kl/") for name in reports if name.startswith("kl/")]
    latents = [name for name in dict.fromkeys([SEMANTIC, *langs, *others]) if f"kl/{name}" in reports]
    panels = -(-len(latents) // COLUMNS)  # rows of them
    titles = [latent_title(name) if name in LATENTS[theme] else language_name(name) for name in latents]
    figure = make_subplots(panels, COLUMNS, shared_xaxes="all", subplot_titles=titles, vertical_spacing=0.24 / panels)
    for at, (latent, title) in enumerate(zip(latents, titles, strict=True)):
        of_lang = latent not in LATENTS[theme]
        colour = lang_colour(latent, theme) if of_lang else latent_colour(latent, theme)
        symbol = lang_symbol(latent) if of_lang else "circle"
        row, column = divmod(at, COLUMNS)
        figure.add_trace(line(reports, f"kl/{latent}", title, colour, symbol), row=row + 1, col=column + 1)
    figure = finish(figure, "KL of each latent, nats per pair", 60 + PANEL * panels, theme, legend=False)
    figure.update_xaxes(showgrid=False).update_yaxes(rangemode="tozero")
    figure.update_annotations(font={"size": PIXELS["small"], "color": INK[theme]})
    return figure.update_layout(margin_t=70)


def validations(log: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """The reports on held-out pairs in a training log, one per row."""
    return pd.DataFrame([row for row in log if row["kind"] == "valid"])


def line(reports: pd.DataFrame, column: str, title: str, colour: str, symbol: str) -> go.Scatter:
    mark, stroke = {"symbol": symbol, "size": 7}, {"color": colour, "width": 2}
    return go.Scatter(x=reports["step"], y=reports[column], name=title, mode="lines+markers", marker=mark, line=stroke)
