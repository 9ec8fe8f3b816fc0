"""A user's own sentences: what the columns of a file hold, the text that comes of them, and the dialog for it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from app import checks, own_texts, rows, startup, state, uploads
from app.startup import ParallelText
from app.verbatim import problem, verbatim
from bgt_core.data.examples import LANGS
from bgt_core.errors import BgtError, DataError

GOLD, COLOUR, LEFT_OUT = "gold", "own", ""  # what a column is used as; or it is text, and this is its language
USES = {GOLD: "Scores people gave", COLOUR: "Colour by it", LEFT_OUT: "Leave out"}
MAX_CATEGORIES = 50  # different cells of a column that is no text
NO_TEXT = ("genre", "split")  # names of columns that hold no sentences
PREVIEWED = 5


def texts_in(langs: Sequence[str]) -> dict[str, ParallelText]:
    """The texts that a model of these languages can read by their names: the user's own, then the app's."""
    own = startup.texts_in(own_texts.of_session().uploaded, langs)
    return own | startup.read().texts_in(langs)


def choose_pairs(langs: Sequence[str], key: str) -> tuple[str, pd.DataFrame, tuple[str, str]] | None:
    """A file of pairs that was uploaded: its name; columns left, right and, if there are scores, gold; the languages of
    both sides. None until there is one."""
    texts = {name: text for name, text in texts_in(langs).items() if text.table is not None and len(text.sides) == 2}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("Pairs", list(texts), key=key, width=400) if texts else None
        button()
        if name is None:
            return None
        remove_button(name, key, list(texts))
    text = texts[name]
    left, right = text.columns
    pairs = text.table.rename(columns=dict(zip(text.sides, ("left", "right"), strict=True)))
    return name, pairs[pairs.columns.intersection(["left", "right", "gold"])], (left, right)


def button() -> None:
    """Opens the dialog."""
    st.button(
        "Upload",
        icon=":material/upload:",
        help="Your own sentences, translations or pairs",
        on_click=show,
        width="content",
    )
    if st.session_state.get("uploading"):
        dialog()


def remove_button(name: str, key: str, names: Sequence[str]) -> None:
    """Takes a text back, if it is one of the user's; the box of that key, in which it is chosen, has these names."""
    if name in own_texts.of_session().uploaded:
        others = [other for other in names if other != name]
        st.button(
            "Remove",
            icon=":material/delete:",
            help=f"Take back “{verbatim(name)}”",
            on_click=remove,
            args=(name, key, others),
            width="content",
        )


def remove(name: str, key: str, others: Sequence[str]) -> None:
    """The text is none of those to choose from any more, and the first of the others is chosen."""
    own_texts.remove_uploaded(name)
    if others:
        st.session_state[key] = others[0]


def show() -> None:
    st.session_state["uploading"] = True


def close() -> None:
    st.session_state["uploading"] = False


@st.dialog("Your own sentences", width="large", on_dismiss=close)
def dialog() -> None:
    """A file, what its columns hold, and what there is to say about it; nothing leaves this machine."""
    loaded = state.model()
    file = st.file_uploader(
        f"Sentences, translations, or pairs of sentences: one a line, up to {uploads.MAX_ROWS:,}, in UTF-8",
        uploads.KINDS,
        max_upload_size=uploads.MAX_MEGABYTES,
        key="own_file",
    )
    if file is None:
        st.caption(
            f"A file that ends in {', '.join(uploads.KINDS)}. It stays on this machine, in memory until the app is "
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
        drop = st.toggle("Drop rows whose sentences repeat an earlier row's", GOLD not in uses, key="drop_repeated")
        name, text, left_out = made(file.name, table, uses, drop)
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
    """From now on the text is one of those to choose from, and it is chosen."""
    own_texts.add_uploaded(name, text)
    st.session_state["data"] = name
    close()


@st.cache_data(max_entries=4, show_spinner="Reading the file")
def read(name: str, content: bytes, header: bool | None) -> pd.DataFrame:
    return uploads.cells(name, content, header)


def choose_uses(table: pd.DataFrame, langs: Sequence[str], file: str) -> list[str]:
    """What the user says that each column holds, at first what it looks like."""
    options = [*langs, *USES]
    names = {lang: rows.language_name(lang) for lang in langs} | USES
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
            for at, (title, use) in enumerate(zip(table, guessed_uses(table, tuple(langs)), strict=True))
        ]


@st.cache_data(max_entries=8, show_spinner=False)
def guessed_uses(table: pd.DataFrame, langs: Sequence[str]) -> list[str]:
    """For each column a language, `GOLD`, `COLOUR` or `LEFT_OUT`, by its name and by what is in it."""
    uses = [guessed_use(title, table[title], langs) for title in table]
    languages = [use for use in uses if use in langs]
    if not languages:
        words = [at for at, title in enumerate(table) if not uploads.numbers(table[title])]
        uses[words[0] if words else 0] = langs[0]
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
        if name in (lang, rows.language_name(lang).lower()):
            return lang
    if name == "id":
        return LEFT_OUT
    if uploads.numbers(values):
        return GOLD if name in uploads.SCORES else COLOUR
    if name in NO_TEXT or values.nunique() <= min(MAX_CATEGORIES, len(values) // 5):
        return COLOUR
    lang = checks.guess(values.tolist())
    if lang in langs:
        return lang
    without_examples = [lang for lang in langs if lang not in LANGS]
    return without_examples[0] if without_examples else LEFT_OUT


def made(name: str, table: pd.DataFrame, uses: Sequence[str], drop: bool) -> tuple[str, ParallelText, str]:
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
        f"have a sentence of more than {uploads.MAX_CHARACTERS:,} characters": np.any(
            [texts[side].str.len() > uploads.MAX_CHARACTERS for side in texts], axis=0
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
    if not kept.any():
        raise DataError("No row is left that has a sentence in each column; choose other columns.")
    scores = {"gold": gold[0]} if gold else {}
    whole = texts.assign(**scores, **colours(table, uses))[kept].reset_index(drop=True)
    digest = hashlib.sha256(pd.util.hash_pandas_object(whole).to_numpy().tobytes())
    digest.update(repr((columns, list(whole))).encode())
    langs = tuple(dict.fromkeys(columns))
    text = ParallelText(langs, None, columns=columns, table=whole, digest=digest.hexdigest())
    words = [f"{count:,} {reason}" for count, reason in left_out if count]
    return f"Yours: {name} ({'-'.join(columns)})", text, f"{'; '.join(words)}." if words else ""


def check(table: pd.DataFrame, uses: Sequence[str], columns: Sequence[str]) -> None:
    if not columns:
        raise DataError("No column of sentences: choose the language of at least one.")
    times = Counter(columns)
    if (len(columns) > 2 and max(times.values()) > 1) or max(times.values()) > 2:
        raise DataError("Choose each language once, or one language for exactly two columns: pairs of sentences.")
    if uses.count(GOLD) > 1:
        raise DataError("More than one column of scores: choose one, and colour by the others.")
    for title, use in zip(table, uses, strict=True):
        if use == GOLD and not uploads.numbers(table[title]):
            raise DataError(f"Column {title} holds no numbers, so no scores; choose another use.")


def colours(table: pd.DataFrame, uses: Sequence[str]) -> dict[str, pd.Series]:
    """The columns to colour by, as "own:NAME": numbers, or categories with a word for an empty cell."""
    titles = [title for title, use in zip(table, uses, strict=True) if use == COLOUR]
    return {
        f"own:{title}": pd.to_numeric(table[title])
        if uploads.numbers(table[title])
        else table[title].replace("", rows.NONE)
        for title in titles
    }
