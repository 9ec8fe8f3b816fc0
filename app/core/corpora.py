"""The texts that the app can show: their names, and their sentences as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import pandas as pd
import streamlit as st

from app.core import own_texts, rows, startup
from app.core.startup import ParallelText
from bgt_core.data.columns import read_columns
from bgt_core.data.parallel import Skipped, read_pairs


def readable(langs: Sequence[str]) -> dict[str, ParallelText]:
    """The texts that a model of these languages can read by their names: the user's own, then the app's."""
    own = startup.texts_in(own_texts.of_session().uploaded, langs)
    return own | startup.read().texts_in(langs)


def aligned(langs: Sequence[str]) -> dict[str, ParallelText]:
    """Those of the texts whose rows have two sentences of one meaning or more."""
    return {name: text for name, text in readable(langs).items() if len(text.sides) > 1}


def columns_of(text: ParallelText, count: int) -> tuple[list[list[str]], list[str]]:
    """The first `count` rows of such a text: the sentences of each column, and the columns' languages."""
    if text.table is not None:
        sides = text.sides
        return [text.table[side].head(count).tolist() for side in sides], [text.columns[int(side)] for side in sides]
    table = sentences(text, count)
    return [table.loc[table["lang"] == lang, "text"].tolist() for lang in text.langs], list(text.langs)


def sentences(text: ParallelText, count: int) -> pd.DataFrame:
    """Return the first `count` translations, one row per language, or as many different sentences of one language. The
    table is shared: do not change it. An uploaded text's extra columns are "own:NAME". Raises BgtError for an
    unreadable file."""
    if text.table is not None:
        return _uploaded(text.digest, text.langs, count, text)
    return _sentences(text, count, text.file.stat().st_mtime_ns if text.file and text.file.exists() else 0)


@st.cache_resource(max_entries=6, show_spinner="Reading sentences")
def _sentences(text: ParallelText, count: int, written: int) -> pd.DataFrame:
    if text.credit:
        return rows.examples(text.langs, count)
    if text.file is None:
        return rows.of_grammar(text.langs, count)
    columns = text.columns or text.langs
    places = [read_columns(columns).index(lang) for lang in text.langs]
    read = ([row[place] for place in places] for row in read_pairs(text.file, columns, Skipped()))
    return rows.translations(list(islice(read if len(places) > 1 else different(read), count)), text.langs)


@st.cache_resource(max_entries=6, show_spinner="Reading sentences")
def _uploaded(digest: str, langs: Sequence[str], count: int, _text: ParallelText) -> pd.DataFrame:
    """One row per sentence; a pair of the same language gives two rows."""
    table, sides = _text.table, _text.sides
    if len(sides) == 1:  # each sentence once: copies would hide one another on a map
        table = table.drop_duplicates(sides)
    table = table.head(count)
    langs = [_text.columns[int(side)] for side in sides]
    sentences = rows.translations(list(zip(*(table[side] for side in sides), strict=True)), langs)
    if len(set(langs)) < len(langs):  # both sides were numbered from 0
        sentences["id"] = [f"{side}{row}" for side in (langs[0], f"{langs[1]}2_") for row in range(len(table))]
    own = table.drop(columns=[column for column in table if column.isdecimal()])
    taken = f"{rows.OWN_COLUMN}gold" in own  # a column to colour by may have that title too
    own = own.rename(columns={"gold": f"{rows.OWN_COLUMN}{'scores' if taken else 'gold'}"})
    return sentences.assign(**{name: np.tile(own[name].to_numpy(), len(sides)) for name in own})


def different(single: Iterable[list[str]]) -> Iterator[list[str]]:
    """Keep each sentence once: a sentence with several translations would be drawn on top of itself."""
    seen = set[str]()
    for (sentence,) in single:
        if sentence not in seen:
            seen.add(sentence)
            yield [sentence]
