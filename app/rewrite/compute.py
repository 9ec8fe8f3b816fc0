"""Generate sentences in another style: a grid of meanings and styles, and directions of a style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from app.core import corpora, rows
from app.core.startup import ParallelText
from app.core.state import BY_DIGEST, Loaded, embed
from app.core.theme import latent_colour
from app.core.writing import candidates, write
from bgt_core.contracts import SEMANTIC
from bgt_core.data.properties import PROPERTIES
from bgt_core.evaluation.facts import checks, differences
from bgt_core.vectors.maps import Directions, directions

FITTED_ON = 2_000  # translations that directions are fitted on
QUESTION = "question"
TITLES = {  # of directions: being a question, and properties of wording
    QUESTION: "More of a question",
    "address": "More formal",
    "politeness": "More polite",
    "contraction": "More contracted",
}
FAR = {"vous", "Sie", "usted", "siz", "polite", "short"}  # values that a direction leads to, from the other one
STEPS = (-4, -2, 0, 2, 4)
WRAP = 22  # characters of a line in a cell of the figure


def beyond(text: str, rebuilt: str, lang: str) -> str:
    """Warn if the reconstruction of a sentence fails a check; "" if it passes all."""
    if not (changed := differences(checks(text, lang, rebuilt, lang))):
        return ""
    return (
        f"This small model cannot reconstruct this sentence: from its own latents it writes “{rebuilt}” ({changed}). "
        "Other outputs will be no better."
    )


def grid(
    loaded: Loaded,
    meanings: Sequence[str],
    meaning_lang: str,
    styles: Sequence[str],
    lang: str,
) -> tuple[pd.DataFrame, list[str]]:
    """Generate every meaning in every style in one search: one row per cell, meanings in the outer loop; also
    reconstruct each meaning.

    `semantic` and `second` are the cosines of the generated text to the meaning's semantic latent and to the style's
    second latent; `unchanged` is the latter for the meaning's own sentence, NaN if that is of another language;
    `changed` is what the text lost of the meaning, by rules.
    """
    semantic, own = (embed(loaded, meanings, meaning_lang, latent) for latent in (SEMANTIC, loaded.second_latent))
    second = embed(loaded, styles, lang, loaded.second_latent)
    cells = np.repeat(semantic, len(styles), axis=0), np.tile(second, (len(meanings), 1))
    alike = meaning_lang == lang  # then the reconstructions can be part of the same search
    if alike:
        cells = np.concatenate([cells[0], semantic]), np.concatenate([cells[1], own])
    best = [ranked[0] for ranked in candidates(loaded, *cells, lang)]
    count = len(meanings) * len(styles)
    again = best[count:]
    if not alike:
        ranked = candidates(loaded, semantic, own, meaning_lang)
        again = [each[0] for each in ranked]
    unchanged = loaded.encoder.similarity(own, second) if alike else np.full((len(meanings), len(styles)), np.nan)
    table = pd.DataFrame(
        {
            "meaning": np.repeat(meanings, len(styles)),
            "style": list(styles) * len(meanings),
            "text": [each.text for each in best[:count]],
            "semantic": [each.kept[SEMANTIC] for each in best[:count]],
            "second": [each.kept[loaded.second_latent] for each in best[:count]],
            "unchanged": unchanged.ravel(),
        }
    )
    pairs = zip(table["meaning"], table["text"], strict=True)
    table["changed"] = [differences(checks(meaning, meaning_lang, text, lang)) for meaning, text in pairs]
    return table, [each.text for each in again]


@st.cache_resource(max_entries=8, show_spinner="Finding directions", hash_funcs=BY_DIGEST)
def fitted_directions(loaded: Loaded, text: ParallelText, lang: str) -> Directions:
    """Directions of the second latent, fitted on a text's sentences of that language; a step is half the way from
    statement to question, or from tu to vous."""
    table = corpora.sentences(text, FITTED_ON)
    table = table[table["lang"] == lang]
    factors = {QUESTION: np.where(table["mark"] == "question", 1, -1).tolist()}
    for name in set(rows.colours((lang,))) & set(TITLES):
        values = [PROPERTIES[name].value(sentence, lang) for sentence in table["text"]]
        factors[name] = [(value in FAR) - (value not in {*FAR, ""}) for value in values]
    varied = {name: factors[name] for name in TITLES if name in factors and len(set(factors[name])) > 1}
    vectors = embed(loaded, table["text"], lang, loaded.second_latent)
    return directions(vectors, np.column_stack(list(varied.values())), tuple(varied))


def write_moved(
    loaded: Loaded, directions: Directions, source: str, lang: str, steps: Sequence[Sequence[float]]
) -> list[str]:
    """Generate the source with its second latent moved, once for each row of steps (S, K), in units of the factors."""
    second = directions.move(embed(loaded, [source], lang, loaded.second_latent), np.asarray(steps, dtype=float))
    semantic = np.repeat(embed(loaded, [source], lang, SEMANTIC), len(second), axis=0)
    return write(loaded, semantic, second, lang)


@st.cache_data(max_entries=32, show_spinner=False, hash_funcs=BY_DIGEST)
def every_step(loaded: Loaded, _directions: Directions, source: str, lang: str) -> pd.DataFrame:
    """Generate the source at every step of every direction, one direction at a time."""
    moves = [(name, step) for name in _directions.names for step in STEPS]
    steps = [[step * (name == other) for other in _directions.names] for name, step in moves]
    texts = write_moved(loaded, _directions, source, lang, steps)
    return pd.DataFrame({"direction": [name for name, _ in moves], "step": [s for _, s in moves], "text": texts})


def html(table: pd.DataFrame, notices: Mapping[str, str], second_latent: str, theme: str) -> str:
    """The grid of `compute.grid` as HTML: one row per meaning, with its notice if it has one, one column per style."""
    styles = list(dict.fromkeys(table["style"]))
    heads = "".join(f'<th scope="col">{escape(style)}</th>' for style in styles)
    lines = []
    for meaning, cells in table.groupby("meaning", sort=False):
        notice = f"<small>⚠ {escape(notices[meaning])}</small>" if notices.get(meaning) else ""
        lines.append(f'<tr><th scope="row">{escape(meaning)}{notice}</th>')
        for cell in cells.itertuples():
            kept = bar(cell.semantic, SEMANTIC, theme) + bar(cell.second, second_latent, theme)
            text = escape(cell.text) or "(nothing)"
            changed = f"<small>✗ {escape(cell.changed)}</small>" if cell.changed else ""
            lines.append(f'<td data-style="as “{escape(cell.style, quote=True)}”">{text}{kept}{changed}</td>')
        lines.append("</tr>")
    head = f'<thead><tr><th scope="col">Meaning ↓ Style →</th>{heads}</tr></thead>'
    return f'<table class="grid">{head}<tbody>{"".join(lines)}</tbody></table>'


def bar(cosine: float, latent: str, theme: str) -> str:
    """A number and a bar from 0 to 1 in the colour of the latent."""
    width = round(100 * min(max(cosine, 0.0), 1.0))
    filled = f'<i style="width:{width}%;background:{latent_colour(latent, theme)}"></i>'
    return f'<div class="kept" title="{latent} cosine {cosine:z.2f}"><span>{cosine:z.2f}</span>{filled}</div>'


def wide(table: pd.DataFrame, styles: Sequence[str]) -> pd.DataFrame:
    """The sentences as on the page: a column per style."""
    cells = table.pivot(index="meaning", columns="style", values="text")
    rows = list(dict.fromkeys(table["meaning"]))
    return cells.loc[rows, list(styles)].reset_index(allow_duplicates=True)  # a style may be the word "meaning"
