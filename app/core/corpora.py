"""The texts that the app can show, by name, and their sentences as table rows. Texts are built in or added by users.

The session has the user's sentences, files and encoders. The server also keeps them under a random key, which only the
address of the page contains. A reload or a link then restores them.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.core import rows, startup
from app.core.address import put
from app.core.startup import ParallelText
from bgt_core.data.columns import read_columns
from bgt_core.data.parallel import Skipped, read_pairs

PARAMETER = "own"  # the parameter of the address that contains the key
KEY_BYTES = 16  # random, so that nobody can guess another user's key
MAX_KEPT = 1_000  # maximum number of states, over all sessions
MAX_BYTES = 300_000_000  # maximum size of all states
MODEL_BYTES = 10_000_000  # assumed size of an encoder
# Streamlit's caches are not used here: users can clear them, and these texts cannot be computed again.
_kept: OrderedDict[str, OwnTexts] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class OwnTexts:
    """A user's texts and encoders. A change makes a new state, so that an old link still shows the old state."""

    typed: tuple[pd.DataFrame, ...] = ()  # sentences drawn as stars, in the form of `rows.typed`
    uploaded: Mapping[str, ParallelText] = field(default_factory=dict)  # name -> text
    models: Mapping[str, Any] = field(default_factory=dict)  # title -> `state.Loaded` of an opened or split encoder
    split: Any = None  # the last split on the page "Your encoder", a `Made`


def of_session() -> OwnTexts:
    return st.session_state.get("own", OwnTexts())


def change(**parts: Any) -> None:
    """Replace some fields of the session's state, and write the key of the new state into the address."""
    own = replace(of_session(), **parts)
    st.session_state["own"] = own
    st.session_state["own_key"] = kept(own) if own.typed or own.uploaded or own.models or own.split else ""
    put(PARAMETER, st.session_state["own_key"])


def restore() -> bool:
    """Load the state that belongs to the key in the address, once per session. Return False if it is no longer kept."""
    key = st.query_params.get(PARAMETER, "")
    new = "own_key" not in st.session_state
    own = recalled(key) if new else None
    if new:
        st.session_state.update(own=own or OwnTexts(), own_key=key if own else "")
    put(PARAMETER, st.session_state["own_key"])  # because the address of each page is empty at first
    return own is not None or not (new and key)


def kept(own: OwnTexts) -> str:
    """Store a state and return its key. If the states need too much memory, drop the least recently used ones."""
    key = secrets.token_urlsafe(KEY_BYTES)
    with _lock:
        _kept[key] = own
        while len(_kept) > 1 and (len(_kept) > MAX_KEPT or _bytes() > MAX_BYTES):
            _kept.popitem(last=False)
    return key


def recalled(key: str) -> OwnTexts | None:
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
        return _kept.get(key)


def _bytes() -> int:
    """Return the size of all states in bytes. A table in several states counts once; an encoder's size is a guess."""
    models = {id(model) for own in _kept.values() for model in own.models.values()}
    tables = [
        table for own in _kept.values() for table in (*own.typed, *(text.table for text in own.uploaded.values()))
    ]
    different = {id(table): table for table in tables}.values()
    return MODEL_BYTES * len(models) + sum(int(table.memory_usage(deep=True).sum()) for table in different)


def readable(langs: Sequence[str], least: int = 1) -> dict[str, ParallelText]:
    """Return the texts with at least `least` columns that a model of these languages can read, the user's own first."""
    texts = startup.texts_in(of_session().uploaded, langs) | startup.texts_in(startup.read().texts, langs)
    return {name: text for name, text in texts.items() if len(text.sides) >= least}


def columns_of(text: ParallelText, count: int) -> tuple[list[list[str]], list[str]]:
    """Return the sentences of each column in the first `count` rows of a text, and the language of each column."""
    if text.table is not None:
        sides = text.sides
        return [text.table[side].head(count).tolist() for side in sides], [text.columns[int(side)] for side in sides]
    table = sentences(text, count)
    return [table.loc[table["lang"] == lang, "text"].tolist() for lang in text.langs], list(text.langs)


def sentences(text: ParallelText, count: int) -> pd.DataFrame:
    """Return the first `count` translations, one row per language. Of a text in one language, return the first `count`
    different sentences. The user's other columns are named "own:NAME". The table is shared: do not change it."""
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
    """Return one row per sentence. A pair of sentences in one language has two rows."""
    table, sides = _text.table, _text.sides
    if len(sides) == 1:  # each sentence once, because copies would hide each other on a map
        table = table.drop_duplicates(sides)
    table = table.head(count)
    langs = [_text.columns[int(side)] for side in sides]
    sentences = rows.translations(list(zip(*(table[side] for side in sides), strict=True)), langs)
    if len(set(langs)) < len(langs):  # both sides are in one language, so that their ids would be equal
        sentences["id"] = [f"{side}{row}" for side in (langs[0], f"{langs[1]}2_") for row in range(len(table))]
    own = table.drop(columns=[column for column in table if column.isdecimal()])
    taken = f"{rows.OWN_COLUMN}gold" in own  # whether the user has a column called "gold" besides the scores
    own = own.rename(columns={"gold": f"{rows.OWN_COLUMN}{'scores' if taken else 'gold'}"})
    return sentences.assign(**{name: np.tile(own[name].to_numpy(), len(sides)) for name in own})


def different(single: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield each sentence once, because a map would draw copies at the same place."""
    seen = set[str]()
    for (sentence,) in single:
        if sentence not in seen:
            seen.add(sentence)
            yield [sentence]
