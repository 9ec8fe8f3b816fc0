"""Show texts, tables and figures. Users' texts are shown unchanged. All figures share colours, symbols and settings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from bgt_core.errors import BgtError

HELP = Path(__file__).parents[1] / "help"
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


# Okabe and Ito's colours for colour-blind readers, without yellow and black, each of which is invisible in one of the
# themes. A colour means the same in the light and the dark theme, so that users can describe a figure by its colours.
_OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
PALETTE = {"light": _OKABE_ITO, "dark": _OKABE_ITO}
# Each latent and language has one colour in all figures; languages also have their own symbols. The colours differ as
# much as possible for colour-blind readers, and have a contrast of at least 3:1 with the background of their theme.
LATENTS = {
    "light": {SEMANTIC: "#0072b2", LANGUAGE: "#d55e00", SYNTACTIC: "#d55e00"},
    "dark": {SEMANTIC: "#56b4e9", LANGUAGE: "#ff7f33", SYNTACTIC: "#ff7f33"},
}
LANGUAGES = {
    "light": {"en": "#2a9a83", "fr": "#ea3fd2", "es": "#a8834a", "de": "#664a00", "tr": "#63104f", "ja": "#4d2be0",
              "ar": "#7a4348"},
    "dark": {"en": "#1f9e60", "fr": "#f0c6e8", "es": "#ffd23f", "de": "#c9cc7a", "tr": "#c05f9f", "ja": "#8f74f5",
             "ar": "#dfb49a"},
}  # fmt: skip
AMOUNTS = {
    "light": "viridis",
    "dark": ("#39568c", "#287d8e", "#20a386", "#55c667", "#b8de29", "#fde725"),  # viridis; its darkest part is left out
}
PAGE = {"light": "#ffffff", "dark": "#171614"}  # theme -> background colour of the page, as in `.streamlit/config.toml`
REST = "#999999"
INK = {"light": "#31333f", "dark": "#fafafa"}  # colour of titles; Streamlit's own greys are too pale to read
SOFT = {"light": "#666666", "dark": "#a0a0a0"}  # theme -> colour of less important text and symbols

# Plotly symbols, one per language: SYMBOLS for the sentences of a text, STARS for the user's own sentences.
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "pentagon", "hourglass")
STARS = ("star", "star-diamond", "star-square", "star-triangle-up", "asterisk", "hexagram", "hash")
GLYPHS = ("●", "◆", "■", "▲", "✚", "⬟", "⧗")
EDGE = "rgba(128, 128, 128, 0.55)"
GROUND = "rgba(128, 128, 128, 0.06)"
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
    ground = {"light": "#ffffff", "dark": "#262730"}[theme]
    return {"align": "left", "bgcolor": ground, "font": {"color": INK[theme], "size": PIXELS["small"]}}


def finish(figure: go.Figure, title: str, height: int, theme: str) -> go.Figure:
    """Apply the layout that all figures except maps share."""
    figure.update_layout(
        title={"text": title, "font": {"size": PIXELS["title"], "color": INK[theme]}, "x": 0},
        height=height,
        margin={"l": 8, "r": 16, "t": 40, "b": 8},
        font={"size": PIXELS["small"], "color": INK[theme]},
        showlegend=True,
        hoverlabel=hover_label(theme),
        # A swipe scrolls the page. The legend is below the axis title, which takes several lines in a narrow window.
        dragmode=False,
        legend={"orientation": "h", "x": 0, "yref": "container", "y": 0, "yanchor": "bottom"},
    )
    figure.update_layout(legend={"title": None, "font_color": INK[theme]})
    for axis in (figure.update_xaxes, figure.update_yaxes):
        axis(tickfont_color=INK[theme], title_font_color=INK[theme])
    return figure
