"""The plane of disagreement: a point for each pair of sentences, placed by its similarity in each latent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.core.theme import AMOUNTS, EDGE, INK, PALETTE, REST, cycled, finish, latent_colour, plain
from app.plane.compute import NEAR_IN_MEANING, NEAR_IN_STYLE, RANDOM
from bgt_core.contracts import LANGUAGE, SEMANTIC

NONE = "without a value"  # legend entry of points without a colour value
MAX_SVG = 2_000  # points; more are drawn with WebGL
MAX_HOVER = 10_000  # points with their own hover text
SHORT = 70  # characters of a sentence in a hover text
HEIGHT = 560
CLIPPED = 0.98  # share of the amounts up to which colours differ
# positions of the labels, in the order of the quadrants
CORNERS = ((0.01, 0.99), (0.99, 0.99), (0.01, 0.01), (0.99, 0.01))


def plane(
    pairs: pd.DataFrame,
    colour: str,
    cuts: tuple[float, float],
    counts: Mapping[str, int],
    titles: tuple[str, str, str],
    ticks: tuple[Mapping[str, float], Mapping[str, float]],
    compared: int,
    theme: str = "light",
) -> go.Figure:
    """Draw rows (kind, left, right, semantic, style, their ranks, `colour`) as points; `customdata` is the row's index.

    `colour` is the column "kind", another category, or a number. `cuts` are the similarity thresholds of both axes;
    `counts` are the pairs of the four quadrants by name: upper left, upper right, lower left, lower right. `titles`
    name the axes and the colour. `ticks` are similarities by their labels, for both axes. `compared` is the number of
    random pairs that ranks are of.
    """
    size, opacity = look(len(pairs))
    figure = go.Figure()
    kind = go.Scatter if len(pairs) <= MAX_SVG else go.Scattergl
    for name, places, marker in traces(pairs, colour, titles[2], theme):
        part = pairs.iloc[places]
        hover = len(pairs) <= MAX_HOVER
        figure.add_trace(
            kind(
                x=part["semantic"].to_numpy(np.float32),
                y=part["style"].to_numpy(np.float32),
                customdata=places.tolist(),
                text=[hover_text(row, compared) for row in part.itertuples()] if hover else None,
                hovertemplate="%{text}<extra></extra>" if hover else "%{x:.2f}, %{y:.2f}",
                name=plain(name),
                showlegend="colorscale" not in marker,
                mode="markers",
                marker={"size": size, "opacity": opacity, "line": {"width": 0}, **marker},
                selected={"marker": {"opacity": 1, "size": size + 5}},
                unselected={"marker": {"opacity": opacity / 2}},
            )
        )
    figure.add_vline(cuts[0], line={"width": 1, "dash": "dash", "color": INK[theme]})
    figure.add_hline(cuts[1], line={"width": 1, "dash": "dash", "color": INK[theme]})
    for (x, y), (name, count) in zip(CORNERS, counts.items(), strict=True):
        lines = name.replace(", ", ",<br>")  # on a phone the names would overlap
        figure.add_annotation(
            x=x, y=y, xref="paper", yref="paper", text=f"<b>{lines}</b><br>{count:,} pairs", showarrow=False,
            xanchor="left" if x < 0.5 else "right", yanchor="top" if y > 0.5 else "bottom",
            align="left" if x < 0.5 else "right", font_color=INK[theme],
        )  # fmt: skip
    finish(figure, "", HEIGHT, theme)
    grid = {"zeroline": False, "gridcolor": EDGE, "griddash": "dot"}
    across, up = ({"tickvals": list(axis.values()), "ticktext": list(axis)} for axis in ticks)
    figure.update_xaxes(title_text=titles[0], tickangle=0, **grid, **across)
    low, high = pairs["style"].min(), pairs["style"].max()
    room = 0.18 * max(high - low, 0.1)  # for the names of the quadrants
    vertical = [float(low - room), float(high + room)]
    figure.update_yaxes(title_text=titles[1], range=vertical, **grid, **up)
    return figure.update_layout(margin={"l": 8, "r": 8, "t": 8, "b": 84}, dragmode="pan")


def look(count: int) -> tuple[int, float]:
    """Choose the size and opacity of points by their number; overlapping points look darker."""
    return (7, 0.75) if count <= 2_000 else (5, 0.4) if count <= 10_000 else (4, 0.15)


def traces(pairs: pd.DataFrame, colour: str, title: str, theme: str) -> Iterator[tuple[str, np.ndarray, dict]]:
    """The name, rows and marker of each part with its own look; the last is drawn on top."""
    values = pairs[colour]
    if pd.api.types.is_numeric_dtype(values):
        missing = values.isna().to_numpy()
        if missing.any():
            yield NONE, np.flatnonzero(missing), {"color": REST}
        bar = {"title": {"text": title, "side": "right", "font_color": INK[theme]}, "thickness": 10, "len": 0.8,
               "tickfont_color": INK[theme]}  # fmt: skip
        shown = np.flatnonzero(~missing)
        amounts = values.to_numpy(float)[shown]
        scale = {"color": amounts, "colorscale": AMOUNTS[theme], "colorbar": bar}
        if len(amounts):  # a few extremes would make all others look alike
            scale |= {"cmin": float(amounts.min()), "cmax": float(np.quantile(amounts, CLIPPED))}
        yield title, shown, scale
        return
    grey = dict.fromkeys((RANDOM, NONE), REST)
    fixed = {NEAR_IN_MEANING: latent_colour(SEMANTIC, theme), NEAR_IN_STYLE: latent_colour(LANGUAGE, theme), **grey}
    names = values.fillna(NONE).astype(str)
    order = names.value_counts().index.tolist()
    for name in sorted(order, key=lambda name: name not in grey):  # grey points lie below
        colour_of = fixed.get(name) or cycled(PALETTE[theme], order.index(name))
        yield name, np.flatnonzero(names == name), {"color": colour_of}


def share(rank: float, compared: int) -> str:
    """The share `rank`, in percent, of the random pairs that a pair is compared with."""
    return f"all {compared:,} random pairs" if rank == 100 else f"{rank:.1f} % of {compared:,} random pairs"


def hover_text(row: Any, compared: int) -> str:
    """Both sentences; then each cosine, and the share of random pairs below it."""
    lines = [plain(text if len(text) <= SHORT else f"{text[:SHORT]}…") for text in (row.left, row.right)]
    lines.append(f"meaning {row.semantic:z.2f}: nearer than {share(row.semantic_rank, compared)}")
    lines.append(f"style {row.style:z.2f}: nearer than {share(row.style_rank, compared)}")
    return "<br>".join(lines)
