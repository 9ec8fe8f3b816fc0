"""Curves of a training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from app.charts.theme import PALETTE, REST, SYMBOLS, cycled, finish, lang_colour, lang_place, latent_colour
from app.rows import language_name


def elbo_curve(log: Sequence[Mapping[str, object]], theme: str = "light") -> go.Figure:
    """The ELBO of held-out pairs over training steps."""
    reports = validations(log)
    return curves([line(reports, "elbo", "ELBO", REST, "circle")], "ELBO, nats per pair", theme)


def kl_curves(log: Sequence[Mapping[str, object]], langs: Sequence[str], theme: str = "light") -> go.Figure:
    """KL of each latent that has a prior on held-out pairs; languages look as they do on the maps."""
    reports = validations(log)
    others = [name.removeprefix("kl/") for name in reports if name.startswith("kl/")]
    colours = {lang: lang_colour(lang, theme) for lang in langs} | {"semantic": latent_colour("semantic", theme)}
    traces = [
        line(
            reports,
            f"kl/{latent}",
            language_name(latent),
            colours.get(latent) or cycled(PALETTE[theme], at),
            cycled(SYMBOLS, lang_place(latent) if latent in langs else at),
        )
        for at, latent in enumerate(dict.fromkeys([*langs, "semantic", *others]))
        if f"kl/{latent}" in reports
    ]
    return curves(traces[::-1], "KL of each latent, nats per pair", theme)


def validations(log: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """The reports on held-out pairs in a training log, one per row."""
    return pd.DataFrame([row for row in log if row["kind"] == "valid"])


def line(reports: pd.DataFrame, column: str, title: str, colour: str, symbol: str) -> go.Scatter:
    mark, stroke = {"symbol": symbol, "size": 7}, {"color": colour, "width": 2}
    return go.Scatter(x=reports["step"], y=reports[column], name=title, mode="lines+markers", marker=mark, line=stroke)


def curves(traces: list[go.Scatter], title: str, theme: str) -> go.Figure:
    figure = finish(go.Figure(traces), title, 320, theme, legend=len(traces) > 1)
    figure.update_xaxes(title_text="step", showgrid=False)
    figure.update_layout(hovermode="x")
    return figure
