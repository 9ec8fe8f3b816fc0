"""Tables -> plotly figures. Pure: no Streamlit, no model, no files; use them in a notebook as they are."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from html import escape

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.rows import COLOURS, NUMBERS, name

# Okabe-Ito without its yellow and black, which vanish on one theme or the other; grey is for the rest.
PALETTE = {
    "light": ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"),
    "dark": ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#d55e00"),
}
REST = "#999999"
INK = {"light": "#31333f", "dark": "#fafafa"}  # Streamlit's own greys for titles are too pale to read
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "pentagon")  # a language each
STARS = ("star", "star-diamond", "star-square", "star-triangle-up", "asterisk", "hexagram")  # the user's sentences
GLYPHS = ("●", "◆", "■", "▲", "✚", "⬟")
MARK_ORDER = ("full stop", "exclamation", "question", "ellipsis", "other", "none")
EDGE = "rgba(128, 128, 128, 0.55)"
GROUND = "rgba(128, 128, 128, 0.06)"
TOOLS = {  # plotly's own buttons: lasso, pan, zoom, home, and a drawing that stays sharp
    "displaylogo": False,
    "modeBarButtonsToRemove": ["zoomIn2d", "zoomOut2d", "autoScale2d", "select2d"],
    "toImageButtonOptions": {"format": "svg", "filename": "latents"},
}
PLAIN = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "", "title": None}


def latent_map(
    panels: Mapping[str, pd.DataFrame],
    colour: str,
    langs: Sequence[str],
    *,
    chosen: Collection[str] = (),
    lines: bool = False,
    theme: str = "light",
    height: int = 520,
) -> go.Figure:
    """Maps above one another, a title each; points are rows (id, lang, text, translation, own, x, y, and `colour`).

    `colour` is a key of `rows.COLOURS`. Symbols tell languages apart, by their place in `langs`; stars are the
    user's own sentences. Rows whose id is in `chosen` stand out. `lines` joins translations. A point's
    `customdata` is its row's id.
    """
    figure = make_subplots(rows=len(panels), cols=1, subplot_titles=list(panels), vertical_spacing=0.09)
    values = pd.concat(list(panels.values()))[colour]
    listed = set[object]()
    for place, table in enumerate(panels.values(), 1):
        if lines:
            figure.add_trace(pair_lines(table, chosen), row=place, col=1)
        for (lang, own), part in table.groupby(["lang", "own"], sort=False):
            symbol = (STARS if own else SYMBOLS)[langs.index(lang)]
            for value, group in split(part, colour):
                trace = points(group, symbol, 15 if own else 6, chosen)
                if own:
                    trace.marker.line.update(width=1.2, color=INK[theme])
                if value is None:
                    trace.marker.update(color=group[colour], coloraxis="coloraxis")
                else:
                    trace.update(name=label(colour, value), legendgroup=str(value), showlegend=value not in listed)
                    trace.marker.color = shade(colour, value, langs, theme)
                    listed.add(value)
                figure.add_trace(trace, row=place, col=1)
        figure.update_xaxes(PLAIN, row=place, col=1)
        figure.update_yaxes(PLAIN, scaleanchor=f"x{place if place > 1 else ''}", row=place, col=1)
    figure.update_annotations(x=0, xanchor="left", font={"size": 14, "color": INK[theme]})  # the panels' titles
    figure.update_layout(
        height=height,
        margin={"l": 4, "r": 4, "t": 28, "b": 56},
        dragmode="lasso",
        plot_bgcolor=GROUND,
        uirevision="map",
        hoverlabel={"align": "left"},
        legend={
            "orientation": "h",
            "y": -0.01,
            "yanchor": "top",
            "x": 0,
            "itemsizing": "constant",
            "entrywidth": 0.32,
            "entrywidthmode": "fraction",
            "title": None,
            "bgcolor": "rgba(0, 0, 0, 0)",
        },
        coloraxis={
            "colorscale": "viridis",
            "cmin": values.min() if colour in NUMBERS else None,
            "cmax": values.max() if colour in NUMBERS else None,
            "colorbar": {
                "orientation": "h",
                "y": 0,
                "yanchor": "top",
                "thickness": 8,
                "len": 1,
                "tickfont_color": INK[theme],
                "title": {"text": COLOURS[colour], "side": "bottom", "font_color": INK[theme]},
            },
        },
    )
    return figure


def split(table: pd.DataFrame, colour: str) -> list[tuple[object, pd.DataFrame]]:
    """A part for each category, in a fixed order, or the whole under None where `colour` is a number."""
    if colour in NUMBERS:
        return [(None, table)]
    if colour == "mark":
        return [(value, table[table["mark"] == value]) for value in MARK_ORDER if (table["mark"] == value).any()]
    return [(value, part) for value, part in table.groupby(colour, sort=False)]


def shade(colour: str, value: object, langs: Sequence[str], theme: str) -> str:
    """The fixed colour of a category."""
    return REST if value == "none" else PALETTE[theme][(langs if colour == "lang" else MARK_ORDER).index(str(value))]


def label(colour: str, value: object) -> str:
    """What the legend calls a category."""
    return name(str(value)) if colour == "lang" else "no mark" if value == "none" else str(value)


def points(table: pd.DataFrame, symbol: str, size: int, chosen: Collection[str]) -> go.Scatter:
    """One trace; rows that are not chosen fade once any row of the figure is."""
    selected = [at for at, row in enumerate(table["id"]) if row in chosen] if chosen else None
    return go.Scatter(
        x=table["x"],
        y=table["y"],
        customdata=table[["id"]],
        text=[hover(row.text, row.translation, row.lang) for row in table.itertuples()],
        hovertemplate="%{text}<extra></extra>",
        mode="markers",
        marker={"symbol": symbol, "size": size, "line": {"width": 0.6, "color": EDGE}},
        selectedpoints=selected,
        selected={"marker": {"opacity": 1, "size": size + 3}},
        unselected={"marker": {"opacity": 0.18}},
        showlegend=False,
    )


def pair_lines(table: pd.DataFrame, chosen: Collection[str]) -> go.Scatter:
    """A thin line from each built-in sentence to its translation; once rows are chosen, only theirs."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for _, pair in table[~table["own"]].groupby("pair"):
        if not chosen or set(pair["id"]) & set(chosen):
            xs += [*pair["x"], None]
            ys += [*pair["y"], None]
    return go.Scatter(x=xs, y=ys, mode="lines", line={"width": 0.7, "color": EDGE}, hoverinfo="skip", showlegend=False)


def hover(text: str, translation: str, lang: str) -> str:
    """A point's hover text, wrapped; plotly reads tags and entities, so the sentences' own are made plain."""
    said, other = ([escape(line, quote=False) for line in textwrap.wrap(part, 48)[:6]] for part in (text, translation))
    return "<br>".join([f"<b>{escape(name(lang))}</b>", *said, *(f"<i>{line}</i>" for line in other)])


def elbo_curve(log: Sequence[Mapping[str, object]]) -> go.Figure:
    """The ELBO of held-out pairs over training steps."""
    reports = validations(log)
    return curves([line(reports, "elbo", "ELBO", REST, "circle")], "ELBO, nats a pair")


def kl_curves(log: Sequence[Mapping[str, object]], langs: Sequence[str], theme: str = "light") -> go.Figure:
    """KL of each latent on held-out pairs; languages look as they do on the maps."""
    reports = validations(log)
    traces = [
        line(reports, f"kl/{latent}", name(latent), PALETTE[theme][at], SYMBOLS[at])
        for at, latent in enumerate([*langs, "semantic"])
    ]
    return curves(traces[::-1], "KL of each latent, nats a pair")


def validations(log: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """The reports on held-out pairs in a training log, a row each."""
    return pd.DataFrame([row for row in log if row["kind"] == "valid"])


def line(reports: pd.DataFrame, column: str, title: str, colour: str, symbol: str) -> go.Scatter:
    mark, stroke = {"symbol": symbol, "size": 7}, {"color": colour, "width": 2}
    return go.Scatter(x=reports["step"], y=reports[column], name=title, mode="lines+markers", marker=mark, line=stroke)


def curves(traces: list[go.Scatter], title: str) -> go.Figure:
    figure = go.Figure(traces)
    figure.update_xaxes(title="step", showgrid=False)
    figure.update_layout(
        title={"text": title, "font_size": 14, "x": 0},
        height=300,
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        hovermode="x",
        showlegend=len(traces) > 1,
        legend={"orientation": "h", "x": 0, "y": -0.3, "yanchor": "top"},
    )
    return figure
