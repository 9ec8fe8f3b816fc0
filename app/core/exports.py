"""Let the user download a page's rows, their vectors and its figure, and copy a link to the current view."""

import io
import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pyarrow as pa
import streamlit as st
from pyarrow import parquet

from app.core import display
from app.core.address import link, mounted
from app.core.display import INK, NOTES, PIXELS, SOFT, plain, verbatim
from bgt_core.tables import Table, latex_text

WIDTHS_MM = (180, 85)  # widths of a printed figure: the text of an A4 page (or two journal columns); one journal column
DOTS_PER_INCH = 300
INCH = 25.4, 96  # number of millimetres, and of the browser's pixels, in an inch
MAX_VECTORS = 20_000  # maximum number of points in a vector drawing; most programs can't open larger SVG files

# Every system has one of these fonts. Most have letters as wide as Arial's, so that text fits alike on all systems.
FONTS = "Arial, Liberation Sans, Helvetica, DejaVu Sans, sans-serif"
CAPTION = {"size": 11, "line": 15, "letters": 100}  # font size, line height (pixels); letters in a 180 mm line
CAPTIONED, NAMED, COLOURED = "Caption", "Names of groups", "Colours"  # parts of an export that the user can omit
GREYS = 40, 190  # brightness (0 to 255) of the darkest and lightest grey in a figure without colours
FORMULA = ("=", "+", "-", "@", "\t")  # spreadsheets evaluate cells that start with one of these as formulas
_figure = mounted("figure")


def chart(name: str, draw: Callable[..., go.Figure], alt: str, **settings: Any) -> Any:
    """Show a figure in the browser's theme. Plotly's toolbar is only shown if `on_select` is given."""
    figure = draw(theme=display.current_theme())
    config: dict[str, Any] = {
        "displayModeBar": "on_select" in settings,  # on a phone, the toolbar would always cover the points
        "modeBarButtonsToRemove": ["zoomIn2d", "zoomOut2d", "autoScale2d", "select2d"],
        "toImageButtonOptions": {"format": "svg", "filename": name},
    }
    if "on_select" in settings:
        theme = display.current_theme()
        bar = {"orientation": "h", "color": SOFT[theme], "activecolor": INK[theme], "bgcolor": "rgba(0, 0, 0, 0)"}
        figure.update_layout(modebar=bar, margin={"t": max(40, figure.layout.margin.t or 0)})
    return st.plotly_chart(figure, alt=alt, config=config, **settings)


def offer(
    name: str,
    table: pd.DataFrame | None = None,
    figure: Callable[..., go.Figure] | None = None,
    latex: pd.DataFrame | None = None,
    title: str = "Export",
    caption: str = "",
    vectors: Callable[[], Mapping[str, np.ndarray]] | None = None,
    page: Callable[[], str] | None = None,
) -> None:
    """Show a button that opens the list of downloads. A file is made only when the user downloads it. `latex` is the
    table with the columns and numbers for a LaTeX file. `figure(theme="light")` draws the figure; `caption` is written
    below its title. `vectors` returns the vectors (N, D) of the table's rows in each latent. `page`, for the page
    "Maps", returns the maps as HTML; then the PNG and SVG files show the maps as they are on the screen."""
    with st.popover(title, icon=":material/download:"):
        if table is not None:
            st.markdown("**Rows**")
            with st.container(horizontal=True):
                download(name, "csv", partial(as_csv, table))
                download(name, "parquet", partial(table.to_parquet, index=False))
                if latex is not None:
                    download(name, "tex", partial(as_latex, latex))
            if vectors is not None:
                st.markdown("**Vectors of these rows**")
                download(f"{name}-vectors", "parquet", lambda: as_vectors(table, vectors()))
        if figure is not None:
            drawings(name, figure, caption, page)
        st.markdown("**Link to this view**")
        st.code(link(), language=None, wrap_lines=True)
        own = bool(st.session_state.get("uploaded") or st.session_state.get("probed"))  # results of probes
        st.caption(verbatim(NOTES["in-link"].format(", and no results of yours" * own)))


# `drawings` is not a Streamlit fragment: on the pages "Maps" and "Pairs", a rerun of the script that starts before the
# previous rerun ends would remove the fragment's container, but not the elements in it.
def drawings(name: str, figure: Callable[..., go.Figure], caption: str, page: Callable[[], str] | None) -> None:
    """Offer the figure for print (PNG, SVG), screens (HTML) and notebooks (JSON). The browser draws PNG and SVG."""
    st.markdown("**Figure**")
    options = [CAPTIONED, *[NAMED] * bool(page), COLOURED]
    parts = st.pills("With", options, selection_mode="multi", default=options, key=f"{name} parts")
    width = st.segmented_control(
        "Width", WIDTHS_MM, default=WIDTHS_MM[0], required=True, format_func="{} mm".format, key=f"{name} width"
    )

    def paper() -> go.Figure:
        return publication(figure(theme="light"), caption * (CAPTIONED in parts), width, COLOURED not in parts)

    with st.container(horizontal=True):
        png = st.button("PNG", key=f"{name}.png")
        svg = st.button("SVG", key=f"{name}.svg")
        download(name, "html", page or (lambda: paper().to_html(include_plotlyjs=True)))
        download(name, "json", lambda: paper().to_json())
    if png or svg:
        drawing = {"name": name, "kind": "png" if png else "svg", "dots": DOTS_PER_INCH, "id": uuid4().hex}
        if page:
            drawing |= {"width": width, "named": NAMED in parts, "grey": COLOURED not in parts}
            drawing["caption"] = textwrap.fill(caption * (CAPTIONED in parts), round(0.82 * width))
        else:
            drawing["figure"] = paper().to_json()
        _figure(data=drawing, key=f"figure_{name}")  # the browser saves a figure whenever it gets a new "id"
    st.caption(NOTES["drawing"].format(dots=DOTS_PER_INCH, most=MAX_VECTORS, html=NOTES["html"] * bool(page)))
    st.code(NOTES["notebook"].format(name), language="python", wrap_lines=True)


def download(name: str, kind: str, make: Callable[[], str | bytes]) -> None:
    file = f"{name}.{kind}"
    st.download_button(kind.upper(), make, file, key=file, on_click="ignore", width="content")


def as_csv(table: pd.DataFrame) -> bytes:
    """Encode a table as CSV in UTF-8. An apostrophe is put before cells that a spreadsheet would evaluate."""

    def uncomputed(cell: Any) -> Any:
        return f"'{cell}" if str(cell).startswith(FORMULA) else cell

    safe = {name: table[name].map(uncomputed) for name in table.select_dtypes(exclude="number")}
    return table.assign(**safe).rename(columns=uncomputed).to_csv(index=False).encode("utf-8-sig")


def as_vectors(table: pd.DataFrame, vectors: Mapping[str, np.ndarray]) -> bytes:
    """Encode the N rows of a table as Parquet: id, text, language, and the float32 vector (D,) in each latent."""
    columns: dict[str, Any] = {name: pa.array(table[name]) for name in ("id", "text", "lang") if name in table}
    for latent, rows in vectors.items():
        flat = np.ascontiguousarray(rows, np.float32)  # (N, D)
        columns[latent] = pa.FixedSizeListArray.from_arrays(flat.ravel(), flat.shape[1])
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def as_latex(table: pd.DataFrame) -> str:
    """Format a table as a LaTeX tabular with the rules of the package booktabs. NaN becomes an empty cell."""
    cells = table.astype(object).where(table.notna(), None).to_numpy().tolist()
    return latex_text(Table(list(table.columns), cells))


def publication(figure: go.Figure, caption: str = "", width_mm: float = WIDTHS_MM[0], grey: bool = False) -> go.Figure:
    """Copy a figure in the light theme for print, with a caption. Up to `MAX_VECTORS` points become SVG elements."""
    drawing: dict[str, Any] = figure.to_dict()
    points = sum(len(trace["x"]) for trace in figure.data if trace.type == "scattergl")
    for trace in drawing["data"]:
        if trace["type"] == "scattergl" and points <= MAX_VECTORS:
            trace["type"] = "scatter"
    paper = go.Figure(drawing)
    title = paper.layout.title.text
    letters = round(CAPTION["letters"] * width_mm / WIDTHS_MM[0])
    lines = [plain(line) for line in textwrap.wrap(caption, letters)]  # a caption may contain file names with HTML tags
    heading = f'<span style="font-size:{PIXELS["title"]}px;color:{INK["light"]}"><b>{title}</b></span>'
    above = CAPTION["line"] * (len(lines) + (2 if title else 1))
    between = paper.layout.margin.t if title is None and paper.layout.margin.t else 12  # space for titles of panels
    paper.update_layout(display.FIGURES["print"])
    paper.update_layout(
        width=round(width_mm / INCH[0] * INCH[1]),
        height=(paper.layout.height or 450) + above,
        font={"family": FONTS, "color": INK["light"]},
        margin={"l": max(16, paper.layout.margin.l or 0), "r": 16, "t": above + between},
        title_text="<br>".join([heading] * bool(title) + lines),
        title_font={"size": CAPTION["size"], "color": SOFT["light"]},
    )
    if grey:
        in_grey(paper)
    return paper


def in_grey(figure: go.Figure) -> None:
    """Replace the colours of points and lines by greys, which are spread evenly from dark to light."""
    marks = [trace[part] for trace in figure.data for part in ("marker", "line") if part in trace]
    marks = [mark for mark in marks if isinstance(mark.color, str)]
    colours = list(dict.fromkeys(mark.color for mark in marks))
    greys = np.linspace(*GREYS, max(len(colours), 2)).round().astype(int)
    for mark in marks:
        mark.color = "rgb({0}, {0}, {0})".format(greys[colours.index(mark.color)])
    figure.update_coloraxes(colorscale="gray")
