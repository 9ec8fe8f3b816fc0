"""A figure as print wants it: white ground, one column of a page wide, with its caption inside."""

from __future__ import annotations

import textwrap
from typing import Any

import plotly.graph_objects as go

from app.charts.theme import INK, PIXELS, SOFT, plain

WIDTH_MM = 180  # two columns of a journal, or the text of an A4 page
DOTS_PER_INCH = 300
WIDTH = round(WIDTH_MM / 25.4 * 96)  # in the browser's pixels, of which an inch has 96
MAX_VECTORS = 20_000  # points up to which all of a drawing are vectors; a file of more would open nowhere
# On every system one of these has the widths of Arial, so that what fits here fits where the file is opened.
FONTS = "Arial, Liberation Sans, Helvetica, DejaVu Sans, sans-serif"
CAPTION = {"size": 11, "line": 15, "letters": 100}  # pixels; letters of a line, by the widest of those fonts


def publication(figure: go.Figure, caption: str = "") -> go.Figure:
    """A copy of a figure of the light theme for paper; `caption` says what it shows: method, numbers, seed, model.

    Points that the browser would paint (WebGL) become vectors, up to 20,000 of them.
    """
    drawing: dict[str, Any] = figure.to_dict()
    points = sum(len(trace["x"]) for trace in figure.data if trace.type == "scattergl")
    for trace in drawing["data"]:
        if trace["type"] == "scattergl" and points <= MAX_VECTORS:
            trace["type"] = "scatter"
    paper = go.Figure(drawing)
    title = paper.layout.title.text
    lines = [plain(line) for line in textwrap.wrap(caption, CAPTION["letters"])]  # names of files may be in it
    heading = f'<span style="font-size:{PIXELS["title"]}px;color:{INK["light"]}"><b>{title}</b></span>'
    above = CAPTION["line"] * (len(lines) + (2 if title else 1))
    between = paper.layout.margin.t if title is None and paper.layout.margin.t else 12  # titles of panels
    paper.update_layout(
        template="plotly_white",
        width=WIDTH,
        height=(paper.layout.height or 450) + above,
        paper_bgcolor="white",
        plot_bgcolor="white",
        font={"family": FONTS, "color": INK["light"]},
        margin={"l": 16, "r": 16, "t": above + between},
        title={"text": "<br>".join([heading] * bool(title) + lines),
               "font": {"size": CAPTION["size"], "color": SOFT["light"]}, "x": 0, "xref": "container",
               "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top", "pad": {"l": 16, "t": 16}},
    )  # fmt: skip
    return paper
