"""The address of a page: the controls bound to it, the selection, a link to the present view."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict
from urllib.parse import urlencode

import streamlit as st


class Bound(TypedDict):
    """Arguments of a widget whose value the address keeps.

    If an address leaves a parameter empty, even a required choice is None: use `controls.choice`, which has a default.
    """

    bind: Literal["query-params"]


BOUND: Bound = {"bind": "query-params"}
ONE_SENTENCE = "One sentence"  # a tab of the page "Meaning by style", in the links to it


def link() -> str:
    """Return the address of this page with its present settings, even if the address bar lags behind."""
    address = (st.context.url or "").rstrip("/")
    parameters = urlencode([(name, value) for name in st.query_params for value in st.query_params.get_all(name)])
    return f"{address}?{parameters}" if parameters else address


def in_link() -> str:
    """Tell what the link to this view holds."""
    results = bool(st.session_state.get("uploaded") or st.session_state.get("probed"))
    return (
        f"It holds all settings{', but no results that you uploaded or ran here' * results}. Anyone with the link also "
        "sees your own sentences, files and encoders, while the app runs and keeps them."
    )


def one_entry_per_page() -> None:
    """Let the browser's Back lead to the page before, with the settings and texts that it had."""
    script = (Path(__file__).parent / "js" / "history.js").read_text("utf-8")
    st.html(f"<script>{script}</script>", unsafe_allow_javascript=True)


ROWS = "rows"  # the parameter that holds the selection
MAX_ROWS = 1_500  # characters of it; some programs cut longer addresses


def keep_rows(ids: Sequence[str]) -> bool:
    """Keep a selection in the address; False, and no parameter, if it is too long."""
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
    """Return the selection in the link that opened the page; "" if the address is the session's own or has none."""
    rows = st.query_params.get(ROWS, "")
    return "" if rows == st.session_state.get("kept_rows") else rows


def as_ranges(ids: Sequence[str]) -> str:
    """Ids that are a prefix and a number, in ascending order: en3, en4, en7, fr2 -> "en3-4.7~fr2"."""
    numbers: dict[str, list[int]] = {}
    for name in ids:
        prefix = name.rstrip(string.digits)
        numbers.setdefault(prefix, []).append(int(name.removeprefix(prefix)))
    groups = []
    for prefix, members in numbers.items():
        ranges: list[list[int]] = []
        for number in sorted(members):
            if ranges and number == ranges[-1][1] + 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        groups.append(prefix + ".".join(f"{low}-{high}" if high > low else f"{low}" for low, high in ranges))
    return "~".join(groups)


def in_ranges(text: str, ids: Sequence[str]) -> list[str]:
    """Return the ids in a text of `as_ranges`; any other text gives none."""
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
