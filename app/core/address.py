"""The address of a page: the controls bound to it, the selection, and a link to the current view."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Literal, TypedDict
from urllib.parse import urlencode

import streamlit as st


class Bound(TypedDict):
    """Widget arguments that keep the widget's value in the address.

    If an address has an empty parameter, even a required choice is None; `controls.choice` then uses a default.
    """

    bind: Literal["query-params"]


BOUND: Bound = {"bind": "query-params"}


def link() -> str:
    """Return the address of this page with its current settings, even if the address bar is not up to date."""
    address = (st.context.url or "").rstrip("/")
    parameters = urlencode([(name, value) for name in st.query_params for value in st.query_params.get_all(name)])
    return f"{address}?{parameters}" if parameters else address


def go_to(folder: str, label: str, icon: str = "arrow_forward", **parameters: str) -> None:
    """Show a link to the page of a folder, which opens the page with these parameters."""
    page = st.session_state["pages"][folder]
    st.page_link(page, label=label, icon=f":material/{icon}:", query_params=parameters or None)


def in_link() -> str:
    """Say what the link to this view contains."""
    results = bool(st.session_state.get("uploaded") or st.session_state.get("probed"))
    return (
        f"It holds all settings{', but no results that you uploaded or ran here' * results}. Anyone with the link also "
        "sees your own sentences, files and encoders, while the app runs and keeps them."
    )


def one_entry_per_page() -> None:
    """Make the browser's Back button open the previous page, with its settings and texts."""
    script = (Path(__file__).parent / "js" / "history.js").read_text("utf-8")
    st.html(f"<script>{script}</script>", unsafe_allow_javascript=True)


ROWS = "rows"  # the parameter that contains the selection
MAX_ROWS = 1_500  # maximum number of its characters; some programs cut longer addresses


def keep_rows(ids: Sequence[str]) -> bool:
    """Store a selection in the address. If it is too long, remove the parameter and return False."""
    text = as_ranges(ids)
    fits = len(text) <= MAX_ROWS
    if text and fits:
        if st.query_params.get(ROWS) != text:
            st.query_params[ROWS] = text
    elif ROWS in st.query_params:
        del st.query_params[ROWS]
    st.session_state["kept_rows"] = text if fits else ""
    return fits


def linked_rows() -> str:
    """Return the selection in the link that opened the page; "" if the session wrote it itself, or if it is missing."""
    rows = st.query_params.get(ROWS, "")
    return "" if rows == st.session_state.get("kept_rows") else rows


def as_ranges(ids: Sequence[str]) -> str:
    """Join ids, each a prefix and a number, in ascending order: en3, en4, en7, fr2 -> "en3-4.7~fr2"."""
    numbers: dict[str, list[int]] = {}
    for name in ids:
        prefix = name.rstrip(string.digits)
        numbers.setdefault(prefix, []).append(int(name.removeprefix(prefix)))
    groups = []
    for prefix, members in numbers.items():
        ranges = []
        for _, run in groupby(enumerate(sorted(members)), lambda each: each[1] - each[0]):  # constant within a range
            together = [number for _, number in run]
            ranges.append(f"{together[0]}-{together[-1]}" if len(together) > 1 else f"{together[0]}")
        groups.append(prefix + ".".join(ranges))
    return "~".join(groups)


def in_ranges(text: str, ids: Sequence[str]) -> list[str]:
    """Return those `ids` that are in a text of `as_ranges`; empty for any other text."""
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
