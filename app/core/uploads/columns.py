"""The use of each column of an uploaded file, and the text that the columns make."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from app.core import checks, rows
from app.core.startup import ParallelText
from app.core.uploads import formats
from bgt_core.data.examples import LANGS
from bgt_core.data.textfile import no_number, number
from bgt_core.errors import DataError

GOLD, COLOUR, LEFT_OUT = "gold", "own", ""  # uses of a column; any other use is the language of its text
USES = {GOLD: "Scores people gave", COLOUR: "Colour by it", LEFT_OUT: "Leave out"}
MAX_CATEGORIES = 50  # distinct cells of a column of categories
NO_TEXT = ("genre", "split")  # names of columns that hold no sentences


@st.cache_data(max_entries=8, show_spinner=False)
def guessed_uses(table: pd.DataFrame, langs: Sequence[str]) -> list[str]:
    """For each column a language, `GOLD`, `COLOUR` or `LEFT_OUT`, by its name and its cells."""
    uses = [guessed_use(title, table[title], langs) for title in table]
    languages = [use for use in uses if use in langs]
    if not languages:
        words = [at for at, title in enumerate(table) if not formats.wordless(table[title])]
        for at in words[:1]:
            uses[at] = langs[0]
    pairs = len(languages) > 1 and languages[0] == languages[1]
    places = [at for at, use in enumerate(uses) if use in langs]
    for at in places[2:] if pairs else [at for at in places if uses[at] in uses[:at]]:
        uses[at] = LEFT_OUT
    if pairs and GOLD not in uses:
        scores = [at for at, use in enumerate(uses) if use == COLOUR and formats.numbers(table.iloc[:, at])]
        if scores:
            uses[scores[0]] = GOLD
    return uses


def guessed_use(title: str, values: pd.Series, langs: Sequence[str]) -> str:
    name = title.lower()
    named = rows.LANG_OF_TITLE.get(rows.title_key(title))
    for lang in langs:
        if named == lang or name == lang:
            return lang
    if name == "id":
        return LEFT_OUT
    wordless = formats.wordless(values)
    misspelt = name in formats.SCORES and wordless and values.str.contains(r"\d").any()  # `check` tells the spelling
    if formats.numbers(values) or misspelt:
        return GOLD if name in formats.SCORES else COLOUR
    if name in NO_TEXT or values.nunique() <= min(MAX_CATEGORIES, len(values) // 5):
        return COLOUR
    if wordless:
        return LEFT_OUT
    lang = checks.guess(values.tolist())
    if lang in langs:
        return lang
    without_examples = [lang for lang in langs if lang not in LANGS]
    return without_examples[0] if without_examples else LEFT_OUT


def text_of(name: str, table: pd.DataFrame, uses: Sequence[str], drop: bool) -> tuple[str, ParallelText, str]:
    """The text's name, the text, and in words which rows were left out; `drop` leaves out repetitions.

    DataError for columns that make no text.
    """
    sides = [title for title, use in zip(table, uses, strict=True) if use not in USES]
    columns = tuple(use for use in uses if use not in USES)
    check(table, uses, columns)
    texts = table[sides].set_axis(map(str, range(len(sides))), axis=1)
    gold = [pd.to_numeric(table[title]) for title, use in zip(table, uses, strict=True) if use == GOLD]
    reasons = {
        "have an empty sentence": (texts == "").any(axis=1).to_numpy(),
        f"have a sentence of more than {formats.MAX_CHARACTERS:,} characters": np.any(
            [texts[side].str.len() > formats.MAX_CHARACTERS for side in texts], axis=0
        ),
        "have no score": gold[0].isna().to_numpy() if gold else np.zeros(len(table), bool),
    }
    kept, left_out = np.ones(len(table), bool), []
    for reason, rows_of_it in reasons.items():
        left_out.append((int((rows_of_it & kept).sum()), reason))
        kept &= ~rows_of_it
    repeated = texts[kept].duplicated().to_numpy()
    if drop:
        kept[np.flatnonzero(kept)[repeated]] = False
    left_out.append((int(repeated.sum()), "repeat an earlier row" if drop else "repeat an earlier row and are kept"))
    words = "; ".join(f"{count:,} {reason}" for count, reason in left_out if count)
    if not kept.any():
        raise DataError(f"No row can be used: {words}. Choose other columns.")
    scores = {"gold": gold[0]} if gold else {}
    whole = texts.assign(**scores, **colours(table, uses))[kept].reset_index(drop=True)
    digest = hashlib.sha256(pd.util.hash_pandas_object(whole).to_numpy().tobytes())
    digest.update(repr((columns, list(whole))).encode())
    langs = tuple(dict.fromkeys(columns))
    text = ParallelText(langs, None, columns=columns, table=whole, digest=digest.hexdigest())
    return f"Yours: {name} ({'-'.join(columns)})", text, f"{words}." if words else ""


def check(table: pd.DataFrame, uses: Sequence[str], columns: Sequence[str]) -> None:
    if not columns:
        raise DataError("No column of sentences: choose the language of at least one.")
    times = Counter(columns)
    if (len(columns) > 2 and max(times.values()) > 1) or max(times.values()) > 2:
        raise DataError("Choose different languages, or the same language for exactly two columns: pairs of sentences.")
    if uses.count(GOLD) > 1:
        raise DataError("More than one column of scores: keep one, and colour by the others.")
    for title, use in zip(table, uses, strict=True):
        if use == GOLD and not formats.numbers(table[title]):
            wrong = [cell for cell in table[title] if cell and (math.isnan(number(cell)) or not cell.isascii())]
            wrong.sort(key=lambda cell: "," in cell)  # decimal commas alone would do
            why = f"a cell {no_number(wrong[0])}" if wrong else "it holds no numbers"
            raise DataError(f"Column {title} can't hold scores: {why}. Choose another use.")


def colours(table: pd.DataFrame, uses: Sequence[str]) -> dict[str, pd.Series]:
    """The columns to colour by, as "own:NAME": numbers, or categories with a word for an empty cell."""
    titles = [title for title, use in zip(table, uses, strict=True) if use == COLOUR]
    return {
        f"{rows.OWN_COLUMN}{title}": pd.to_numeric(table[title])
        if formats.numbers(table[title])
        else table[title].replace("", rows.NONE)
        for title in titles
    }
