"""Parts of pages with JavaScript of their own: each is a .js file here, mounted by the module of its name."""

from __future__ import annotations

from pathlib import Path

import plotly
import streamlit as st
from streamlit.components.v1 import declare_component
from streamlit.components.v2.types import ComponentRenderer

HERE = Path(__file__).parent
# Streamlit serves the plotly.js of the plotly package under this component's name; `plotly.js` loads it once a tab.
declare_component("plotly_js", path=str(Path(plotly.__file__).parent / "package_data"))


def mounted(name: str, *parts: str) -> ComponentRenderer:
    """The component of `NAME.js`, which may call `withPlotly(callback)`, and `NAME.css`, if there is one; `parts` are
    further files whose functions it calls."""
    css = HERE / f"{name}.css"
    return st.components.v2.component(
        f"bgt.{name}",
        html="<div></div>",
        css=css.read_text("utf-8") if css.is_file() else None,
        js="\n".join((HERE / f"{file}.js").read_text("utf-8") for file in ("plotly", *parts, name)),
        isolate_styles=False,  # plotly writes its styles into the document
    )
