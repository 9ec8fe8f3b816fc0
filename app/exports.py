"""What a user can take away from a page: its rows, their vectors, its figure, a link to this view."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pyarrow as pa
import streamlit as st
from pyarrow import parquet

from app.address import link
from app.charts.publication import DOTS_PER_INCH, MAX_VECTORS, WIDTH_MM, publication
from app.components.figure import save_drawing
from bgt_core.tables import Table, save

FORMULA = ("=", "+", "-", "@", "\t")  # a spreadsheet would compute a cell that starts like this
MIME = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/jsonl",
    "tex": "application/x-tex",
    "html": "text/html",
    "json": "application/json",
}
SNIPPET = """import plotly.io as pio
figure = pio.read_json("{name}.json")
figure.show()"""


def offer(
    name: str,
    table: pd.DataFrame | None = None,
    figure: Callable[..., go.Figure] | None = None,
    latex: pd.DataFrame | None = None,
    title: str = "Export",
    caption: str = "",
    vectors: Callable[[], Mapping[str, np.ndarray]] | None = None,
) -> None:
    """A button that opens the export formats; files are made on request.

    `latex` is the table as a reader sees it; `figure(theme="light")` draws the figure, and `caption` goes into it;
    `vectors` gives, by latent, one vector for each row of the table (N, D).
    """
    with st.popover(title, icon=":material/download:"):
        if table is not None:
            st.markdown("**Rows**")
            with st.container(horizontal=True):
                for kind, make in (("csv", as_csv), ("parquet", as_parquet), ("jsonl", as_jsonl)):
                    download(name, kind, partial(make, table))
                if latex is not None:
                    download(name, "tex", partial(as_latex, latex))
        if table is not None and vectors is not None:
            st.markdown("**Vectors of these rows**")
            rows = table
            download(f"{name}-vectors", "parquet", lambda: as_vectors(rows, vectors()))
        if figure is not None:
            drawings(name, lambda: publication(figure(theme="light"), caption))
        st.markdown("**Link to this view**")
        st.code(link(), language=None, wrap_lines=True)
        st.caption(
            "It holds what is set here, and opens your own sentences and files too, for whoever has the link, as long "
            "as the app runs and keeps them."
        )


# No fragment: in that of the maps or the plane, a rerun that overtakes another would drop what holds it, not its parts.
def drawings(name: str, figure: Callable[[], go.Figure]) -> None:
    """The figure for paper (PNG, SVG, drawn by the browser), for a screen (HTML) and for a notebook (JSON)."""
    st.markdown("**Figure**")
    with st.container(horizontal=True):
        png = st.button("PNG", key=f"{name}.png")
        svg = st.button("SVG", key=f"{name}.svg")
        download(name, "html", lambda: figure().to_html(include_plotlyjs=True))
        download(name, "json", lambda: figure().to_json())
    if png or svg:
        save_drawing(figure(), name, "png" if png else "svg", DOTS_PER_INCH)
    st.caption(
        f"PNG: {WIDTH_MM} mm wide at {DOTS_PER_INCH} dpi. SVG: vectors up to {MAX_VECTORS:,} points. "
        "In a notebook, the JSON becomes the figure again:"
    )
    st.code(SNIPPET.format(name=name), language="python", wrap_lines=True)


def download(name: str, kind: str, make: Callable[[], str | bytes]) -> None:
    st.download_button(
        kind.upper(), make, f"{name}.{kind}", MIME[kind], key=f"{name}.{kind}", on_click="ignore", width="content"
    )


def as_csv(table: pd.DataFrame) -> bytes:
    """UTF-8 with the byte order mark that spreadsheets look for; text that they would compute gets an apostrophe."""
    text = table.select_dtypes(exclude="number").columns
    safe = {name: table[name].map(uncomputed) for name in text}
    return table.assign(**safe).rename(columns=uncomputed).to_csv(index=False).encode("utf-8-sig")


def uncomputed(cell: Any) -> Any:
    """A cell or a column's name with an apostrophe before it if a spreadsheet would compute it."""
    return f"'{cell}" if str(cell).startswith(FORMULA) else cell


def as_parquet(table: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    table.to_parquet(file, index=False)
    return file.getvalue()


def as_vectors(table: pd.DataFrame, vectors: Mapping[str, np.ndarray]) -> bytes:
    """Parquet of each row's id, text and language, and a column of float32 vectors (N, D) for each latent."""
    columns: dict[str, Any] = {name: pa.array(table[name]) for name in ("id", "text", "lang") if name in table}
    for latent, rows in vectors.items():
        flat = np.ascontiguousarray(rows, np.float32)  # (N, D)
        columns[latent] = pa.FixedSizeListArray.from_arrays(flat.ravel(), flat.shape[1])
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def as_jsonl(table: pd.DataFrame) -> str:
    return table.to_json(orient="records", lines=True, force_ascii=False)


def as_latex(table: pd.DataFrame) -> str:
    """A booktabs tabular."""
    cells = [[plain(value) for value in row] for row in table.itertuples(index=False)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.tex"
        save(Table(list(table.columns), cells), {"latex": path})
        return path.read_text("utf-8")


def plain(value: Any) -> str | int | float | None:
    """numpy's numbers as Python's own; nothing for NaN."""
    value = value.item() if hasattr(value, "item") else value
    return None if value != value else value
