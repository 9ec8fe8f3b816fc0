"""Figures of many rows: each has its name above its marks, so that a phone is wide enough."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go

from app.core.theme import EDGE, INK, PAGE, PIXELS, SOFT, finish, plain

UNIT = 33  # pixels
SLIM = 0.39  # height of a slim row
HIGHLIGHT = "rgba(230, 159, 0, 0.16)"  # behind results that were run here
GRID = "rgba(128, 128, 128, 0.25)"


@dataclass
class Lines:
    """Rows from the top down, at y of 0 and below; a row of height 1 takes `UNIT` pixels."""

    figure: go.Figure
    theme: str
    total: float = 0.0
    grid: list[float] = field(default_factory=list)
    # all given to the figure at once: it copies everything whenever something is added
    texts: list[dict[str, Any]] = field(default_factory=list)
    bands: list[dict[str, Any]] = field(default_factory=list)

    def heading(self, text: str, ticks: tuple[int, ...] = ()) -> None:
        """A row that names those below it, and repeats the values of the x axis."""
        y = self._take(0.9)
        self._write(f"<b>{plain(text)}</b>", y, PIXELS["title"], INK)
        for tick in ticks:
            font = {"size": 11, "color": SOFT[self.theme]}
            self.texts.append({"x": tick, "y": y, "text": str(tick), "showarrow": False, "font": font})

    def name(self, text: str) -> None:
        """A row with only a name, for the rows below it."""
        self._write(text, self._take(0.58), PIXELS["small"], INK)

    def row(self, name: str, mark: str = "", live: bool = False) -> float:
        """The y of the marks below a name; `mark`, on its own line, tells several results apart."""
        height = 1.5 if mark else 1
        middle = self._take(height)
        if live:
            self._highlight(middle, height)
        lines = [name, f'<span style="font-size:11px">{plain(mark)}</span>'] if mark else [name]
        self._write("<br>".join(lines), middle + 0.22, PIXELS["small"], INK)
        self.grid.append(middle - height / 2 + 0.24)
        return self.grid[-1]

    def slim(self, name: str, live: bool = False) -> float:
        """The y of marks beside a short name."""
        y = self._take(SLIM)
        if live:
            self._highlight(y, SLIM)
        self._write(plain(name), y, 11, SOFT)
        self.grid.append(y)
        return y

    def finished(self, title: str) -> go.Figure:
        figure = finish(self.figure, title, round(130 + UNIT * self.total), self.theme)
        figure.layout.annotations += tuple(map(go.layout.Annotation, self.texts))
        figure.layout.shapes += tuple(map(go.layout.Shape, self.bands))
        figure.update_yaxes(
            range=[-self.total, 0], tickvals=self.grid, showticklabels=False, gridcolor=GRID, zeroline=False, title=None
        )
        figure.update_xaxes(showgrid=True, gridcolor=GRID, zeroline=False)
        return figure

    def _take(self, height: float) -> float:
        """The middle of the next row."""
        self.total += height
        return -self.total + height / 2

    def _write(self, text: str, y: float, size: int, colour: dict[str, str]) -> None:
        self.texts.append(
            {
                "x": 0,
                "xref": "paper",
                "xanchor": "left",
                "y": y,
                "text": text,
                "showarrow": False,
                "align": "left",
                "font": {"size": size, "color": colour[self.theme]},
                "bgcolor": PAGE[self.theme],
                "borderpad": 0,  # so that no name covers the one above it
            }
        )

    def _highlight(self, y: float, height: float) -> None:
        top, bottom = y + height / 2, y - height / 2
        place = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": bottom, "y1": top}
        self.bands.append({**place, "fillcolor": HIGHLIGHT, "line": {"width": 0}, "layer": "below"})


def edge(size: int, symbol: str, colour: str) -> dict[str, object]:
    """A filled mark with a thin edge."""
    return {"size": size, "symbol": symbol, "color": colour, "line": {"width": 0.6, "color": EDGE}}


def papers(symbol: str, colour: str) -> dict[str, object]:
    """The paper's mark: the same symbol, open and grey."""
    return {"size": 10, "symbol": f"{symbol}-open", "color": colour, "line": {"width": 1.5}}
