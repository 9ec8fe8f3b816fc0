"""Parts of pages that have their own JavaScript: how they are mounted, and the button that copies a link."""

from __future__ import annotations

from pathlib import Path

import plotly
import streamlit as st
from streamlit.components.v1 import declare_component
from streamlit.components.v2.types import ComponentRenderer

from app.core.address import link

HERE = Path(__file__).parent / "js"
# Streamlit serves the plotly.js of the plotly package under this component's name; `plotly.js` loads it once per tab.
declare_component("plotly_js", path=str(Path(plotly.__file__).parent / "package_data"))


def mounted(name: str, *parts: str, folder: Path = HERE) -> ComponentRenderer:
    """Mount the component of `NAME.js` in a folder, with `NAME.css` if it exists.

    `parts` are more files there, with functions that the component calls. All may call `withPlotly(callback)`.
    """
    css = folder / f"{name}.css"
    files = [HERE / "plotly.js", *(folder / f"{part}.js" for part in (*parts, name))]
    return st.components.v2.component(
        f"bgt.{name}",
        html="<div></div>",
        css=css.read_text("utf-8") if css.is_file() else None,
        js="\n".join(file.read_text("utf-8") for file in files),
        isolate_styles=False,  # plotly writes its styles into the document
    )


_copy = mounted("copy")


def copy_link() -> None:
    """Show a button that copies the link to this view, with its settings and selection."""
    _copy(data={"link": link()}, key="copy_link", width="content")
