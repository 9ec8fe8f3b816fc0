"""Figures as files that the browser draws: PNG for print, and SVG."""

from __future__ import annotations

from typing import Literal
from uuid import uuid4

import plotly.graph_objects as go

from app.components import mounted

_figure = mounted("figure")


def save_drawing(figure: go.Figure, name: str, kind: Literal["png", "svg"], dots_per_inch: int) -> None:
    """Draw a figure of known width and height, save it as NAME.KIND, and say so; each call saves anew."""
    data = {"figure": figure.to_json(), "name": name, "kind": kind, "dots": dots_per_inch, "id": uuid4().hex}
    _figure(data=data, key=f"figure_{name}")
