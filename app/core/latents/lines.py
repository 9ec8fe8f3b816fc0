"""Lines on maps: between translations, and along an interpolation."""

from __future__ import annotations

import itertools
from collections.abc import Collection

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.core.theme import EDGE, INK, PIXELS

MAX_LINES = 500  # translations joined at most; more lines would hide the points


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
