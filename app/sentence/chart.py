"""Sentences as HTML: lists of neighbours, words with bars. Every text in it is escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from html import escape
from typing import Any

import pandas as pd

from app.core import rows, theme
from app.core.pairs import Pair
from app.sentence import compute
from bgt_core.contracts import SEMANTIC
from bgt_core.data.columns import UNSPACED, primary
from bgt_core.data.words import WORD
from bgt_core.evaluation.facts import Check


def square(latent: str) -> str:
    return theme.square(latent, theme.current())


def coloured(latent: str, more: str = "") -> str:
    """The style attribute that sets a latent's colour, followed by more CSS."""
    return f'style="--bgt:{theme.latent_colour(latent, theme.current())};{more}"'


def head(title: str, explained: str, latent: str) -> str:
    """A heading in a latent's colour, with a line under it."""
    return f'<div class="bgt-head" {coloured(latent)}><h3>{escape(title)}</h3><p>{escape(explained)}</p></div>'


def neighbours(text: str, lang: str, near: pd.DataFrame, latent: str, languages: bool) -> str:
    """List sentences with their cosines; highlight what they share with a text: words, and those that show the same
    form of address, contraction or form of a question, length and closing mark."""
    alike, own = compute.alike(text, lang, near), compute.wording(text, lang)
    items = []
    for row, same in zip(near.itertuples(), alike.itertuples(), strict=True):
        unit = "character" if primary(row.lang) in UNSPACED else "word"
        tags = [tag(f"{row.length} {unit}{'s' * (row.length != 1)}", same.length), tag(row.mark, same.mark)]
        there = compute.wording(row.text, row.lang)
        shared = {name: value for name, value in there.items() if row.lang == lang and own.get(name) == value}
        tags += [tag(compute.title(name, value), name in shared) for name, value in there.items()]
        words = {word for word in WORD.findall(text.casefold()) if word[0].isalnum()}
        known = words | compute.showing(row.text, row.lang, shared)
        if languages:
            tags.insert(0, tag(theme.lang_title(row.lang, rows.language_name(row.lang)), False))
        items.append(
            f'<li><span class="cosine">{row.cosine:z.2f}</span><span class="text" lang="{escape(row.lang)}" dir="auto">'
            f"{marked(row.text, known) if row.lang == lang else escape(row.text)}"
            f'<br><bdi dir="ltr">{"".join(tags)}</bdi></span></li>'
        )
    return f'<ol class="bgt-list" {coloured(latent)}>{"".join(items)}</ol>'


def tag(text: str, same: bool) -> str:
    return f'<span class="bgt-tag{" same" * same}">{"✓ " * same}{escape(text)}</span>'


def marked(text: str, known: Set[str]) -> str:
    """The text, with the words marked that are among the known ones, ignoring case."""
    parts = re.split(f"({WORD.pattern})", text)
    return "".join(f"<mark>{escape(part)}</mark>" if part.casefold() in known else escape(part) for part in parts)


def pair(pair: Pair, cosines: Mapping[str, float], latents: Sequence[str]) -> str:
    """Two sentences, and a bar for their cosine in each latent."""
    texts = "".join(
        f'<div lang="{lang}">{escape(text)}</div>'
        for text, lang in ((pair.text, pair.lang), (pair.other, pair.other_lang))
    )
    drawn = "".join(
        f"<div {coloured(latent)}><i style='width:{max(0, 40 * cosines[latent]):.0f}%'></i> "
        f"{cosines[latent]:z.2f} {escape(latent)}</div>".replace(" -", " −")
        if latent in cosines
        else f"<div {coloured(latent)}>two languages</div>"
        for latent in latents
    )
    return f'<div class="bgt-pair">{texts}{drawn}</div>'


def output(
    written: Any, second: str, lang: str, checked: Sequence[Check], taken: Mapping[str, str] | None = None
) -> str:
    """A row of `compute.written`, with the checks against its source, and its cosine to the source in each latent.

    `taken` are the properties of its wording that it has from another sentence: the words that show them are marked.
    """
    taken, text = taken or {}, written.text
    tags = "".join(tag(f"{compute.title(name, value)}, from the style", True) for name, value in taken.items())
    values = {SEMANTIC: written.meaning, second: written.style}
    cosines = " &nbsp; ".join(
        f'<span class="bgt-cosine">{square(name)} {name} cosine {cosine:z.2f}</span>' for name, cosine in values.items()
    )
    return (
        f'<div class="bgt-output" lang="{escape(lang)}" dir="auto" {coloured(second)}>'
        f"{marked(text, compute.showing(text, lang, taken)) or '(nothing)'}</div>"
        f'<div class="bgt-kept" {coloured(second)}>{tags}{"".join(map(check_tag, checked))}{cosines}</div>'
    )


def check_tag(check: Check) -> str:
    """A check as a tag: passed or not."""
    kind, sign = ("", "✓") if check.passed else (" lost", "✗")
    return f'<span class="bgt-tag{kind}">{sign} {escape(check.verdict)}</span>'


def bars(table: pd.DataFrame, latents: Sequence[str], highest: float, lang: str) -> str:
    """The sentence with a bar over each `word` for each latent; the bar's height is the value of its column."""
    words = []
    for row in table.to_dict("records"):
        drawn = "".join(
            f"<i {coloured(latent, f'height:{max(1, 64 * row[latent] / highest):.0f}px')}></i>" for latent in latents
        )
        moved = ", ".join(f"{latent} {row[latent]:z.2f}" for latent in latents)
        words.append(f'<div title="{escape(moved)}"><div class="bars">{drawn}</div><b>{escape(row["word"])}</b></div>')
    return f'<div class="bgt-words" lang="{escape(lang)}" dir="auto">{"".join(words)}</div>'
