"""Sentences as HTML: lists of neighbours, words with bars. Every text in it is escaped."""

from __future__ import annotations

import re
from html import escape

import pandas as pd
import streamlit as st

from app import rows, sentence, state
from app.charts import theme
from bgt_core.contracts import SEMANTIC

STYLE = """<style>
.bgt-head { border-left: 6px solid var(--bgt); padding-left: .6rem; }
.bgt-head h3 { padding: 0; margin: 0; font-size: 1.2rem; }
.bgt-head p { margin: .1rem 0 0; font-size: .9rem; }
.bgt-key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; background: var(--bgt); }
ol.bgt-list { list-style: none; padding: 0; margin: 0; }
.bgt-list li { display: flex; gap: .6rem; padding: .3rem 0; margin: 0; border-bottom: 1px solid #8883; }
.bgt-list .cosine { flex: none; width: 2.6rem; font-variant-numeric: tabular-nums; font-weight: 600; }
.bgt-list .text { flex: 1; }
.bgt-list mark { background: color-mix(in srgb, var(--bgt) 22%, transparent); color: inherit; border-radius: .2rem; }
.bgt-tag { display: inline-block; font-size: .8rem; border: 1px solid #8886; border-radius: .7rem; padding: 0 .5rem;
  margin-right: .3rem; white-space: nowrap; }
.bgt-tag.same { background: color-mix(in srgb, var(--bgt) 16%, transparent); border-color: var(--bgt); }
.bgt-output { background: #8881; border-radius: .4rem; padding: .5rem .8rem; font-size: 1.1rem; }
.bgt-kept { font-size: .9rem; margin-top: .2rem; font-variant-numeric: tabular-nums; }
</style>"""


def coloured(latent: str) -> str:
    """The attribute that gives what is inside a latent's colour."""
    return f'style="--bgt:{theme.latent_colour(latent, state.theme())}"'


def key(latent: str) -> str:
    """A square in a latent's colour."""
    return f'<span class="bgt-key" {coloured(latent)}></span>'


def head(title: str, explained: str, latent: str) -> None:
    """A heading in a latent's colour, with a line under it."""
    st.html(f'<div class="bgt-head" {coloured(latent)}><h3>{escape(title)}</h3><p>{escape(explained)}</p></div>')


def neighbours(text: str, lang: str, near: pd.DataFrame, latent: str, languages: bool) -> None:
    """Sentences with their cosines; the words, the length and the final mark that they share with a text stand out."""
    alike = sentence.alike(text, lang, near)
    items = []
    for row, same in zip(near.itertuples(), alike.itertuples(), strict=True):
        tags = [tag(length(row.length, row.lang), same.length), tag(rows.MARKS.get(row.text[-1:], row.mark), same.mark)]
        if languages:
            glyph = theme.cycled(theme.GLYPHS, theme.lang_place(row.lang))
            tags.insert(0, tag(f"{glyph} {rows.language_name(row.lang)}", False))
        items.append(
            f'<li><span class="cosine">{row.cosine:z.2f}</span><span class="text" lang="{escape(row.lang)}" dir="auto">'
            f"{shared_words(row.text, text) if row.lang == lang else escape(row.text)}<br>{''.join(tags)}</span></li>"
        )
    st.html(f'<ol class="bgt-list" {coloured(latent)}>{"".join(items)}</ol>')


def tag(text: str, same: bool) -> str:
    return f'<span class="bgt-tag{" same" * same}">{"✓ " * same}{escape(text)}</span>'


def length(number: int, lang: str) -> str:
    """As in "8 words", "1 word", "12 characters"."""
    unit = "character" if lang in sentence.UNSPACED else "word"
    return f"{number} {unit}{'s' * (number != 1)}"


def shared_words(text: str, other: str) -> str:
    """The text with the words that the other has too marked, ignoring case."""
    known = {word for word in sentence.WORD.findall(other.casefold()) if word[0].isalnum()}
    parts = re.split(f"({sentence.WORD.pattern})", text)
    return "".join(f"<mark>{escape(part)}</mark>" if part.casefold() in known else escape(part) for part in parts)


def output(text: str, meaning: float, style: float, second: str, lang: str) -> None:
    """A written sentence, and how near it is to what it was written from in each latent."""
    kept = f"{key(SEMANTIC)} meaning kept {meaning:z.2f} &nbsp; {key(second)} style kept {style:z.2f}"
    st.html(
        f'<div class="bgt-output" lang="{escape(lang)}" dir="auto">{escape(text) or "(nothing)"}</div>'
        f'<div class="bgt-kept">{kept}</div>'
    )
