"""Show text of users, files and addresses, never as Markdown; and the box "How to read this"."""

from __future__ import annotations

import re
from functools import partial
from html import escape

import pandas as pd
import streamlit as st

from bgt_core.errors import BgtError

MARKS = re.compile(r"[\\`*_\[\]{}<>&$~|!]|:(?=[A-Za-z])")  # characters with a meaning in Markdown, Streamlit's included
ADDRESS = re.compile(r":(?=//)|\bwww(?=\.)|@", re.IGNORECASE)  # parts of addresses, which become links without any mark
BLOCK = re.compile(r"(#{1,6}|[-+]|\d{1,9}[.)])(\s|$)|-{3,}$")  # starts of headings, lists and rules
JOINER = "\N{WORD JOINER}"  # shows nothing


def verbatim(text: object, *, addresses: bool = False) -> str:
    """Escape text so that Markdown shows it unchanged, in one line; with `addresses`, addresses stay links."""
    line = " ".join(str(text).split())
    if not addresses:
        line = ADDRESS.sub(rf"\g<0>{JOINER}", line)
    return JOINER * bool(BLOCK.match(line)) + MARKS.sub(r"\\\g<0>", line)


def problem(error: BgtError) -> None:
    """Show an error in red, with the names and values that it quotes unchanged."""
    st.error(verbatim(error), icon=":material/error:")


def written_out(table: pd.DataFrame) -> pd.DataFrame:
    """Escape a table for `st.table`, which reads Markdown: cells and titles stay unchanged, addresses stay links."""
    return table.map(partial(verbatim, addresses=True)).rename(columns=partial(verbatim, addresses=True))


def table(rows: pd.DataFrame, alt: str) -> None:
    """Show all rows of a table at once, with cells unchanged; `alt` is the alternative text."""
    st.table(written_out(rows), border="horizontal", hide_index=True, alt=alt)


def how_to_read(text: str) -> None:
    """Show a closed box of Markdown at the end of a page: it explains the figures and terms."""
    with st.expander("How to read this", icon=":material/help:"):
        st.markdown(text)


def written(text: str) -> None:
    """Show generated text."""
    st.html(f'<p class="written" style="font-size:1.4rem;margin:0">{escape(text) or "(nothing)"}</p>')
