"""Maps of latents: one point per sentence."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.core.latents.lines import DENSITY, TRANSLATIONS, contours, pair_lines, path_trace
from app.core.rows import CLUSTER, FINE_CLUSTER, NONE, colour_title, language_name
from app.core.theme import (
    AMOUNTS,
    EDGE,
    GROUND,
    INK,
    PALETTE,
    PIXELS,
    REST,
    STARS,
    SYMBOLS,
    cycled,
    lang_colour,
    lang_place,
    plain,
)

MARK_ORDER = ("full stop", "exclamation", "question", "ellipsis", "other", "none")
AXIS = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "", "title": None}
LAYOUT = {
    "margin": {"l": 4, "r": 4, "t": 28, "b": 56},
    "dragmode": "lasso",
    "paper_bgcolor": "rgba(0, 0, 0, 0)",  # the page's own ground, in either theme
    "plot_bgcolor": GROUND,
    "uirevision": "map",
    "hoverlabel": {"align": "left"},
    "legend": {
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
}
MAX_SVG = 5_000  # points up to which a map is SVG; WebGL paints more
MAX_SVG_ON_REQUEST = 20_000  # points up to which it can be SVG if the user wants to save the drawing
CLIPPED = (2, 98)  # percentiles that colour scales end at
LINE, NAME = 0.07, 0.45  # height and width of a cluster's name, as shares of the map
LARGER = 3  # pixels by which marks of the first language exceed those drawn on top of them: both are seen
ZOOMED = 0.5  # the share of the map's width below which fine clusters are named


@dataclass(frozen=True)
class Style:
    """How the rows of every panel of a figure are drawn."""

    colour: str  # a column
    order: Sequence[str]  # every category; empty if `colour` is a number
    langs: Sequence[str]
    chosen: frozenset[str]  # ids
    kind: type[go.Scatter] | type[go.Scattergl]
    size: int  # pixels
    opacity: float
    hover: bool
    theme: str


def latent_map(
    panels: Mapping[str, pd.DataFrame],
    colour: str,
    langs: Sequence[str],
    *,
    chosen: Collection[str] = (),
    named: bool = True,
    lines: Collection[str] = (),
    paths: Mapping[str, np.ndarray] | None = None,
    svg: bool = False,
    hover: bool = True,
    side_by_side: bool = False,
    theme: str = "light",
    height: int = 520,
) -> go.Figure:
    """Maps above one another, with `side_by_side` the first at the left of the others, each with a title.

    Points are rows (id, lang, text, translation, own, x, y, `colour`). `colour` is a column, one of `rows.COLOURS` or
    the user's. Symbols distinguish languages; stars are the user's own sentences. Rows whose id is in `chosen` stand
    out. `named` writes the names of clusters on the first map; `lines` are `TRANSLATIONS`, which joins them, and
    `DENSITY`, its contours; `paths` are the steps (S, 2) from one sentence to another. A point's `customdata` is its
    row's id. Up to 5,000 points are SVG, with `svg` up to 20,000; more are painted by WebGL, smaller and the more
    transparent the more there are. `hover` gives every point its text.
    """
    count = sum(map(len, panels.values()))
    values = pd.concat(list(panels.values()))[colour]
    order = categories(next(iter(panels.values()))[colour], colour, langs)
    kind = go.Scatter if count <= (MAX_SVG_ON_REQUEST if svg else MAX_SVG) else go.Scattergl
    size, opacity = (6, 1.0) if count <= MAX_SVG else (4, max(0.05, (MAX_SVG / count) ** 0.5))
    style = Style(colour, order, langs, frozenset(chosen), kind, size, opacity, hover, theme)
    figure, places = panes(list(panels), side_by_side)
    in_legend = set[str]()
    for (title, table), (row, col) in zip(panels.items(), places, strict=True):
        if TRANSLATIONS in lines:
            figure.add_trace(pair_lines(table, style.chosen), row=row, col=col)
        if DENSITY in lines:
            figure.add_trace(contours(table, theme), row=row, col=col)
        for trace in panel(table, style):
            if trace.legendgroup:
                trace.showlegend = trace.legendgroup not in in_legend
                in_legend.add(trace.legendgroup)
            figure.add_trace(trace, row=row, col=col)
        if paths and title in paths:
            figure.add_trace(path_trace(paths[title], theme), row=row, col=col)
        figure.update_xaxes(AXIS, row=row, col=col)
        anchor = figure.get_subplot(row, col).xaxis.plotly_name.replace("axis", "")
        figure.update_yaxes(AXIS, scaleanchor=anchor, row=row, col=col)
    figure.update_annotations(font={"size": PIXELS["title"], "color": INK[theme]})
    if colour == CLUSTER and named:
        name_clusters(figure, next(iter(panels.values())), theme)
    figure.update_layout(LAYOUT, height=height, font={"size": PIXELS["small"], "color": INK[theme]})
    return figure.update_layout(coloraxis=colour_scale(values, colour, theme))


def panes(titles: Sequence[str], side_by_side: bool) -> tuple[go.Figure, list[tuple[int, int]]]:
    """An empty figure, and the row and column of each of its panes; their titles are at the left."""
    if side_by_side and len(titles) > 1:
        others = len(titles) - 1
        specs: list[list[dict | None]] = [[{"rowspan": others}, {}], *([None, {}] for _ in range(others - 1))]
        figure = make_subplots(
            others, 2, specs=specs, subplot_titles=titles, vertical_spacing=0.18 / others, horizontal_spacing=0.04
        )
        places = [(1, 1), *((row, 2) for row in range(1, others + 1))]
    else:
        figure = make_subplots(len(titles), 1, subplot_titles=titles, vertical_spacing=0.18 / len(titles))
        places = [(row, 1) for row in range(1, len(titles) + 1)]
    # plotly adds no annotation for an empty title
    titled = [place for title, place in zip(titles, places, strict=True) if title]
    for title, (row, col) in zip(figure.layout.annotations, titled, strict=True):
        title.update(x=figure.get_subplot(row, col).xaxis.domain[0], xanchor="left")
    return figure, places


def name_clusters(figure: go.Figure, table: pd.DataFrame, theme: str) -> None:
    """The name of each cluster, on the first map, where its middle is, or above the name that is there already; those
    of fine clusters are hidden until the browser shows `ZOOMED` of the map."""
    given = table[~table["own"].to_numpy()]
    for column, share in ((CLUSTER, 1.0), (FINE_CLUSTER, ZOOMED)):
        middles = given.groupby(column, observed=True)[["x", "y"]].median().sort_values("y")
        step, wide = share * LINE * np.ptp(given["y"]), share * NAME * np.ptp(given["x"])
        written: list[tuple[float, float]] = []
        for name, x, y in middles.itertuples():
            while any(abs(x - other_x) < wide and abs(y - other_y) < step for other_x, other_y in written):
                y += step / 4
            written.append((x, y))
            figure.add_annotation(
                name=column,
                visible=column == CLUSTER,
                x=float(x),
                y=float(y),
                xref="x",
                yref="y",
                text=plain(str(name)),
                showarrow=False,
                font={"size": PIXELS["small"], "color": INK[theme]},
                bgcolor={"light": "rgba(255, 255, 255, 0.8)", "dark": "rgba(14, 17, 23, 0.8)"}[theme],
            )


def panel(table: pd.DataFrame, style: Style) -> Iterator[go.Scatter | go.Scattergl]:
    """The points of one map: one trace per language, category, and owner of the sentences."""
    langs = table["lang"].unique()
    for (lang, own), part in table.groupby(["lang", "own"], sort=False):
        under = replace(style, size=style.size + LARGER * (lang == langs[0] and len(langs) > 1))
        symbol = cycled(STARS if own else SYMBOLS, lang_place(lang))
        for value, group in split(part, style.colour, style.order):
            trace = points(group, symbol, replace(style, kind=go.Scatter, size=15, opacity=1.0) if own else under)
            if own:
                trace.marker.line.update(width=1.2, color=INK[style.theme])
            if value is None:
                trace.marker.update(color=group[style.colour], coloraxis="coloraxis")
            else:
                trace.update(name=label(style.colour, value), legendgroup=value)
                trace.marker.color = shade(value, style)
            yield trace


def colour_scale(values: pd.Series, colour: str, theme: str) -> dict[str, object]:
    """One colour scale for all panels, if `colour` is a number, from its 2nd to its 98th percentile: a few extreme
    sentences would make all others look alike."""
    low = high = None
    ends: dict[str, object] = {}
    if numeric(values):
        low, high = map(float, np.nanpercentile(values, CLIPPED, method="nearest"))
        texts = [f"{'≤ ' if values.min() < low else ''}{low:.4g}", f"{'≥ ' if values.max() > high else ''}{high:.4g}"]
        ends = {"tickvals": [low, high], "ticktext": texts}
    return {
        "colorscale": AMOUNTS[theme],
        "cmin": low,
        "cmax": high,
        "colorbar": {
            "orientation": "h",
            "y": 0,
            "yanchor": "top",
            "thickness": 8,
            "len": 1,
            **ends,
            "tickfont_color": INK[theme],
            "title": {"text": plain(colour_title(colour)), "side": "bottom", "font_color": INK[theme]},
        },
    }


def numeric(values: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(values)


def categories(values: pd.Series, colour: str, langs: Sequence[str]) -> Sequence[str]:
    """Every possible category, in a fixed order; empty if `colour` is a number."""
    if numeric(values):
        return ()
    fixed: dict[str, Sequence[str]] = {"mark": MARK_ORDER, "lang": langs}
    return fixed.get(colour) or list(values.cat.categories)


def split(table: pd.DataFrame, colour: str, order: Sequence[str]) -> list[tuple[str | None, pd.DataFrame]]:
    """The rows of each category, or all rows under None if `colour` is a number."""
    if not order:
        return [(None, table)]
    parts = [(value, table[(table[colour] == value).to_numpy()]) for value in order]
    return [(value, part) for value, part in parts if len(part)]


def shade(value: str, style: Style) -> str:
    """The fixed colour of a category."""
    if style.colour == "lang":
        return lang_colour(value, style.theme)
    return REST if value == NONE else cycled(PALETTE[style.theme], style.order.index(value))


def label(colour: str, value: str) -> str:
    """The name of a category in the legend."""
    if value == NONE:
        return "no mark" if colour == "mark" else "none"
    return language_name(value) if colour == "lang" else plain(value)


def points(table: pd.DataFrame, symbol: str, style: Style) -> go.Scatter | go.Scattergl:
    """One trace; rows that are not chosen fade once any row of the figure is."""
    ids = table["id"].tolist()
    webgl = style.kind is go.Scattergl
    return style.kind(
        x=table["x"].to_numpy(np.float32),
        y=table["y"].to_numpy(np.float32),
        customdata=ids,
        text=[hover(row.text, row.translation, row.lang) for row in table.itertuples()] if style.hover else None,
        hovertemplate="%{text}<extra></extra>" if style.hover else None,
        hoverinfo=None if style.hover else "skip",
        mode="markers",
        marker={
            "symbol": symbol,
            "size": style.size,
            "opacity": style.opacity,
            "line": {"width": 0 if webgl else 0.6, "color": EDGE},
        },
        selectedpoints=[at for at, row in enumerate(ids) if row in style.chosen] if style.chosen else None,
        selected={"marker": {"opacity": 1, "size": style.size + min(3, style.size // 2)}},
        # without this they would keep the size of chosen points
        unselected={"marker": {"opacity": 0.18 * style.opacity, "size": style.size}},
        showlegend=False,
    )


def hover(text: str, translation: str, lang: str) -> str:
    """Wrap the hover text of a point, and escape it: plotly would read tags and entities in it."""
    own, other = ([plain(line) for line in textwrap.wrap(part, 48)[:6]] for part in (text, translation))
    return "<br>".join([f"<b>{plain(language_name(lang))}</b>", *own, *(f"<i>{line}</i>" for line in other)])
