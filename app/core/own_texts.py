"""A user's own sentences and files: in the session, and kept on the server so that a reload or a link brings them back.

What is kept is named by a random key, which only the address of the page holds.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pandas as pd
import streamlit as st

from app.core.startup import ParallelText

PARAMETER = "own"  # of the address: the key
KEY_BYTES = 16  # random ones: nobody guesses another's key
MAX_KEPT = 1_000  # states of all sessions
MAX_BYTES = 300_000_000  # of all that is kept
# Not a cache of Streamlit's: what is emptied from there can be computed again.
_kept: OrderedDict[str, OwnTexts] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class OwnTexts:
    """What a user brought; never changed, so that a link shows what was there when it was made."""

    typed: tuple[pd.DataFrame, ...] = ()  # sentences drawn as stars, as `rows.typed` gives them
    uploaded: Mapping[str, ParallelText] = field(default_factory=dict)  # by name


def of_session() -> OwnTexts:
    return st.session_state.get("own", OwnTexts())


def add_typed(table: pd.DataFrame) -> None:
    own = of_session()
    _set(replace(own, typed=(*own.typed, table)))


def remove_typed() -> None:
    _set(replace(of_session(), typed=()))


def add_uploaded(name: str, text: ParallelText) -> None:
    own = of_session()
    _set(replace(own, uploaded={**own.uploaded, name: text}))


def remove_uploaded(name: str) -> None:
    own = of_session()
    _set(replace(own, uploaded={other: text for other, text in own.uploaded.items() if other != name}))


def _set(own: OwnTexts) -> None:
    st.session_state["own"] = own
    st.session_state["own_key"] = kept(own) if own.typed or own.uploaded else ""
    in_address()


def in_address() -> None:
    """The address names what the session holds: each page starts with an address of its own."""
    key = st.session_state.get("own_key", "")
    if key and st.query_params.get(PARAMETER) != key:
        st.query_params[PARAMETER] = key
    elif not key and PARAMETER in st.query_params:
        del st.query_params[PARAMETER]


def in_link() -> dict[str, str]:
    """The parameter by which another tab has them too."""
    key = st.session_state.get("own_key", "")
    return {PARAMETER: key} if key else {}


def restore() -> bool:
    """Once in a session: takes what the key of its address names. False where that is no longer kept."""
    if "own_key" in st.session_state:
        in_address()
        return True
    key = st.query_params.get(PARAMETER, "")
    own = recalled(key)
    st.session_state.update(own=own or OwnTexts(), own_key=key if own else "")
    in_address()
    return own is not None or not key


def kept(own: OwnTexts) -> str:
    """The key of a new state. The states longest unused go once there are too many, or they take too much memory."""
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
    """Of the sentences of all states; a table that is in several is in memory once."""
    tables = [
        table for own in _kept.values() for table in (*own.typed, *(text.table for text in own.uploaded.values()))
    ]
    return sum(int(table.memory_usage(deep=True).sum()) for table in {id(table): table for table in tables}.values())
