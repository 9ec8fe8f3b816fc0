"""What a user can take away from a page: its rows, its figure, a link to this view."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app.address import link
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
    figure: Callable[[], go.Figure] | None = None,
    latex: pd.DataFrame | None = None,
    title: str = "Export",
) -> None:
    """A button that opens the export formats; files are made on request. `latex` is the table as a reader sees it."""
    with st.popover(title, icon=":material/download:"):
        if table is not None:
            st.markdown("**Rows**")
            with st.container(horizontal=True):
                for kind, make in (("csv", as_csv), ("parquet", as_parquet), ("jsonl", as_jsonl)):
                    download(name, kind, partial(make, table))
                if latex is not None:
                    download(name, "tex", partial(as_latex, latex))
        if figure is not None:
            st.markdown("**Figure**")
            with st.container(horizontal=True):
                download(name, "html", lambda: figure().to_html(include_plotlyjs=True))
                download(name, "json", lambda: figure().to_json())
            st.caption("The camera above the figure saves an SVG. In a notebook, the JSON becomes the figure again:")
            st.code(SNIPPET.format(name=name), language="python", wrap_lines=True)
        st.markdown("**Link to this view**")
        st.code(link(), language=None, wrap_lines=True)
        st.caption("It holds what is set here, but no file and no list of sentences that you uploaded.")


def download(name: str, kind: str, make: Callable[[], str | bytes]) -> None:
    st.download_button(
        kind.upper(), make, f"{name}.{kind}", MIME[kind], key=f"{name}.{kind}", on_click="ignore", width="content"
    )


def as_csv(table: pd.DataFrame) -> bytes:
    """UTF-8 with the byte order mark that spreadsheets look for; text that they would compute gets an apostrophe."""
    text = table.select_dtypes(exclude="number").columns
    safe = {name: table[name].map(lambda cell: f"'{cell}" if str(cell).startswith(FORMULA) else cell) for name in text}
    return table.assign(**safe).to_csv(index=False).encode("utf-8-sig")


def as_parquet(table: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    table.to_parquet(file, index=False)
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
