"""What all figures share: colours that can be distinguished without colour vision, symbols, plotly's settings."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

# Okabe-Ito without its yellow and black, which vanish on one theme or the other; grey is for everything else.
PALETTE = {
    "light": ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"),
    "dark": ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#d55e00"),
}
AMOUNTS = {
    "light": "viridis",
    "dark": ("#39568c", "#287d8e", "#20a386", "#55c667", "#b8de29", "#fde725"),
}  # its bright part
REST = "#999999"
INK = {"light": "#31333f", "dark": "#fafafa"}  # Streamlit's own greys for titles are too pale to read
SOFT = {"light": "#666666", "dark": "#a0a0a0"}  # quoted numbers, and what was not run
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "pentagon")  # one per language
STARS = ("star", "star-diamond", "star-square", "star-triangle-up", "asterisk", "hexagram")  # the user's sentences
GLYPHS = ("●", "◆", "■", "▲", "✚", "⬟")
EDGE = "rgba(128, 128, 128, 0.55)"
GROUND = "rgba(128, 128, 128, 0.06)"
PIXELS = {"small": 13, "title": 15}
QUIET = {"displayModeBar": False}


def tools(name: str) -> dict[str, object]:
    """Plotly's own buttons: lasso, pan, zoom, home, and a vector drawing saved as NAME.svg."""
    return {
        "displaylogo": False,
        "modeBarButtonsToRemove": ["zoomIn2d", "zoomOut2d", "autoScale2d", "select2d"],
        "toImageButtonOptions": {"format": "svg", "filename": name},
    }


def cycled(values: Sequence[str], index: int) -> str:
    """The item at `index`, starting over after the last."""
    return values[index % len(values)]


def shape(values: Sequence[str], index: int) -> str:
    """The symbol at `index`; past the last it starts one further, so that 36 pairs of colour and symbol differ."""
    return cycled(values, index + index // len(values))


def plain(text: str) -> str:
    """Text that plotly shows as it is: it would read tags and entities."""
    return escape(text, quote=False)


def finish(figure: go.Figure, title: str, height: int, theme: str, legend: bool = True) -> go.Figure:
    """The layout of every figure except maps."""
    figure.update_layout(
        title={"text": title, "font": {"size": PIXELS["title"], "color": INK[theme]}, "x": 0},
        height=height,
        margin={"l": 8, "r": 16, "t": 40, "b": 8},
        font={"size": PIXELS["small"], "color": INK[theme]},
        showlegend=legend,
        legend={
            "orientation": "h",
            "x": 0,
            "yref": "container",  # below the axis title, however many lines a narrow window needs
            "y": 0,
            "yanchor": "bottom",
            "title": None,
            "font_color": INK[theme],
        },
    )
    for axis in (figure.update_xaxes, figure.update_yaxes):
        axis(tickfont_color=INK[theme], title_font_color=INK[theme])
    return figure
