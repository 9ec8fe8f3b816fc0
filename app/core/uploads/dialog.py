"""The dialog for the user's own sentences, and the buttons that open it and remove a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app.core import checks, corpora, own_texts, rows, state
from app.core.markdown import problem, verbatim
from app.core.startup import ParallelText
from app.core.uploads import columns, formats
from bgt_core.errors import BgtError

PREVIEWED = 5


def choose_pairs(langs: Sequence[str], key: str) -> tuple[str, pd.DataFrame, tuple[str, str]] | None:
    """A file of pairs that was uploaded: its name; columns left, right and, if there are scores, gold; the languages of
    both sides. None until a file is uploaded."""
    uploaded = {name: text for name, text in corpora.readable(langs).items() if text.table is not None}
    texts = {name: text for name, text in uploaded.items() if len(text.sides) == 2}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = choose_name(list(texts), key, width=400)
        if name is None:
            for other in uploaded:
                st.info(f"{verbatim(other)} has single sentences; pairs need two columns.")
            return None
        remove_button(name, key, list(texts))
    text = texts[name]
    left, right = text.columns
    pairs = text.table.rename(columns=dict(zip(text.sides, ("left", "right"), strict=True)))
    return name, pairs[pairs.columns.intersection(["left", "right", "gold"])], (left, right)


def choose_name(names: Sequence[str], key: str, **settings: Any) -> str | None:
    """Let the user choose one of these texts, or upload another; None if there are none."""
    if st.session_state.get(key) not in names:  # the text has no pairs, or was removed
        st.session_state.pop(key, None)
    name = st.selectbox("Pairs", names, key=key, **settings) if names else None
    button(key)
    return name


def button(key: str = "data") -> None:
    """Open the dialog; `key` is the select box in which the new text is then chosen."""
    st.button(
        "Upload",
        icon=":material/upload:",
        help="Your own sentences, translations or pairs",
        on_click=show,
        args=(key,),
        width="content",
    )
    if st.session_state.get("uploading"):
        dialog()


def remove_button(name: str, key: str, names: Sequence[str]) -> None:
    """Remove a text, if it is one of the user's; `key` is the select box in which it is chosen, with these names."""
    if name in own_texts.of_session().uploaded:
        others = [other for other in names if other != name]
        st.button(
            "Remove",
            icon=":material/delete:",
            help=f"Remove “{verbatim(name)}”",
            on_click=remove,
            args=(name, key, others),
            width="content",
        )


def remove(name: str, key: str, others: Sequence[str]) -> None:
    """Remove the text from the choices, and choose the first of the others."""
    uploaded = own_texts.of_session().uploaded
    own_texts.change(uploaded={other: text for other, text in uploaded.items() if other != name})
    if others:
        st.session_state[key] = others[0]


def show(key: str) -> None:
    st.session_state["uploading"] = key


def close() -> None:
    st.session_state["uploading"] = None


@st.dialog("Your own sentences", width="large", on_dismiss=close)
def dialog() -> None:
    """Ask for a file and the use of its columns, and show warnings; nothing leaves this machine."""
    loaded = state.model()
    file = st.file_uploader(
        f"Sentences, translations, or pairs of sentences: one per line, up to {formats.MAX_ROWS:,}, as "
        f"{', '.join(formats.KINDS)} in UTF-8",
        max_upload_size=formats.MAX_MEGABYTES,
        key="own_file",
    )
    if file is None:
        st.caption(
            "The file stays on this machine, in memory until the app is "
            "stopped: a reload of the page or its link opens it again."
        )
        return
    try:
        table = read(file.name, file.getvalue(), st.session_state.get(f"header {file.file_id}"))
        if not file.name.lower().endswith((".parquet", ".jsonl")):
            named = not table.columns.str.fullmatch(r"Column \d+").all()
            st.toggle("The first row holds the columns' names", named, key=f"header {file.file_id}")
        st.dataframe(table.head(PREVIEWED), hide_index=True, alt=f"The first {PREVIEWED} rows of the file")
        uses = choose_uses(table, loaded.langs, file.file_id)
        drop = st.toggle(
            "Drop rows whose sentences repeat an earlier row's", columns.GOLD not in uses, key="drop_repeated"
        )
        name, text, left_out = columns.text_of(file.name, table, uses, drop)
    except BgtError as error:
        problem(error)
        return
    for side, lang in enumerate(text.columns):
        for warning in checks.warnings(loaded, text.table[str(side)].tolist(), lang):
            st.warning(f"{rows.language_name(lang)}: {warning}")
    count = len(text.table)
    st.markdown(f"**{len(table):,} rows read, {count:,} used.** {left_out}")
    if st.button(f"Use these {count:,} rows", type="primary", on_click=keep, args=(name, text)):
        st.rerun()


def keep(name: str, text: ParallelText) -> None:
    """Add the text to the choices, and choose it."""
    own_texts.change(uploaded={**own_texts.of_session().uploaded, name: text})
    st.session_state[st.session_state["uploading"]] = name
    close()


@st.cache_data(max_entries=4, show_spinner="Reading the file")
def read(name: str, content: bytes, header: bool | None) -> pd.DataFrame:
    return formats.cells(name, content, header)


def choose_uses(table: pd.DataFrame, langs: Sequence[str], file: str) -> list[str]:
    """Let the user choose the use of each column; the default is the guess."""
    options = [*langs, *columns.USES]
    names = {lang: rows.language_name(lang) for lang in langs} | columns.USES
    with st.container(horizontal=True):
        return [
            st.selectbox(
                verbatim(title),
                options,
                options.index(use),
                format_func=names.__getitem__,
                key=f"use {file} {at}",
                width=190,
            )
            for at, (title, use) in enumerate(zip(table, columns.guessed_uses(table, tuple(langs)), strict=True))
        ]
