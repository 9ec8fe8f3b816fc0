"""What the address of a page keeps: the controls bound to it, and a link to the present view."""

from __future__ import annotations

from typing import Literal, TypedDict
from urllib.parse import urlencode

import streamlit as st


class Bound(TypedDict):
    """Arguments of a widget whose value the address keeps."""

    bind: Literal["query-params"]


BOUND: Bound = {"bind": "query-params"}


def link() -> str:
    """The address of this page with what is set on it, whatever the address bar still says."""
    address = (st.context.url or "").rstrip("/")
    parameters = urlencode(st.query_params.to_dict())
    return f"{address}?{parameters}" if parameters else address
