"""Maps of latents: points for sentences, lines between translations and along a path, and contours of the density."""

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.core import display
from app.core.display import AMOUNTS, EDGE, INK, PIXELS, SOFT, cycled, plain
from app.core.rows import CLUSTER, NONE, colour_title, language_name

MARK_ORDER = ("full stop", "exclamation", "question", "ellipsis", "other", "none")
AXIS = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "", "title": None}
LAYOUT = {
    "margin": {"l": 4, "r": 4, "t": 28, "b": 56},
    "dragmode": "lasso",
    "paper_bgcolor": "rgba(0, 0, 0, 0)",  # transparent, so that it is the background of the page
    "plot_bgcolor": display.GROUND,
    "uirevision": "map",
    "hoverlabel": {"align": "left"},
    "legend": {
        "orientation": "h", "y": -0.01, "yanchor": "top", "x": 0, "itemsizing": "constant", "entrywidth": 0.32,
        "entrywidthmode": "fraction", "title": None, "bgcolor": "rgba(0, 0, 0, 0)",
    },
}  # fmt: skip
MAX_SVG = 5_000  # maximum number of points of an SVG map; larger maps use WebGL
CLIPPED = (2, 98)  # percentiles at the ends of a colour scale
LINE, NAME = 0.07, 0.45  # height and width of a cluster's name, as shares of the map
LARGER = 3  # the first language's marks are larger by this many pixels, so that marks drawn over them leave an edge
TRANSLATIONS, DENSITY = "translations", "density"  # kinds of lines that a map can have
MAX_LINES = 500  # maximum number of translations that are joined; more lines would hide the points
CELLS, LEVELS = 20, 8  # maximum number of cells per side of the grid in which points are counted; number of contours


@dataclass(frozen=True)
class Style:
    """How the rows are drawn in every panel of a figure."""

    colour: str  # a column name
    groups: Sequence[tuple[str, str, str]]  # `categories`; empty if `colour` is a number
    chosen: frozenset[str]  # ids of rows
    kind: type[go.Scatter] | type[go.Scattergl]
    size: int  # pixels
    opacity: float
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
    side_by_side: bool = False,
    theme: str = "light",
    height: int = 520,
) -> go.Figure:
    """Draw maps under their titles, one above the other. With `side_by_side`, the first is to the left of the others.

    Args:
        panels: Title -> one row per point: id, lang, text, translation, own, x, y, the column `colour`; pair for lines.
        colour: The column that sets the colours: one of `rows.COLOURS`, or a column of the user.
        langs: All languages, in order; each has its own symbol. The user's own sentences are stars.
        chosen: Ids of the rows to highlight.
        named: Whether to write the names of clusters on the first map.
        lines: `TRANSLATIONS` joins translations, `DENSITY` draws contours.
        paths: Title -> the places (S, 2) of the steps from one sentence to another.

    Returns:
        A figure; a point's `customdata` is its row's id. Up to 5,000 points are SVG. More points are drawn with WebGL:
        smaller, and the more transparent the more points there are.
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
    for (title, table), (row, col) in zip(panels.items(), places, strict=True):
        traces = [pair_lines(table, style.chosen)] if TRANSLATIONS in lines else []
        traces += [contours(table, theme)] if DENSITY in lines else []
        for trace in panel(table, style):
            if trace.legendgroup:
                trace.showlegend = trace.legendgroup not in in_legend
                in_legend.add(trace.legendgroup)
            traces.append(trace)
        traces += [path_trace(paths[title], theme)] if paths and title in paths else []
        for trace in traces:
            figure.add_trace(trace, row=row, col=col)
        figure.update_xaxes(AXIS, row=row, col=col)
        anchor = figure.get_subplot(row, col).xaxis.plotly_name.replace("axis", "")
        figure.update_yaxes(AXIS, scaleanchor=anchor, row=row, col=col)
    figure.update_annotations(font={"size": PIXELS["title"], "color": INK[theme]})
    if colour == CLUSTER and named:
        name_clusters(figure, first, theme)
    figure.update_layout(LAYOUT, height=height, font={"size": PIXELS["small"], "color": INK[theme]})
    return figure.update_layout(coloraxis=colour_scale(values, colour, theme))


def panes(titles: Sequence[str], side_by_side: bool) -> tuple[go.Figure, list[tuple[int, int]]]:
    """Return an empty figure with titles on the left, and the row and column of each pane of the figure."""
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
    """Write the name of each cluster on the first map: at the middle of the cluster, or higher if another name is in
    the way."""
    given = table[~table["own"].to_numpy()]
    ground = {"light": "rgba(255, 255, 255, 0.8)", "dark": "rgba(14, 17, 23, 0.8)"}[theme]
    middles = given.groupby(CLUSTER, observed=True)[["x", "y"]].median().sort_values("y")
    step, wide = LINE * np.ptp(given["y"]), NAME * np.ptp(given["x"])
    written: list[tuple[float, float]] = []
    for name, x, y in middles.itertuples():
        while any(abs(x - other_x) < wide and abs(y - other_y) < step for other_x, other_y in written):
            y += step / 4
        written.append((x, y))
        figure.add_annotation(
            x=float(x), y=float(y), xref="x", yref="y", showarrow=False, bgcolor=ground,
            text=plain(str(name)), font={"size": PIXELS["small"], "color": INK[theme]},
        )  # fmt: skip


def categories(values: pd.Series, colour: str, langs: Sequence[str], theme: str) -> list[tuple[str, str, str]]:
    """Return each category of a column, its label and its colour."""
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
    """Yield the points of one map: one trace per language, category and kind (the text's sentences or the user's)."""
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
                trace.update(name=plain(label), legendgroup=value)
                trace.marker.color = shade
            yield trace


def colour_scale(values: pd.Series, colour: str, theme: str) -> dict[str, Any]:
    """Return the colour scale of a numeric column, between two percentiles, because there may be extreme values."""
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
    """Return the trace of these rows. If any row of the figure is chosen, the others are faded."""
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
        # otherwise, they would have the size of chosen points
        unselected={"marker": {"opacity": 0.18 * style.opacity, "size": style.size}},
        showlegend=False,
    )


def hover(text: str, translation: str, lang: str) -> str:
    """Return the hover text of a point in short lines, escaped for plotly."""
    own, other = ([plain(line) for line in textwrap.wrap(part, 48)[:6]] for part in (text, translation))
    return "<br>".join([f"<b>{plain(language_name(lang))}</b>", *own, *(f"<i>{line}</i>" for line in other)])


def pair_lines(table: pd.DataFrame, chosen: Collection[str]) -> go.Scatter:
    """Join translations with thin lines: those of the chosen rows, or the first 500 if no rows are chosen."""
    given = table[~table["own"].to_numpy()]
    pairs = given["pair"].to_numpy()
    if chosen:
        pairs = pairs[[row in chosen for row in given["id"].tolist()]]
    given = given[given["pair"].isin(pd.unique(pairs)[:MAX_LINES])].sort_values("pair", kind="stable")
    places: list[tuple[float | None, float | None]] = []
    for _, pair in given.groupby("pair")[["x", "y"]]:
        corners = list(pair.itertuples(index=False, name=None))
        if len(corners) > 1:
            places += [*corners, *corners[: len(corners) > 2], (None, None)]
    xs, ys = zip(*places, strict=True) if places else ((), ())
    line = {"width": 0.7, "color": EDGE}
    return go.Scatter(x=xs, y=ys, mode="lines", line=line, hoverinfo="skip", showlegend=False)


def path_trace(steps: np.ndarray, theme: str) -> go.Scatter:
    """Return a line along the steps (S, 2). Only the first and the last step are labelled with their numbers."""
    return go.Scatter(
        x=steps[:, 0], y=steps[:, 1], text=["1", *[""] * (len(steps) - 2), str(len(steps))], hoverinfo="skip",
        mode="lines+markers+text", textposition="top center", showlegend=False,
        textfont={"size": PIXELS["title"] + 3, "weight": "bold", "color": INK[theme]},
        line={"width": 2, "color": INK[theme]}, marker={"size": 7, "color": INK[theme]},
    )  # fmt: skip


def contours(table: pd.DataFrame, theme: str) -> go.Histogram2dContour:
    """Return contours of the density of a map's points."""
    return go.Histogram2dContour(
        x=table["x"], y=table["y"], nbinsx=CELLS, nbinsy=CELLS, ncontours=LEVELS, showscale=False, hoverinfo="skip",
        colorscale=[[0, SOFT[theme]], [1, SOFT[theme]]], contours={"coloring": "lines"}, line={"width": 1},
    )  # fmt: skip
