"""Lines on maps: between translations, along an interpolation, and around dense parts."""

from __future__ import annotations

import itertools
from collections.abc import Collection

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.core.theme import EDGE, INK, PIXELS, SOFT

MAX_LINES = 500  # translations joined at most; more lines would hide the points

TRANSLATIONS, DENSITY = "translations", "density"  # lines that a map can have
CELLS, LEVELS = 64, 8  # cells of a side that points are counted in; contours
SMOOTHED = 2.0  # standard deviation in cells


def pair_lines(table: pd.DataFrame, chosen: Collection[str]) -> go.Scatter:
    """Thin lines that join translations, closed if there are three or more; 500 at most, and only those of chosen rows
    if any are."""
    given = table[~table["own"].to_numpy()]
    pairs = given["pair"].to_numpy()
    if chosen:
        pairs = pairs[[row in chosen for row in given["id"].tolist()]]
    given = given[given["pair"].isin(pd.unique(pairs)[:MAX_LINES])].sort_values("pair", kind="stable")
    ends = np.flatnonzero(np.diff(given["pair"], append=-1)) + 1  # of each pair's rows
    xs: list[float | None] = []
    ys: list[float | None] = []
    for values, column in ((xs, given["x"].tolist()), (ys, given["y"].tolist())):
        for start, end in itertools.pairwise([0, *ends.tolist()]):
            if end - start > 1:
                values += [*column[start:end], *column[start : start + (end - start > 2)], None]
    return go.Scatter(
        x=xs, y=ys, mode="lines", line={"width": 0.7, "color": EDGE}, hoverinfo="skip", showlegend=False, meta="pairs"
    )


def path_trace(steps: np.ndarray, theme: str) -> go.Scatter:
    """Steps (S, 2), joined; the ends have their numbers."""
    return go.Scatter(
        x=steps[:, 0],
        y=steps[:, 1],
        text=["1", *[""] * (len(steps) - 2), str(len(steps))],
        customdata=list(range(1, len(steps) + 1)),
        mode="lines+markers+text",
        textposition="top center",
        textfont={"size": PIXELS["title"] + 3, "weight": "bold", "color": INK[theme]},
        line={"width": 2, "color": INK[theme]},
        marker={"size": 7, "color": INK[theme]},
        hovertemplate="step %{customdata}<extra></extra>",
        showlegend=False,
    )


def contours(table: pd.DataFrame, theme: str) -> go.Contour:
    """Lines of equal density of a map's points: their counts in a grid, smoothed."""
    from scipy.ndimage import gaussian_filter

    points = table[["x", "y"]].to_numpy(float)
    low, high = points.min(0), points.max(0)
    margin = 0.1 * np.where(high > low, high - low, 1)  # so that the outer lines close
    edges = [np.linspace(start, end, CELLS + 1) for start, end in zip(low - margin, high + margin, strict=True)]
    counts, *_ = np.histogram2d(points[:, 0], points[:, 1], bins=edges)
    middles = [(side[1:] + side[:-1]) / 2 for side in edges]
    return go.Contour(
        x=middles[0],
        y=middles[1],
        z=gaussian_filter(counts.T, SMOOTHED, mode="constant"),
        ncontours=LEVELS,
        contours={"coloring": "lines"},
        colorscale=[[0, SOFT[theme]], [1, SOFT[theme]]],
        line={"width": 1},
        showscale=False,
        hoverinfo="skip",
    )
