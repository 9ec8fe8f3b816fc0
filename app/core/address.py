"""Keep a page's settings and selection in its URL; link to pages; mount components that are written in JavaScript."""

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import groupby
from pathlib import Path
from typing import Literal, TypedDict
from urllib.parse import urlencode

import plotly
import streamlit as st
from streamlit.components.v1 import declare_component
from streamlit.components.v2.types import ComponentRenderer
from streamlit.runtime.scriptrunner import get_script_run_ctx

JS = Path(__file__).parent / "js"
FIELDS = ("sentence", "language", "other", "other_language")  # keys of the fields that several pages share


class Bound(TypedDict):
    """Arguments that make Streamlit keep a widget's value in the URL. An empty value in a URL means None."""

    bind: Literal["query-params"]


BOUND: Bound = {"bind": "query-params"}


@contextmanager
def on_all_pages() -> Iterator[None]:
    """Let pages share the values of the widgets in this `with` block. The widgets belong to the main script, because
    Streamlit forgets the URL parameters of a page's own widgets when another page opens."""
    context = get_script_run_ctx()
    with context.run_with_active_hash(context.pages_manager.main_script_hash) if context else nullcontext():
        yield


def write_on_arrival(texts: Mapping[str, str], usual: Mapping[str, str]) -> None:
    """Write the values of widgets that several pages share into the URL of a page that was just opened, because this
    URL has no parameters yet. `texts` maps a widget's key to its value, `usual` to its default. Skip default values."""
    context = get_script_run_ctx()
    if context and st.session_state.get("arrived") and not context.fragment_ids_this_run:
        with context.session_state.query_params() as parameters:
            for key in (key for key in texts if texts[key] != usual[key] and not parameters.has_param(key)):
                parameters.set_corrected_value(key, texts[key], "string_value")


def link() -> str:
    """Return the URL of this page with its current settings. The browser may show this URL only later."""
    address = (st.context.url or "").rstrip("/")
    parameters = urlencode([(name, value) for name in st.query_params for value in st.query_params.get_all(name)])
    return f"{address}?{parameters}" if parameters else address


def go_to(folder: str, label: str, icon: str = "arrow_forward", **parameters: str) -> None:
    """Show a link that opens the page in this folder with these URL parameters, without empty ones."""
    page, given = st.session_state["pages"][folder], {name: text for name, text in parameters.items() if text}
    st.page_link(page, label=label, icon=f":material/{icon}:", query_params=given or None)


def set_up_browser() -> None:
    """Make the browser's Back button open the previous page, with its settings and texts, and popovers get the focus.
    Serve the script of the plotly package, which `js/plotly.js` loads once per browser tab from a URL with the names of
    this module and of the component."""
    script = "\n".join((JS / f"{name}.js").read_text("utf-8") for name in ("history", "popover"))
    st.html(f"<script>{script}</script>", unsafe_allow_javascript=True)
    declare_component("plotly_js", path=str(Path(plotly.__file__).parent / "package_data"))
    context = get_script_run_ctx()
    here = context and context.page_script_hash
    st.session_state["arrived"] = here != st.session_state.get("page")
    st.session_state["page"] = here


def mounted(name: str, *parts: str, folder: Path = JS) -> ComponentRenderer:
    """Mount the JavaScript component in `NAME.js` of a folder, with the styles in `NAME.css` if that file exists.
    `parts` names other JavaScript files in the folder, whose functions the component calls. All may call
    `withPlotly(callback)`, which calls back when plotly's script is loaded."""
    css = folder / f"{name}.css"
    files = [JS / "plotly.js", *(folder / f"{part}.js" for part in (*parts, name))]
    return st.components.v2.component(
        f"bgt.{name}",
        html="<div></div>",
        css=css.read_text("utf-8") if css.is_file() else None,
        js="\n".join(file.read_text("utf-8") for file in files),
        isolate_styles=False,  # an isolated component would lack the styles that plotly writes into the page
    )


_copy = mounted("copy")


def copy_link() -> None:
    """Show a button that copies a URL of the current view, with its settings and selected rows, to the clipboard."""
    _copy(data={"link": link()}, key="copy_link", width="content")


ROWS = "rows"  # the URL parameter that contains the selected rows
MAX_ROWS = 1_500  # maximum number of characters of a URL parameter; some programs cut longer URLs


def put(parameter: str, text: str) -> str:
    """Set a URL parameter and return its text. If the text is empty or too long for a URL, remove it and return ""."""
    if not text or len(text) > MAX_ROWS:
        st.query_params.pop(parameter, None)
        return ""
    if st.query_params.get(parameter) != text:
        st.query_params[parameter] = text
    return text


def linked_rows() -> str:
    """Return the row ids in the page's URL; "" if it has none, or if this session itself wrote them there."""
    rows = st.query_params.get(ROWS, "")
    return "" if rows == st.session_state.get("kept_rows") else rows


def as_ranges(ids: Sequence[str]) -> str:
    """Write row ids, each a prefix and a number, as ranges: en3, en4, en7 and fr2 become "en3-4.7~fr2"."""
    numbers: dict[str, list[int]] = {}
    for name in ids:
        prefix = name.rstrip(string.digits)
        numbers.setdefault(prefix, []).append(int(name.removeprefix(prefix)))
    groups = []
    for prefix, members in numbers.items():
        ranges = []
        # in a sorted list, number minus position is the same for all numbers of an unbroken range
        for _, run in groupby(enumerate(sorted(members)), lambda each: each[1] - each[0]):
            together = [number for _, number in run]
            ranges.append(f"{together[0]}-{together[-1]}" if len(together) > 1 else f"{together[0]}")
        groups.append(prefix + ".".join(ranges))
    return "~".join(groups)


def in_ranges(text: str, ids: Sequence[str]) -> list[str]:
    """Return the `ids` in the ranges of a text that `as_ranges` wrote; return no ids for any other text."""
    held: dict[str, list[tuple[int, int]]] = {}
    for group in text.split("~"):
        if match := re.fullmatch(r"((?:.*?\D)?)(\d{1,9}(?:-\d{1,9})?(?:\.\d{1,9}(?:-\d{1,9})?)*)", group):
            prefix, members = match.groups()
            ends = [part.split("-") for part in members.split(".")]
            held.setdefault(prefix, []).extend((int(part[0]), int(part[-1])) for part in ends)

    def inside(name: str) -> bool:
        prefix = name.rstrip(string.digits)
        return prefix in held and any(low <= int(name[len(prefix) :]) <= high for low, high in held[prefix])

    return [name for name in ids if inside(name)]
