"""The sentences of two languages on two small maps, before and after a split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.core.latents.chart import AXIS, LARGER
from app.core.rows import language_name
from app.core.theme import SYMBOLS, cycled, finish, lang_colour, lang_place, plain

HEIGHT, SIZE = 330, 5  # pixels


def before_and_after(
    maps: Mapping[str, np.ndarray], langs: np.ndarray, sentences: Sequence[str], theme: str
) -> go.Figure:
    """Draw maps (M, 2) of the same sentences beside each other; marks of the first language are larger, so that both
    are seen where they coincide."""
    figure = make_subplots(1, len(maps), subplot_titles=[plain(title) for title in maps], horizontal_spacing=0.03)
    known = list(dict.fromkeys(langs))
    for column, xy in enumerate(maps.values(), start=1):
        for lang in known:
            rows = np.flatnonzero(langs == lang)
            marker = {
                "color": lang_colour(lang, theme), "symbol": cycled(SYMBOLS, lang_place(lang)),
                "size": SIZE + LARGER * (lang == known[0]), "opacity": 0.7,
            }  # fmt: skip
            figure.add_trace(
                go.Scatter(
                    x=xy[rows, 0], y=xy[rows, 1], mode="markers", marker=marker, name=language_name(lang),
                    text=[plain(sentences[int(row)]) for row in rows], hovertemplate="%{text}<extra></extra>",
                    showlegend=column == 1,
                ),
                row=1, col=column,
            )  # fmt: skip
    finish(figure, "", HEIGHT, theme)
    figure.update_xaxes(**AXIS)
    figure.update_yaxes(**AXIS)
    return figure
