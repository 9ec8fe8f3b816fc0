"""Show texts, tables and figures. Users' texts are shown unchanged. All figures share colours, symbols and settings."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from bgt_core.errors import BgtError

HELP = Path(__file__).parents[1] / "help"
NOTES = tomllib.loads((HELP / "notes.toml").read_text("utf-8"))  # name -> a long text for users, in Markdown
MARKS = re.compile(r"[\\`*_\[\]{}<>&$~|!]|:(?=[A-Za-z])")  # characters with a special meaning in Markdown or Streamlit
ADDRESS = re.compile(r":(?=//)|\bwww(?=\.)|@", re.IGNORECASE)  # parts of addresses that Streamlit turns into links
BLOCK = re.compile(r"(#{1,6}|[-+]|\d{1,9}[.)])(\s|$)|-{3,}$")  # a heading, a list item or a rule
JOINER = "\N{WORD JOINER}"  # an invisible character of width 0, at which no line breaks


def verbatim(text: object, *, addresses: bool = False) -> str:
    """Escape text so that Markdown shows it unchanged, on one line. URLs become links only if `addresses` is true."""
    line = " ".join(str(text).split())
    if not addresses:
        line = ADDRESS.sub(rf"\g<0>{JOINER}", line)
    return JOINER * bool(BLOCK.match(line)) + MARKS.sub(r"\\\g<0>", line)


def problem(error: BgtError) -> None:
    """Show an error in red. Names and values in its message are not interpreted as Markdown."""
    st.error(verbatim(error), icon=":material/error:")


@contextmanager
def failing() -> Iterator[None]:
    """Show an error that is raised inside the `with` block on the page, and continue after the block."""
    try:
        yield
    except BgtError as error:
        problem(error)


def table(rows: pd.DataFrame, alt: str) -> None:
    """Show all rows of a table. Its texts are not interpreted as Markdown, but URLs become links."""
    escape_cell = partial(verbatim, addresses=True)
    shown = rows.map(escape_cell).rename(columns=escape_cell)
    st.table(shown, border="horizontal", hide_index=True, alt=alt)


def frame(
    rows: pd.DataFrame,
    alt: str,
    formats: Mapping[str, str] = {},
    widths: Mapping[str, int] = {},
    columns: Mapping[str, Any] = {},
    **settings: Any,
) -> Any:
    """Show a table that scrolls. `formats` has formats of number columns, such as "%.2f"; `widths` are in pixels."""
    shown = {title: st.column_config.Column(width=pixels) for title, pixels in widths.items()}
    shown |= {title: st.column_config.NumberColumn(format=of, width=widths.get(title)) for title, of in formats.items()}
    return st.dataframe(rows, hide_index=True, alt=alt, column_config={**shown, **columns}, **settings)


def help_of(name: str, second: str, **applies: bool) -> None:
    """Show the help text `help/NAME.md` in a closed box. A line with {second} is left out if the model has no second
    latent, and a line with another word in braces, such as {writes}, if `applies` is False for this word."""
    lines = (HELP / f"{name}.md").read_text("utf-8").splitlines()
    applies["second"] = bool(second)
    if shown := [line for line in lines if all(applies[word] for word in re.findall(r"{(\w+)}", line))]:
        with st.expander("How to read this", icon=":material/help:"):
            st.markdown(re.sub(r"{\w+}", "", "\n".join(shown).replace("{second}", second)))


FIGURES = tomllib.loads(Path(__file__).with_name("figures.toml").read_text("utf-8"))
PALETTE, AMOUNTS, LATENTS, LANGUAGES = (FIGURES[name] for name in ("palette", "amounts", "latents", "languages"))
INK, SOFT = (FIGURES[name] for name in ("ink", "soft"))  # theme -> colour
SYMBOLS, STARS, GLYPHS = (FIGURES[name] for name in ("symbols", "stars", "glyphs"))  # one for each language
REST = "#999999"
EDGE = "rgba(128, 128, 128, 0.55)"
PIXELS = {"small": 13, "title": 15}


def current_theme() -> str:
    """Return the browser's theme, "light" or "dark"."""
    return st.context.theme.type or "light"


def cycled(values: Sequence[str], index: int) -> str:
    """Return `values[index]`, starting again from the first value after the last."""
    return values[index % len(values)]


def latent_colour(latent: str, theme: str) -> str:
    """Return the colour of a latent in figures; grey for any other name, such as that of a baseline."""
    return LATENTS[theme].get(latent, REST)


def lang_colour(lang: str, theme: str) -> str:
    """Return the colour of a language, the same in all figures: from `LANGUAGES`, or else from `PALETTE`."""
    return LANGUAGES[theme].get(lang) or cycled(PALETTE[theme], lang_place(lang))


def lang_place(lang: str) -> int:
    """Return the index of a language's symbol in `SYMBOLS`, `STARS` and `GLYPHS`, which is the same in every figure."""
    known = list(LANGUAGES["light"])
    return known.index(lang) if lang in known else len(known) + sum(map(ord, lang))


def lang_symbol(lang: str) -> str:
    """Return the plotly symbol of a language, which is the same in every figure."""
    return cycled(SYMBOLS, lang_place(lang))


def lang_title(lang: str, name: str) -> str:
    """Return `name` after a character that looks like the language's symbol in figures."""
    return f"{cycled(GLYPHS, lang_place(lang))} {name}"


def square(latent: str) -> str:
    """Return HTML that draws a small square in the colour of a latent."""
    size = "display:inline-block;width:.8em;height:.8em;border-radius:2px"
    return f'<span style="{size};background:{latent_colour(latent, current_theme())}"></span>'


def plain(text: str) -> str:
    """Escape text for plotly, which interprets HTML tags and entities."""
    return escape(text, quote=False)


def hover_label(theme: str) -> dict[str, object]:
    """Return the style of a figure's hover text, with a plain background instead of the colour of the point."""
    font = {"color": INK[theme], "size": PIXELS["small"]}
    return {"align": "left", "bgcolor": FIGURES["hover"][theme], "font": font}


def finish(figure: go.Figure, title: str, height: int, theme: str) -> go.Figure:
    """Apply the layout that all figures except maps share."""
    figure.update_layout(FIGURES["layout"])
    figure.update_layout(
        title={"text": title, "font": {"size": PIXELS["title"], "color": INK[theme]}, "x": 0},
        height=height,
        font={"size": PIXELS["small"], "color": INK[theme]},
        hoverlabel=hover_label(theme),
    )
    figure.update_layout(legend={"title": None, "font_color": INK[theme]})
    for axis in (figure.update_xaxes, figure.update_yaxes):
        axis(tickfont_color=INK[theme], title_font_color=INK[theme])
    return figure
