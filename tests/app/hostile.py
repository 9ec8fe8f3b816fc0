"""Text that a stranger may put into a link, file or checkpoint, and a check that pages do not show it as Markdown."""

from __future__ import annotations

import re
from typing import Any

from streamlit.testing.v1 import AppTest

STRANGER = "http://stranger.test"
HOSTILE = f"![x]({STRANGER}/p.png) [click]({STRANGER}) {STRANGER} $x$ **b**"
SHOWN_AS_MARKDOWN = ("body", "label", "help", "text", "value_string", "delta")  # fields of Streamlit's messages
NOT_MARKDOWN = ("text", "code", "iframe", "bidi_component", "arrow_data_frame", "page_link", "html")


def hostile_in(app: AppTest) -> list[tuple[str, str]]:
    """Return the parts of `HOSTILE` that the browser would interpret as Markdown, with the kind of element."""
    shown = [(element.type, text) for element in app._tree for text in markdown_of(element)]
    return [(kind, text) for kind, text in shown if re.search(r"\[click\]\(|!\[x|http://stranger|\*\*b", text)]


def markdown_of(element: Any) -> list[str]:
    """Return the texts that an element asks the browser to show as Markdown."""
    if element.type in NOT_MARKDOWN or getattr(element, "proto", None) is None:
        return []
    fields = ((field.name, value) for field, value in element.proto.ListFields())
    return [value for name, value in fields if name in SHOWN_AS_MARKDOWN and isinstance(value, str)]
