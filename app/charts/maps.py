"""Maps of latents: a point a sentence."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.charts.theme import AMOUNTS, EDGE, GROUND, INK, PALETTE, PIXELS, REST, STARS, SYMBOLS, of, plain
from app.rows import COLOURS, NONE, NUMBERS, name

MARK_ORDER = ("full stop", "exclamation", "question", "ellipsis", "other", "none")
PLAIN = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "", "title": None}
DRAWN = 5_000  # points up to which a map is a drawing, each with its sentence on it; a GPU paints more
MOST_DRAWN = 20_000  # points up to which it can be, where somebody wants a drawing to keep
LINES = 500  # pairs joined at most; more would be a grey cloth


def latent_map(
    panels: Mapping[str, pd.DataFrame],
    colour: str,
    langs: Sequence[str],
    *,
    chosen: Collection[str] = (),
    lines: bool = False,
    paths: Mapping[str, np.ndarray] | None = None,
    drawn: bool = False,
    theme: str = "light",
    height: int = 520,
) -> go.Figure:
    """Maps above one another, a title each; points are rows (id, lang, text, translation, own, x, y, and `colour`).

    `colour` is a key of `rows.COLOURS`. Symbols tell languages apart, by their place in `langs`; stars are the
    user's own sentences. Rows whose id is in `chosen` stand out. `lines` joins translations, `paths` are stops (S, 2)
    on the way from one sentence to another. A point's `customdata` is its row's id. Points are drawn up to 5,000, with
    `drawn` up to 20,000, and painted by WebGL past that: such points have no hover text.
    """
    count, chosen = max(map(len, panels.values())), frozenset(chosen)
    order = categories(next(iter(panels.values()))[colour], colour, langs)
    kind = go.Scatter if count <= (MOST_DRAWN if drawn else DRAWN) else go.Scattergl
    figure = make_subplots(rows=len(panels), cols=1, subplot_titles=list(panels), vertical_spacing=0.09)
    values = pd.concat(list(panels.values()))[colour]
    listed = set[str]()
    for place, (title, table) in enumerate(panels.items(), 1):
        if lines:
            figure.add_trace(pair_lines(table, chosen), row=place, col=1)
        for (lang, own), part in table.groupby(["lang", "own"], sort=False):
            symbol = of(STARS if own else SYMBOLS, langs.index(lang))
            for value, group in split(part, colour, order):
                size = 15 if own else 6 if count <= DRAWN else 4
                trace = points(go.Scatter if own else kind, group, symbol, size, chosen)
                if own:
                    trace.marker.line.update(width=1.2, color=INK[theme])
                if value is None:
                    trace.marker.update(color=group[colour], coloraxis="coloraxis")
                else:
                    trace.update(name=label(colour, value), legendgroup=value, showlegend=value not in listed)
                    trace.marker.color = shade(value, order, theme)
                    listed.add(value)
                figure.add_trace(trace, row=place, col=1)
        if paths and title in paths:
            figure.add_trace(way(paths[title], theme), row=place, col=1)
        figure.update_xaxes(PLAIN, row=place, col=1)
        figure.update_yaxes(PLAIN, scaleanchor=f"x{place if place > 1 else ''}", row=place, col=1)
    titles = {"size": PIXELS["title"], "color": INK[theme]}
    figure.update_annotations(x=0, xanchor="left", font=titles)
    figure.update_layout(
        height=height,
        margin={"l": 4, "r": 4, "t": 28, "b": 56},
        dragmode="lasso",
        plot_bgcolor=GROUND,
        uirevision="map",
        font={"size": PIXELS["small"], "color": INK[theme]},
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
            "colorscale": AMOUNTS[theme],
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


def categories(values: pd.Series, colour: str, langs: Sequence[str]) -> Sequence[str]:
    """Every category there can be, in a fixed order; none where `colour` is a number."""
    if colour in NUMBERS:
        return ()
    fixed = {"mark": MARK_ORDER, "lang": langs}
    return fixed.get(colour) or list(values.cat.categories)


def split(table: pd.DataFrame, colour: str, order: Sequence[str]) -> list[tuple[str | None, pd.DataFrame]]:
    """A part for each category, or the whole under None where `colour` is a number."""
    if not order:
        return [(None, table)]
    parts = [(value, table[(table[colour] == value).to_numpy()]) for value in order]
    return [(value, part) for value, part in parts if len(part)]


def shade(value: str, order: Sequence[str], theme: str) -> str:
    """The fixed colour of a category."""
    return REST if value == NONE else of(PALETTE[theme], order.index(value))


def label(colour: str, value: str) -> str:
    """What the legend calls a category."""
    return name(value) if colour == "lang" else "no mark" if value == NONE else value


def points(
    kind: type[go.Scatter] | type[go.Scattergl], table: pd.DataFrame, symbol: str, size: int, chosen: Collection[str]
) -> go.Scatter | go.Scattergl:
    """One trace; rows that are not chosen fade once any row of the figure is."""
    selected = [at for at, row in enumerate(table["id"].tolist()) if row in chosen] if chosen else None
    light = kind is go.Scattergl
    return kind(
        x=table["x"].to_numpy(np.float32),
        y=table["y"].to_numpy(np.float32),
        customdata=table["id"].tolist(),
        text=None if light else [hover(row.text, row.translation, row.lang) for row in table.itertuples()],
        hovertemplate=None if light else "%{text}<extra></extra>",
        hoverinfo="skip" if light else None,
        mode="markers",
        marker={"symbol": symbol, "size": size, "line": {"width": 0 if light else 0.6, "color": EDGE}},
        selectedpoints=selected,
        selected={"marker": {"opacity": 1, "size": size + 3}},
        unselected={"marker": {"opacity": 0.18}},
        showlegend=False,
    )


def pair_lines(table: pd.DataFrame, chosen: Collection[str]) -> go.Scatter:
    """A thin line from each sentence to its translation, 500 at most; once rows are chosen, only theirs."""
    given = table[~table["own"].to_numpy()]
    pairs = given["pair"].to_numpy()
    if chosen:
        pairs = pairs[[row in chosen for row in given["id"].tolist()]]
    given = given[given["pair"].isin(pd.unique(pairs)[:LINES])]
    xs: list[float | None] = []
    ys: list[float | None] = []
    for _, pair in given.groupby("pair"):
        xs += [*pair["x"], None]
        ys += [*pair["y"], None]
    return go.Scatter(x=xs, y=ys, mode="lines", line={"width": 0.7, "color": EDGE}, hoverinfo="skip", showlegend=False)


def way(stops: np.ndarray, theme: str) -> go.Scatter:
    """Stops (S, 2), joined; the ends have their numbers."""
    return go.Scatter(
        x=stops[:, 0],
        y=stops[:, 1],
        text=["1", *[""] * (len(stops) - 2), str(len(stops))],
        customdata=list(range(1, len(stops) + 1)),
        mode="lines+markers+text",
        textposition="top center",
        textfont={"size": PIXELS["title"] + 3, "weight": "bold", "color": INK[theme]},
        line={"width": 2, "color": INK[theme]},
        marker={"size": 7, "color": INK[theme]},
        hovertemplate="stop %{customdata}<extra></extra>",
        showlegend=False,
    )


def hover(text: str, translation: str, lang: str) -> str:
    """A point's hover text, wrapped; plotly reads tags and entities, so the sentences' own are made plain."""
    said, other = ([plain(line) for line in textwrap.wrap(part, 48)[:6]] for part in (text, translation))
    return "<br>".join([f"<b>{plain(name(lang))}</b>", *said, *(f"<i>{line}</i>" for line in other)])
