"""Draw maps of latents as plotly figures, in which each point is a sentence."""

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.core import display
from app.core.display import AMOUNTS, EDGE, INK, PIXELS, cycled, plain
from app.core.rows import NONE, colour_title, language_name

MARK_ORDER = ("full stop", "exclamation", "question", "ellipsis", "other", "none")
MAX_SVG = 5_000  # maximum number of points of a map in SVG; larger maps use WebGL
CLIPPED = (2, 98)  # percentiles of the values at both ends of a colour scale
LARGER = 3  # pixels by which the first language's points are larger, so that points drawn over them leave a rim


@dataclass(frozen=True)
class Style:
    """The style of the points in all panels of a figure."""

    colour: str  # the column that sets the colours of points
    groups: Sequence[tuple[str, str, str]]  # the result of `categories`; empty if the column is numeric
    chosen: frozenset[str]  # ids of the highlighted rows
    kind: type[go.Scatter] | type[go.Scattergl]
    size: int  # diameter of a point in pixels
    opacity: float
    theme: str


def latent_map(
    panels: Mapping[str, pd.DataFrame],
    colour: str,
    langs: Sequence[str],
    *,
    chosen: Collection[str] = (),
    side_by_side: bool = False,
    theme: str = "light",
    height: int = 520,
) -> go.Figure:
    """Draw maps under their titles, one above the other, or `side_by_side`. The rows with ids in `chosen` stand out.

    `panels` has a table of points for each title: id, lang, text, translation, own, x, y, and the column `colour`. Each
    language has its own symbol, in the order of `langs`; the user's own sentences are stars. Over 5,000 points are
    drawn with WebGL: smaller, and the more transparent the more there are. A point's `customdata` is its row's id.
    """
    count = sum(map(len, panels.values()))
    first = next(iter(panels.values()))
    values = pd.concat(list(panels.values()))[colour]
    groups = [] if pd.api.types.is_numeric_dtype(values) else categories(first[colour], colour, langs, theme)
    kind = go.Scatter if count <= MAX_SVG else go.Scattergl
    size, opacity = (6, 1.0) if count <= MAX_SVG else (4, max(0.05, (MAX_SVG / count) ** 0.5))
    style = Style(colour, groups, frozenset(chosen), kind, size, opacity, theme)
    figure, places = panes(list(panels), side_by_side)
    in_legend = set[str]()
    for table, (row, col) in zip(panels.values(), places, strict=True):
        for trace in panel(table, style):
            if trace.legendgroup:
                trace.showlegend = trace.legendgroup not in in_legend
                in_legend.add(trace.legendgroup)
            figure.add_trace(trace, row=row, col=col)
        figure.update_xaxes(display.FIGURES["maps"]["axes"], row=row, col=col)
        anchor = figure.get_subplot(row, col).xaxis.plotly_name.replace("axis", "")
        figure.update_yaxes(display.FIGURES["maps"]["axes"], scaleanchor=anchor, row=row, col=col)
    figure.update_annotations(font={"size": PIXELS["title"], "color": INK[theme]})
    figure.update_layout(display.FIGURES["maps"]["layout"])
    figure.update_layout(height=height, font={"size": PIXELS["small"], "color": INK[theme]})
    return figure.update_layout(coloraxis=colour_scale(values, colour, theme))


def panes(titles: Sequence[str], side_by_side: bool) -> tuple[go.Figure, list[tuple[int, int]]]:
    """Return an empty figure whose panes have these titles on the left, and the (row, column) of each pane."""
    places = [(1, at) if side_by_side else (at, 1) for at in range(1, len(titles) + 1)]
    spacing = {"vertical_spacing": 0.18 / len(titles), "horizontal_spacing": 0.04}
    figure = make_subplots(*places[-1], subplot_titles=titles, **spacing)
    for title, (row, col) in zip(figure.layout.annotations, places, strict=True):
        title.update(x=figure.get_subplot(row, col).xaxis.domain[0], xanchor="left")
    return figure, places


def categories(values: pd.Series, colour: str, langs: Sequence[str], theme: str) -> list[tuple[str, str, str]]:
    """Return the categories of a column, each as (category, label, colour)."""
    order = {"mark": MARK_ORDER, "lang": langs}.get(colour) or list(values.cat.categories)
    groups = []
    for at, value in enumerate(order):
        label, shade = value, cycled(display.PALETTE[theme], at)
        if colour == "lang":
            label, shade = language_name(value), display.lang_colour(value, theme)
        elif value == NONE:
            label, shade = "no mark" if colour == "mark" else NONE, display.REST
        groups.append((value, label, shade))
    return groups


def panel(table: pd.DataFrame, style: Style) -> Iterator[go.Scatter | go.Scattergl]:
    """Yield plotly traces of the points of one map, by language and category; the user's sentences are separate."""
    langs = table["lang"].unique()
    for (lang, own), part in table.groupby(["lang", "own"], sort=False):
        symbol = cycled(display.STARS if own else display.SYMBOLS, display.lang_place(lang))
        drawn = replace(style, size=style.size + LARGER * (lang == langs[0] and len(langs) > 1))
        drawn = replace(style, kind=go.Scatter, size=15, opacity=1.0) if own else drawn
        for value, label, shade in style.groups or [("", "", "")]:
            group = part if not value else part[(part[style.colour] == value).to_numpy()]
            if value and group.empty:
                continue
            trace = points(group, symbol, drawn)
            if own:
                trace.marker.line.update(width=1.2, color=INK[style.theme])
            if not value:
                trace.marker.update(color=group[style.colour], coloraxis="coloraxis")
            else:
                trace.update(name=plain(label), legendgroup=value, marker_color=shade)
            yield trace


def colour_scale(values: pd.Series, colour: str, theme: str) -> dict[str, Any]:
    """Return the colour scale of a numeric column. It spans two percentiles, so that outliers don't compress it."""
    low = high = None
    ends: dict[str, Any] = {}
    if pd.api.types.is_numeric_dtype(values):
        low, high = map(float, np.nanpercentile(values, CLIPPED, method="nearest"))
        texts = [f"{'≤ ' if values.min() < low else ''}{low:.4g}", f"{'≥ ' if values.max() > high else ''}{high:.4g}"]
        ends = {"tickvals": [low, high], "ticktext": texts}
    title = {"text": plain(colour_title(colour)), "side": "bottom", "font_color": INK[theme]}
    bar = {"orientation": "h", "y": 0, "yanchor": "top", "thickness": 8, "len": 1, "tickfont_color": INK[theme]}
    return {"colorscale": AMOUNTS[theme], "cmin": low, "cmax": high, "colorbar": {**bar, **ends, "title": title}}


def points(table: pd.DataFrame, symbol: str, style: Style) -> go.Scatter | go.Scattergl:
    """Return a plotly trace of these rows. If any row of the figure is highlighted, the others are faded."""
    ids = table["id"].tolist()
    line = {"width": 0 if style.kind is go.Scattergl else 0.6, "color": EDGE}
    return style.kind(
        x=table["x"].to_numpy(np.float32),
        y=table["y"].to_numpy(np.float32),
        customdata=ids,
        text=[hover(row.text, row.translation, row.lang) for row in table.itertuples()],
        hovertemplate="%{text}<extra></extra>",
        mode="markers",
        marker={"symbol": symbol, "size": style.size, "opacity": style.opacity, "line": line},
        selectedpoints=[at for at, row in enumerate(ids) if row in style.chosen] if style.chosen else None,
        selected={"marker": {"opacity": 1, "size": style.size + min(3, style.size // 2)}},
        # without this, faded points would get the size of highlighted points
        unselected={"marker": {"opacity": 0.18 * style.opacity, "size": style.size}},
        showlegend=False,
    )


def hover(text: str, translation: str, lang: str) -> str:
    """Return a point's hover text: sentence and translation, broken into short lines and escaped for plotly."""
    own, other = ([plain(line) for line in textwrap.wrap(part, 48)[:6]] for part in (text, translation))
    return "<br>".join([f"<b>{plain(language_name(lang))}</b>", *own, *(f"<i>{line}</i>" for line in other)])
