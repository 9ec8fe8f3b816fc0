"""Text on a page: text of users, files and addresses, never read as Markdown; and the box "How to read this"."""

from __future__ import annotations

import re
from functools import partial
from html import escape

import pandas as pd
import streamlit as st

from bgt_core.errors import BgtError

MARKS = re.compile(r"[\\`*_\[\]{}<>&$~|!]|:(?=[A-Za-z])")  # what Markdown, Streamlit's too, gives a meaning in a line
ADDRESS = re.compile(r":(?=//)|\bwww(?=\.)|@", re.IGNORECASE)  # inside what becomes a link without any mark
BLOCK = re.compile(r"(#{1,6}|[-+]|\d{1,9}[.)])(\s|$)|-{3,}$")  # what makes a line a heading, a list or a rule
JOINER = "\N{WORD JOINER}"  # shows nothing


def verbatim(text: object, *, addresses: bool = False) -> str:
    """Markdown that shows `text` as it is, in one line: no picture, no formula, no emphasis, and no link, except of
    `addresses` that are written out, where wanted."""
    line = " ".join(str(text).split())
    if not addresses:
        line = ADDRESS.sub(rf"\g<0>{JOINER}", line)
    return JOINER * bool(BLOCK.match(line)) + MARKS.sub(r"\\\g<0>", line)


def problem(error: BgtError) -> None:
    """What went wrong, in red, whatever names and values it quotes."""
    st.error(verbatim(error), icon=":material/error:")


def written_out(table: pd.DataFrame) -> pd.DataFrame:
    """A table for `st.table`, which reads Markdown: every cell and title as it is, but that addresses stay links."""
    return table.map(partial(verbatim, addresses=True)).rename(columns=partial(verbatim, addresses=True))


def table(rows: pd.DataFrame, alt: str) -> None:
    """Show all rows of a table at once, every cell as it is; `alt` is the alternative text."""
    st.table(written_out(rows), border="horizontal", hide_index=True, alt=alt)


def how_to_read(text: str) -> None:
    """A closed box of Markdown at the end of a page: the figures, the terms, and how not to read them."""
    with st.expander("How to read this", icon=":material/help:"):
        st.markdown(text)


def written(text: str) -> None:
    """Show generated text."""
    st.html(f'<p class="written" style="font-size:1.4rem;margin:0">{escape(text) or "(nothing)"}</p>')
