"""Every parameter of the app's addresses, set to what a stranger may write into a link.

Held: the page opens without an exception, and nothing of the address is read as Markdown.
"""

from __future__ import annotations

import logging
import random
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from attack import commands

COUNT = 200
SECONDS = 60.0  # that a page may take
PAGES = ("sentence", "maps", "plane", "rewrite", "similarity", "probes", "languages", "models", "questions", "card")
LINKS = {  # pages that link to others
    "sentence": "st.empty(), page.Next(there, there, there, there, there)",
    "languages": "there",
    "plane": "there, there",
    "split": "there",
}
SCRIPT = """
import streamlit as st
from app import main
from app.core import own_texts, startup
from app.{name} import page
there = st.Page(lambda: None, title="There", url_path="there")
st.navigation([there], position="hidden")
own_texts.restore()
main.picker(startup.read().models)
main.shown(lambda: page.page({arguments}))
"""
KINDS = ("selectbox", "multiselect", "button_group", "slider", "number_input", "text_input", "text_area", "toggle")
ALWAYS = ("ckpt", "own", "rows", "pairs", "data", "how")  # read from the address by the app itself
STRANGER = "http://stranger.test"
HOSTILE = f"![x]({STRANGER}/p.png) [click]({STRANGER}) {STRANGER} $x$ **b**"
VALUES = (
    HOSTILE, "", " ", "9" * 5_000, "-1", "1e999", "NaN", "٣" * 12, "\0", "\ud7ff", "true", "[" * 5_000, "a,b,,",
    '{"a": 1}', "../../etc/passwd", "<img src=x onerror=alert(1)>", "x" * 20_000, "🙂" * 300, "=1+1", "%00",
    "en1-999999999", "~.-", "en" + "9" * 400, "a\nb\r\nc", "Both", "English", "\u202e", ";" * 50, "((((", "0.5", "5",
)  # fmt: skip
SHOWN_AS_MARKDOWN = ("body", "label", "help", "text", "value_string", "delta")  # fields of what Streamlit is sent
NOT_MARKDOWN = ("text", "code", "iframe", "bidi_component", "arrow_data_frame", "page_link", "html")


def prepare(data: Path, folder: Path) -> list[str]:
    """What the app is started with: a model, translations, questions."""
    end = commands.run(commands.commands()["store"].arguments, folder, data)
    if end.code:
        raise RuntimeError(end.errors[-500:])
    return [
        "--model",
        str(data / "model"),
        "--data",
        f"en,fr={data / 'pairs.tsv'}",
        "--questions",
        str(folder / "store"),
    ]


def attack(seed: int, options: list[str], folder: Path) -> str:
    draw = random.Random(seed)
    logging.disable(logging.CRITICAL)  # Streamlit warns about pages without a browser
    sys.argv = ["main.py", *options]
    page = PAGES[seed % len(PAGES)]
    names = parameters(page)
    chosen = draw.sample(names, draw.choice((1, 2, len(names) // 2, len(names))))
    link = {name: draw.choice(VALUES) for name in chosen}
    app = opened(page, link)
    wrong = [element.message[:200] for element in app.exception]
    wrong += [f"{kind} shows Markdown: {text[:80]}" for kind, text in hostile_in(app)]
    return f"{page} with {outlined(link)}: {'; '.join(wrong)}" if wrong else ""


@cache
def parameters(page: str) -> list[str]:
    """All that its address may hold."""
    app = opened(page, {})
    keys = [widget.key for kind in KINDS for widget in app.get(kind) if widget.key]
    return [*dict.fromkeys([*ALWAYS, *keys])]


def opened(page: str, link: Mapping[str, str]) -> AppTest:
    app = AppTest.from_string(SCRIPT.format(name=page, arguments=LINKS.get(page, "")), default_timeout=SECONDS)
    for name, value in link.items():
        app.query_params[name] = value
    return app.run()


def outlined(link: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value[:20]!r}" for name, value in link.items())[:300]


def hostile_in(app: AppTest) -> list[tuple[str, str]]:
    """What of `HOSTILE` the browser would read as Markdown, by the kind of element."""
    shown = [(element.type, text) for element in app._tree for text in markdown_of(element)]
    return [(kind, text) for kind, text in shown if re.search(r"\[click\]\(|!\[x|http://stranger|\*\*b", text)]


def markdown_of(element: Any) -> list[str]:
    """What an element asks the browser to show as Markdown."""
    if element.type in NOT_MARKDOWN or getattr(element, "proto", None) is None:
        return []
    fields = ((field.name, value) for field, value in element.proto.ListFields())
    return [value for name, value in fields if name in SHOWN_AS_MARKDOWN and isinstance(value, str)]
