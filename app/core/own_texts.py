"""A user's own sentences, files and encoders: in the session, and kept on the server so that a reload or a link brings
them back.

They are stored under a random key, which only the address of the page holds.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd
import streamlit as st

from app.core.startup import ParallelText

PARAMETER = "own"  # the parameter of the address that holds the key
KEY_BYTES = 16  # random, so that nobody can guess another user's key
MAX_KEPT = 1_000  # states, over all sessions
MAX_BYTES = 300_000_000  # of all that is kept
MODEL_BYTES = 10_000_000  # counted for an encoder
# Not one of Streamlit's caches: users can empty those, and this content can't be computed again.
_kept: OrderedDict[str, OwnTexts] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class OwnTexts:
    """What a user brought; never changed, so that a link shows the state of the moment it was made."""

    typed: tuple[pd.DataFrame, ...] = ()  # sentences drawn as stars, as `rows.typed` gives them
    uploaded: Mapping[str, ParallelText] = field(default_factory=dict)  # by name
    models: Mapping[str, Any] = field(default_factory=dict)  # `state.Loaded` of each encoder opened or split, by title
    split: Any = None  # the last split on "Your encoder", a `compute.Made`


def of_session() -> OwnTexts:
    return st.session_state.get("own", OwnTexts())


def change(**parts: Any) -> None:
    """Replace some parts; the address then names the new state."""
    own = replace(of_session(), **parts)
    st.session_state["own"] = own
    st.session_state["own_key"] = kept(own) if own.typed or own.uploaded or own.models or own.split else ""
    in_address()


def in_address() -> None:
    """Write the key of the session's texts into the address: each page starts with an address of its own."""
    key = st.session_state.get("own_key", "")
    if key and st.query_params.get(PARAMETER) != key:
        st.query_params[PARAMETER] = key
    elif not key and PARAMETER in st.query_params:
        del st.query_params[PARAMETER]


def in_link() -> dict[str, str]:
    """The address parameter that gives another tab the same texts."""
    key = st.session_state.get("own_key", "")
    return {PARAMETER: key} if key else {}


def restore() -> bool:
    """Load the texts that the key in the address names, once per session. False if they are no longer kept."""
    if "own_key" in st.session_state:
        in_address()
        return True
    key = st.query_params.get(PARAMETER, "")
    own = recalled(key)
    st.session_state.update(own=own or OwnTexts(), own_key=key if own else "")
    in_address()
    return own is not None or not key


def kept(own: OwnTexts) -> str:
    """Store a state and return its key. The states unused for longest are dropped if there are too many, or if they
    need too much memory."""
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
    """Bytes of all states, roughly for encoders; what is in several states counts once."""
    models = {id(model) for own in _kept.values() for model in own.models.values()}
    tables = [
        table for own in _kept.values() for table in (*own.typed, *(text.table for text in own.uploaded.values()))
    ]
    different = {id(table): table for table in tables}.values()
    return MODEL_BYTES * len(models) + sum(int(table.memory_usage(deep=True).sum()) for table in different)
