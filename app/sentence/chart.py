"""Sentences as HTML: lists of neighbours, words with bars. Every text in it is escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from html import escape

import pandas as pd

from app.core import rows, theme
from app.sentence import compute, properties, wording
from bgt_core.contracts import SEMANTIC
from bgt_core.data.columns import UNSPACED, primary
from bgt_core.data.words import WORD
from bgt_core.evaluation.facts import Check

STYLE = """<style>
.bgt-head { border-left: 6px solid var(--bgt); padding-left: .6rem; }
.bgt-head h3 { padding: 0; margin: 0; font-size: 1.2rem; }
.bgt-head p { margin: .1rem 0 0; font-size: .9rem; }
ol.bgt-list { list-style: none; padding: 0; margin: 0; }
.bgt-list li { display: flex; gap: .6rem; padding: .3rem 0; margin: 0; border-bottom: 1px solid #8883; }
.bgt-list .cosine { flex: none; width: 2.6rem; font-variant-numeric: tabular-nums; font-weight: 600; }
.bgt-list .text { flex: 1; }
.bgt-list mark, .bgt-output mark { background: color-mix(in srgb, var(--bgt) 22%, transparent);
  color: inherit; border-radius: .2rem; }
.bgt-tag { display: inline-block; font-size: .8rem; border: 1px solid #8886; border-radius: .7rem; padding: 0 .5rem;
  margin-right: .3rem; white-space: nowrap; }
.bgt-tag.same { background: color-mix(in srgb, var(--bgt) 16%, transparent); border-color: var(--bgt); }
.bgt-tag.lost { background: #d558; border-color: #d55; }
.bgt-output { background: #8881; border-radius: .4rem; padding: .5rem .8rem; font-size: 1.1rem; }
.bgt-kept { font-size: .9rem; margin-top: .2rem; font-variant-numeric: tabular-nums; }
.bgt-kept .bgt-tag { white-space: normal; overflow-wrap: anywhere; }
.bgt-cosine { white-space: nowrap; }
.bgt-words { display: flex; flex-wrap: wrap; gap: .8rem .7rem; }
.bgt-words .bars { display: flex; gap: 3px; justify-content: center; align-items: flex-end; height: 64px;
  border-bottom: 1px solid #8888; }
.bgt-words i { display: block; width: 14px; border-radius: 2px 2px 0 0; background: var(--bgt); }
.bgt-words b { font-weight: 500; font-size: 1.15rem; display: block; text-align: center; min-width: 2rem; }
.bgt-pair { border: 1px solid #8883; border-radius: .4rem; padding: .4rem .6rem; font-size: .95rem; }
.bgt-pair i { display: inline-block; height: .6rem; background: var(--bgt); }
.bgt-pair [style] { font-size: .85rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
table.bgt-table { border-collapse: collapse; width: 100%; }
.bgt-table th, .bgt-table td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #8883; }
.bgt-table th { font-weight: 600; }
</style>"""


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
    alike, own = compute.alike(text, lang, near), wording.wording(text, lang)
    items = []
    for row, same in zip(near.itertuples(), alike.itertuples(), strict=True):
        tags = [tag(length(row.length, row.lang), same.length), tag(row.mark, same.mark)]
        there = wording.wording(row.text, row.lang)
        shared = {name: value for name, value in there.items() if row.lang == lang and own.get(name) == value}
        tags += [tag(wording.title(name, value), name in shared) for name, value in there.items()]
        known = words_of(text) | wording.showing(row.text, row.lang, shared)
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


def length(number: int, lang: str) -> str:
    """As in "8 words", "1 word", "12 characters"."""
    unit = "character" if primary(lang) in UNSPACED else "word"
    return f"{number} {unit}{'s' * (number != 1)}"


def words_of(text: str) -> set[str]:
    """The words of a text in lower case, without marks."""
    return {word for word in WORD.findall(text.casefold()) if word[0].isalnum()}


def marked(text: str, known: Set[str]) -> str:
    """The text, with the words marked that are among the known ones, ignoring case."""
    parts = re.split(f"({WORD.pattern})", text)
    return "".join(f"<mark>{escape(part)}</mark>" if part.casefold() in known else escape(part) for part in parts)


def pair(pair: compute.Pair, cosines: Mapping[str, float], latents: Sequence[str]) -> str:
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
    text: str,
    meaning: float,
    style: float,
    second: str,
    lang: str,
    checked: Sequence[Check],
    taken: Mapping[str, str] | None = None,
) -> str:
    """A generated sentence, with the checks against its source, and its cosine to the source in each latent.

    `taken` are the properties of its wording that it has from another sentence: the words that show them are marked.
    """
    taken = taken or {}
    tags = "".join(tag(f"{wording.title(name, value)}, from the style", True) for name, value in taken.items())
    values = {SEMANTIC: meaning, second: style}
    cosines = " &nbsp; ".join(
        f'<span class="bgt-cosine">{square(name)} {name} cosine {cosine:z.2f}</span>' for name, cosine in values.items()
    )
    return (
        f'<div class="bgt-output" lang="{escape(lang)}" dir="auto" {coloured(second)}>'
        f"{marked(text, wording.showing(text, lang, taken)) or '(nothing)'}</div>"
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


def probes(known: Sequence[properties.Property]) -> str:
    """A row per property: the true label, each latent's prediction, the accuracy of the most frequent answer."""
    latents = [reading.latent for reading in known[0].readings]
    titles = "".join(f"<th>{square(latent)} {latent.capitalize()} says</th>" for latent in latents)
    body = []
    for one in known:
        cells = []
        for reading in one.readings:
            answer = escape(reading.label)
            right = f"<b>✓ {answer}</b>" if reading.label == one.truth else answer
            cells.append(f"<td>{right} ({reading.accuracy:.0%}{', shown' * reading.shown})</td>")
        body.append(
            f"<tr><td>{escape(one.question)}</td><td>{escape(one.truth)}</td>{''.join(cells)}"
            f"<td>{one.majority:.0%}</td></tr>"
        )
    head = f"<tr><th>Asked</th><th>In truth</th>{titles}<th>Most frequent</th></tr>"
    return f'<table class="bgt-table"><thead>{head}</thead><tbody>{"".join(body)}</tbody></table>'


def in_languages(table: pd.DataFrame) -> str:
    """A sentence for each language, with its cosine."""
    items = [
        f'<li><span class="cosine">{row.cosine:z.2f}</span><span class="text">'
        f'<span lang="{escape(row.lang)}" dir="auto">{escape(row.text) or "(nothing)"}</span>'
        f"<br>{tag(theme.lang_title(row.lang, rows.language_name(row.lang)), False)}"
        f"{check_tag(Check(False, row.changed)) if row.changed else ''}</span></li>"
        for row in table.itertuples()
    ]
    return f'<ol class="bgt-list">{"".join(items)}</ol>'
