"""Show text from users, files and links unchanged; show tables, and the box "How to read this"."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from bgt_core.errors import BgtError

HELP = Path(__file__).parents[1] / "help"
MARKS = re.compile(r"[\\`*_\[\]{}<>&$~|!]|:(?=[A-Za-z])")  # characters with a meaning in Markdown or Streamlit
ADDRESS = re.compile(r":(?=//)|\bwww(?=\.)|@", re.IGNORECASE)  # parts by which Streamlit recognises addresses to link
BLOCK = re.compile(r"(#{1,6}|[-+]|\d{1,9}[.)])(\s|$)|-{3,}$")  # starts of headings, lists and rules
JOINER = "\N{WORD JOINER}"  # an invisible character


def verbatim(text: object, *, addresses: bool = False) -> str:
    """Escape text so that Markdown shows it unchanged, on one line. Addresses become links only with `addresses`."""
    line = " ".join(str(text).split())
    if not addresses:
        line = ADDRESS.sub(rf"\g<0>{JOINER}", line)
    return JOINER * bool(BLOCK.match(line)) + MARKS.sub(r"\\\g<0>", line)


def problem(error: BgtError) -> None:
    """Show an error in red, without interpreting names and values in it as Markdown."""
    st.error(verbatim(error), icon=":material/error:")


@contextmanager
def failing() -> Iterator[None]:
    """Show an error that is raised inside the `with` block. The page continues after the block."""
    try:
        yield
    except BgtError as error:
        problem(error)


def table(rows: pd.DataFrame, alt: str) -> None:
    """Show all rows of a table. Its texts are not interpreted as Markdown, but addresses are links."""
    escape_cell = partial(verbatim, addresses=True)  # st.table interprets Markdown
    shown = rows.map(escape_cell).rename(columns=escape_cell)
    st.table(shown, border="horizontal", hide_index=True, alt=alt)


def frame(
    rows: pd.DataFrame | Styler,
    alt: str,
    formats: Mapping[str, str] = {},
    widths: Mapping[str, int] = {},
    columns: Mapping[str, Any] = {},
    **settings: Any,
) -> Any:
    """Show a table that scrolls. `formats` has formats of number columns, such as "%.2f"; `widths` are in pixels."""
    plain = {title: st.column_config.Column(width=pixels) for title, pixels in widths.items()}
    numbers = {
        title: st.column_config.NumberColumn(format=of, width=widths.get(title)) for title, of in formats.items()
    }
    return st.dataframe(rows, hide_index=True, alt=alt, column_config={**plain, **numbers, **columns}, **settings)


def help_of(name: str, second: str = "", writes: bool = True) -> None:
    """Show `help/NAME.md` in a closed box. If the model has no second latent, or generates no text, the lines about
    that are left out."""
    lines = (HELP / f"{name}.md").read_text("utf-8").splitlines()
    shown = [line for line in lines if (second or "{second}" not in line) and (writes or "{writes}" not in line)]
    with st.expander("How to read this", icon=":material/help:"):
        st.markdown("\n".join(shown).replace("{second}", second).replace("{writes}", ""))


def written(text: str) -> None:
    """Show generated text."""
    st.html(f'<p class="written" style="font-size:1.4rem;margin:0">{escape(text) or "(nothing)"}</p>')
