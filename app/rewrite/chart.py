"""A grid of sentences by meaning and style, as a table for the page and as a figure for export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap

import pandas as pd
import plotly.graph_objects as go

from app.core.theme import PAGE, finish, latent_colour
from bgt_core.contracts import LANGUAGE, SEMANTIC

WRAP = 22  # characters of a line in a cell of the figure
CSS = """<style>
.grid { width: 100%; border-collapse: collapse; table-layout: fixed; font-size: 1rem; }
.grid th, .grid td { text-align: left; vertical-align: top; padding: 0.6rem; border: 1px solid rgba(128,128,128,.35);
  overflow-wrap: anywhere; }
.grid th { font-weight: 600; background: rgba(128,128,128,.1); }
.grid small { display: block; font-weight: 400; margin-top: .35rem; }
.grid .kept { display: grid; grid-template-columns: 2.6rem 1fr; align-items: center; gap: .4rem; font-size: .8rem;
  margin-top: .3rem; }
.grid .kept i { display: block; height: .4rem; border-radius: .2rem; }
.grid td::before { display: none; content: attr(data-style); font-size: .8rem; font-style: italic; }
@media (max-width: 640px) {
  .grid thead { display: none; }
  .grid tr, .grid th, .grid td { display: block; }
  .grid td::before { display: block; }
}
</style>"""


def html(table: pd.DataFrame, notices: Mapping[str, str], second_latent: str, theme: str) -> str:
    """The grid of `compute.grid` as HTML: one row per meaning, with its notice if it has one, one column per style."""
    styles = list(dict.fromkeys(table["style"]))
    heads = "".join(f'<th scope="col">{escape(style)}</th>' for style in styles)
    lines = []
    for meaning, cells in table.groupby("meaning", sort=False):
        notice = f"<small>⚠ {escape(notices[meaning])}</small>" if notices.get(meaning) else ""
        lines.append(f'<tr><th scope="row">{escape(meaning)}{notice}</th>')
        for cell in cells.itertuples():
            kept = bar(cell.semantic, SEMANTIC, theme) + bar(cell.second, second_latent, theme)
            text = escape(cell.text) or "(nothing)"
            changed = f"<small>✗ {escape(cell.changed)}</small>" if cell.changed else ""
            lines.append(f'<td data-style="as “{escape(cell.style, quote=True)}”">{text}{kept}{changed}</td>')
        lines.append("</tr>")
    head = f'<thead><tr><th scope="col">Meaning ↓ Style →</th>{heads}</tr></thead>'
    return f'<table class="grid">{head}<tbody>{"".join(lines)}</tbody></table>{CSS}'  # sanitisers drop a leading style


def bar(cosine: float, latent: str, theme: str) -> str:
    """A number and a bar from 0 to 1 in the colour of the latent."""
    width = round(100 * min(max(cosine, 0.0), 1.0))
    name = f"{latent} cosine {cosine:z.2f}"
    colour = latent_colour(latent, theme)
    filled = f'<i style="width:{width}%;background:{colour}"></i>'
    return f'<div class="kept" title="{name}"><span>{cosine:z.2f}</span>{filled}</div>'


def figure(table: pd.DataFrame, second_latent: str, *, theme: str = "light") -> go.Figure:
    """Draw the sentences in cells; the more of the style a sentence kept, the darker its cell."""
    meanings, styles = (list(dict.fromkeys(table[side])) for side in ("meaning", "style"))
    shape = len(meanings), len(styles)
    cells = [f"{lines(row.text)}<br>{row.semantic:z.2f} | {row.second:z.2f}" for row in table.itertuples()]
    drawn = go.Heatmap(
        z=table["second"].to_numpy().reshape(shape),
        x=[lines(style) for style in styles],
        y=[lines(meaning) for meaning in meanings],
        text=[cells[start : start + shape[1]] for start in range(0, len(cells), shape[1])],
        texttemplate="%{text}",
        zmin=0,
        zmax=2,  # pale enough to read on
        colorscale=[[0, PAGE[theme]], [1, latent_colour(LANGUAGE, theme)]],
        showscale=False,
        xgap=2,
        ygap=2,
    )
    title = f"Meaning by style; in each cell the semantic | {second_latent} cosine"
    drawing = finish(go.Figure(drawn), title, 120 + 90 * len(meanings), theme, legend=False)
    drawing.update_xaxes(side="top", title="Style")
    drawing.update_yaxes(autorange="reversed", title="Meaning", automargin=True)
    return drawing


def lines(text: str) -> str:
    """Break a text into lines for a cell; `<br>` is plotly's line break."""
    return "<br>".join(escape(line, quote=False) for line in wrap(text, WRAP)) or "(nothing)"


def wide(table: pd.DataFrame, styles: Sequence[str]) -> pd.DataFrame:
    """The sentences as on the page: a column per style."""
    cells = table.pivot(index="meaning", columns="style", values="text")
    cells = cells.loc[list(dict.fromkeys(table["meaning"])), list(styles)].reset_index(allow_duplicates=True)
    return cells  # a style may be the word "meaning"
