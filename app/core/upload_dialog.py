"""The dialog for the user's own sentences: the use of each column, the resulting text, and the buttons around it."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.core import checks, corpora, rows, state, uploads
from app.core.markdown import failing, frame, verbatim
from app.core.startup import ParallelText
from bgt_core.data.examples import LANGS
from bgt_core.data.textfile import no_number, number
from bgt_core.errors import DataError

GOLD, COLOUR, LEFT_OUT = "gold", "own", ""  # uses of a column; any other use is the language of its text
USES = {GOLD: "Scores people gave", COLOUR: "Colour by it", LEFT_OUT: "Leave out"}
MAX_CATEGORIES = 50  # maximum number of different cells in a column of categories
NO_TEXT = ("genre", "split")  # names of columns that do not contain sentences
PREVIEWED = 5


def choose_name(names: Sequence[str], key: str, **settings: Any) -> str | None:
    """Let the user choose one of these texts, or upload another; None if `names` is empty."""
    if st.session_state.get(key) not in names:  # the text has no pairs, or was removed
        st.session_state.pop(key, None)
    name = st.selectbox("Pairs", names, key=key, **settings) if names else None
    button(key)
    return name


def button(key: str = "data") -> None:
    """Show the button that opens the dialog; `key` is the select box in which the new text is then chosen."""
    st.button(
        "Upload", icon=":material/upload:", help="Your own sentences, translations or pairs", width="content",
        on_click=st.session_state.update, kwargs={"uploading": key},
    )  # fmt: skip
    if st.session_state.get("uploading"):
        dialog()


def remove_button(name: str, key: str, names: Sequence[str]) -> None:
    """Show a button that removes a text, if it is the user's; `key` is the select box of these names."""

    def remove() -> None:
        own = corpora.of_session().uploaded
        corpora.change(uploaded={other: text for other, text in own.items() if other != name})
        if others := [other for other in names if other != name]:
            st.session_state[key] = others[0]

    if name in corpora.of_session().uploaded:
        about = f"Remove “{verbatim(name)}”"
        st.button("Remove", icon=":material/delete:", help=about, on_click=remove, width="content")


def close() -> None:
    st.session_state["uploading"] = None


@st.dialog("Your own sentences", width="large", on_dismiss=close)
def dialog() -> None:
    """Ask for a file and the use of its columns, and show warnings; the file stays on this machine."""
    file = st.file_uploader(
        f"Sentences, translations, or pairs of sentences: one per line, up to {uploads.MAX_ROWS:,}, as "
        f"{', '.join(uploads.KINDS)} in UTF-8",
        max_upload_size=uploads.MAX_MEGABYTES,
        key="own_file",
    )
    if file is None:
        st.caption(
            "The file stays on this machine, in memory until the app is "
            "stopped: a reload of the page or its link opens it again."
        )
        return
    with failing():
        table = read(file.name, file.getvalue(), st.session_state.get(f"header {file.file_id}"))
        named = not table.columns.str.fullmatch(r"Column \d+").all()
        st.toggle("The first row holds the columns' names", named, key=f"header {file.file_id}")
        frame(table.head(PREVIEWED), f"The first {PREVIEWED} rows of the file")
        use(table, file.name, file.file_id)


@st.cache_data(max_entries=4, show_spinner="Reading the file")
def read(name: str, content: bytes, header: bool | None) -> pd.DataFrame:
    return uploads.cells(name, content, header)


def use(table: pd.DataFrame, file: str, file_id: str) -> None:
    """Ask for the use of each column, with a guess as the default, and offer the resulting text."""
    loaded = state.model()
    names = {lang: rows.language_name(lang) for lang in loaded.langs} | USES
    guessed = guessed_uses(table, tuple(loaded.langs))
    with st.container(horizontal=True):
        uses = [
            st.selectbox(verbatim(title), list(names), list(names).index(use), format_func=names.__getitem__,
                         key=f"use {file_id} {at}", width=190)
            for at, (title, use) in enumerate(zip(table, guessed, strict=True))
        ]  # fmt: skip
    name, text, left_out = text_of(file, table, uses, GOLD not in uses)  # repetitions with scores are kept
    for side, lang in enumerate(text.columns):
        for warning in checks.warnings(loaded, text.table[str(side)].tolist(), lang):
            st.warning(f"{rows.language_name(lang)}: {warning}")
    count = len(text.table)
    st.markdown(f"**{len(table):,} rows read, {count:,} used.** {left_out}")

    def keep() -> None:
        corpora.change(uploaded={**corpora.of_session().uploaded, name: text})
        st.session_state[st.session_state["uploading"]] = name
        close()

    if st.button(f"Use these {count:,} rows", type="primary", on_click=keep):
        st.rerun()


@st.cache_data(max_entries=8, show_spinner=False)
def guessed_uses(table: pd.DataFrame, langs: Sequence[str]) -> list[str]:
    """Guess for each column a language, `GOLD`, `COLOUR` or `LEFT_OUT`, from its name and cells."""
    uses = [guessed_use(title, table[title], langs) for title in table]
    languages = [use for use in uses if use in langs]
    if not languages:
        words = [at for at, title in enumerate(table) if not uploads.wordless(table[title])]
        for at in words[:1]:
            uses[at] = langs[0]
    pairs = len(languages) > 1 and languages[0] == languages[1]
    places = [at for at, use in enumerate(uses) if use in langs]
    for at in places[2:] if pairs else [at for at in places if uses[at] in uses[:at]]:
        uses[at] = LEFT_OUT
    if pairs and GOLD not in uses:
        scores = [at for at, use in enumerate(uses) if use == COLOUR and uploads.numbers(table.iloc[:, at])]
        if scores:
            uses[scores[0]] = GOLD
    return uses


def guessed_use(title: str, values: pd.Series, langs: Sequence[str]) -> str:
    name = title.lower()
    for lang in langs:
        if lang in (name, rows.LANG_OF_TITLE.get(rows.title_key(title))):
            return lang
    if name == "id":
        return LEFT_OUT
    wordless = uploads.wordless(values)
    misspelt = name in uploads.SCORES and wordless and values.str.contains(r"\d").any()  # `check` explains the spelling
    if uploads.numbers(values) or misspelt:
        return GOLD if name in uploads.SCORES else COLOUR
    if name in NO_TEXT or values.nunique() <= min(MAX_CATEGORIES, len(values) // 5):
        return COLOUR
    if wordless:
        return LEFT_OUT
    lang = checks.guess(values.tolist())
    return lang if lang in langs else next((each for each in langs if each not in LANGS), LEFT_OUT)


def text_of(name: str, table: pd.DataFrame, uses: Sequence[str], drop: bool) -> tuple[str, ParallelText, str]:
    """Return the text's name, the text, and a sentence on the rows that were left out; `drop` leaves out repetitions.

    Raises DataError for columns that do not form a text.
    """
    sides = [title for title, use in zip(table, uses, strict=True) if use not in USES]
    columns = tuple(use for use in uses if use not in USES)
    check(table, uses, columns)
    texts = table[sides].set_axis(map(str, range(len(sides))), axis=1)
    gold = [pd.to_numeric(table[title]) for title, use in zip(table, uses, strict=True) if use == GOLD]
    long = [texts[side].str.len() > uploads.MAX_CHARACTERS for side in texts]
    reasons = {
        "have an empty sentence": (texts == "").any(axis=1).to_numpy(),
        f"have a sentence of more than {uploads.MAX_CHARACTERS:,} characters": np.any(long, axis=0),
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
    own = {  # numbers, or categories in which an empty cell has a name
        f"{rows.OWN_COLUMN}{title}": pd.to_numeric(table[title]) if uploads.numbers(table[title])
        else table[title].replace("", rows.NONE)
        for title, use in zip(table, uses, strict=True) if use == COLOUR
    }  # fmt: skip
    whole = texts.assign(**({"gold": gold[0]} if gold else {}), **own)[kept].reset_index(drop=True)
    digest = hashlib.sha256(pd.util.hash_pandas_object(whole).to_numpy().tobytes())
    digest.update(repr((columns, list(whole))).encode())
    langs = tuple(dict.fromkeys(columns))
    text = ParallelText(langs, None, columns=columns, table=whole, digest=digest.hexdigest())
    return f"Yours: {name} ({'-'.join(columns)})", text, f"{words}." if words else ""


def check(table: pd.DataFrame, uses: Sequence[str], columns: Sequence[str]) -> None:
    """Raise DataError for columns that do not form a text."""
    if not columns:
        raise DataError("No column of sentences: choose the language of at least one.")
    times = Counter(columns)
    if (len(columns) > 2 and max(times.values()) > 1) or max(times.values()) > 2:
        raise DataError("Choose different languages, or the same language for exactly two columns: pairs of sentences.")
    if uses.count(GOLD) > 1:
        raise DataError("More than one column of scores: keep one, and colour by the others.")
    for title, use in zip(table, uses, strict=True):
        if use == GOLD and not uploads.numbers(table[title]):
            wrong = [cell for cell in table[title] if cell and (math.isnan(number(cell)) or not cell.isascii())]
            wrong.sort(key=lambda cell: "," in cell)  # report one without a comma, if any
            why = f"a cell {no_number(wrong[0])}" if wrong else "it holds no numbers"
            raise DataError(f"Column {title} can't hold scores: {why}. Choose another use.")
