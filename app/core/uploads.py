"""The user's own sentences: the dialog that uploads a file, asks for the use of each column, and reads the cells. Files
may come from spreadsheet programs of any country: their encoding, separator and quotes are detected."""

import codecs
import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.core import inventory, rows, state
from app.core.display import NOTES, failing, frame, verbatim
from app.core.rows import LANG_OF_TITLE, title_key
from bgt_core.data.examples import LANGS
from bgt_core.data.text import normalise
from bgt_core.data.textfile import NOT_TEXT, no_number, number
from bgt_core.errors import DataError

GOLD, COLOUR, LEFT_OUT = "gold", "own", ""  # uses of a column; the use of a column of sentences is its language
USES = {GOLD: "Scores people gave", COLOUR: "Colour by it", LEFT_OUT: "Leave out"}
MAX_CATEGORIES = 50  # maximum number of different values in a column of categories
NO_TEXT = ("genre", "split")  # names of columns that do not contain sentences
PREVIEWED = 5  # number of rows in the preview of a file
KINDS = ["csv", "tsv", "txt"]
MAX_MEGABYTES = 20
MAX_ROWS, MAX_COLUMNS = 50_000, 100
MAX_CHARACTERS = 2_000  # maximum length of a sentence in characters
SCORES = ("gold", "score", "label", "similarity", "relatedness")  # names of columns with human scores
TITLES = {  # titles that show that the first row of a table is a header
    *SCORES, "id", "text", "sentence", "sentence1", "sentence2", "source", "target", "left", "right", "genre",
}  # fmt: skip
MARKS = {  # byte order mark -> encoding; UTF-32 comes first, because its marks begin like those of UTF-16
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
SEPARATORS = "\t;|,"  # in a tie, the first is chosen; the comma is last, as it may be a decimal comma in each row
SAMPLE = 1_000  # maximum number of rows from which the separator is detected
EVEN = 0.5  # the right separator gives at least this share of rows the same number of columns
ADVICE = "Save it as CSV (UTF-8)"
csv.field_size_limit(2**31 - 1)  # csv's limit of characters per cell is lifted; only the file's size is limited


def choose_name(names: Sequence[str], key: str, **settings: Any) -> str | None:
    """Let the user choose one of these texts or upload another text; return None if there is no text."""
    if (lost := st.session_state.get(key)) not in names:  # for example, the user removed the chosen text
        st.session_state.pop(key, None)
        if own := inventory.of_session().uploaded.keys() & {lost}:
            st.toast(f"“{verbatim(*own)}” has no pairs for this page, so the page shows other ones.", duration="long")
    name = st.selectbox("Pairs", names, key=key, **settings) if names else None
    button(key)
    return name


def button(key: str = "data") -> None:
    """Show the button that opens the upload dialog. The select box `key` then shows the uploaded text."""
    st.button(
        "Upload", icon=":material/upload:", help="Your own sentences, translations or pairs", width="content",
        on_click=st.session_state.update, kwargs={"uploading": key},
    )  # fmt: skip
    if st.session_state.get("uploading"):
        dialog()


def remove_button(name: str, key: str, names: Sequence[str]) -> None:
    """Show a button that removes a text if the user uploaded it. The select box with this key lists `names`."""

    def remove() -> None:
        own = inventory.of_session().uploaded
        inventory.change(uploaded={other: text for other, text in own.items() if other != name})
        if others := [other for other in names if other != name]:
            st.session_state[key] = others[0]

    if name in inventory.of_session().uploaded:
        about = f"Remove “{verbatim(name)}”"
        st.button("Remove", icon=":material/delete:", help=about, on_click=remove, width="content")


@st.dialog("Your own sentences", width="large", on_dismiss=lambda: st.session_state.update(uploading=None))
def dialog() -> None:
    """Ask for a file and for the use of each of its columns, and show warnings."""
    label = NOTES["file"].format(MAX_ROWS, ", ".join(KINDS))
    file = st.file_uploader(label, max_upload_size=MAX_MEGABYTES, key="own_file")
    if file is None:
        st.caption(NOTES["upload"])
        return
    with failing():
        table = cells(file.name, file.getvalue(), st.session_state.get(f"header {file.file_id}"))
        titled = not table.columns.str.fullmatch(r"Column \d+").all()
        st.toggle("The first row holds the columns' names", titled, key=f"header {file.file_id}")
        frame(table.head(PREVIEWED), f"The first {PREVIEWED} rows of the file")
        use(table, file.name, file.file_id)


def use(table: pd.DataFrame, file: str, file_id: str) -> None:
    """Ask for the use of each column of a table, with a guess as the default, and offer the resulting text."""
    loaded = state.model()
    names = {lang: rows.language_name(lang) for lang in loaded.langs} | USES
    guessed = guessed_uses(table, tuple(loaded.langs))
    with st.container(horizontal=True):
        uses = [
            st.selectbox(verbatim(title), list(names), list(names).index(use), format_func=names.__getitem__,
                         key=f"use {file_id} {at}", width=190)
            for at, (title, use) in enumerate(zip(table, guessed, strict=True))
        ]  # fmt: skip
    name, text, left_out = text_of(file, table, uses, GOLD not in uses)  # keep repeated pairs if they have scores
    for side, lang in enumerate(text.columns):
        if warning := state.warning(loaded, text.table[str(side)].tolist(), lang):
            st.warning(f"{rows.language_name(lang)}: {warning}")
    count = len(text.table)
    pairs = "Not pairs: “Pairs” and “Your encoder” need two columns of sentences." * (len(text.columns) == 1)
    st.markdown(f"**Rows read: {len(table):,}; used: {count:,}.** {left_out} {pairs}")

    def keep() -> None:
        inventory.change(uploaded={**inventory.of_session().uploaded, name: text})
        st.session_state.update({st.session_state["uploading"]: name, "uploading": None})

    if st.button(f"Use {f'these {count:,} rows' if count > 1 else 'this row'}", type="primary", on_click=keep):
        st.rerun()


@st.cache_data(max_entries=8, show_spinner=False)
def guessed_uses(table: pd.DataFrame, langs: Sequence[str]) -> list[str]:
    """Guess the use of each column from its title and cells: a language, `GOLD`, `COLOUR` or `LEFT_OUT`."""
    uses = [guessed_use(title, table[title], langs) for title in table]
    languages = [use for use in uses if use in langs]
    if not languages:
        words = [at for at, title in enumerate(table) if not wordless(table[title])]
        for at in words[:1]:
            uses[at] = langs[0]
    pairs = len(languages) > 1 and languages[0] == languages[1]
    places = [at for at, use in enumerate(uses) if use in langs]
    for at in places[2:] if pairs else [at for at in places if uses[at] in uses[:at]]:
        uses[at] = LEFT_OUT
    if pairs and GOLD not in uses:
        scores = [at for at, use in enumerate(uses) if use == COLOUR and numbers(table.iloc[:, at])]
        if scores:
            uses[scores[0]] = GOLD
    return uses


def guessed_use(title: str, values: pd.Series, langs: Sequence[str]) -> str:
    name = title.lower()
    for lang in langs:
        if lang in (name, LANG_OF_TITLE.get(title_key(title))):
            return lang
    if name == "id":
        return LEFT_OUT
    no_words = wordless(values)
    misspelt = name in SCORES and no_words and values.str.contains(r"\d").any()  # `check` names the bad number
    if numbers(values) or misspelt:
        return GOLD if name in SCORES else COLOUR
    if name in NO_TEXT or values.nunique() <= min(MAX_CATEGORIES, len(values) // 5):
        return COLOUR
    if no_words:
        return LEFT_OUT
    lang = rows.guess(values.tolist())
    return lang if lang in langs else next((each for each in langs if each not in LANGS), LEFT_OUT)


def text_of(name: str, table: pd.DataFrame, uses: Sequence[str], drop: bool) -> tuple[str, inventory.ParallelText, str]:
    """Make a text from an uploaded table. Return its name, the text, and a sentence about the rows left out and why. If
    `drop` is true, repeated rows are left out. Raises DataError if the columns do not form a text."""
    sides = [title for title, use in zip(table, uses, strict=True) if use not in USES]
    columns = tuple(use for use in uses if use not in USES)
    check(table, uses, columns)
    texts = table[sides].set_axis(map(str, range(len(sides))), axis=1)
    gold = [pd.to_numeric(table[title]) for title, use in zip(table, uses, strict=True) if use == GOLD]
    long = [texts[side].str.len() > MAX_CHARACTERS for side in texts]
    reasons = {
        "have an empty sentence": (texts == "").any(axis=1).to_numpy(),
        f"have a sentence of more than {MAX_CHARACTERS:,} characters": np.any(long, axis=0),
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
    own = {  # columns for colours: numbers, or categories in which empty cells become "none"
        f"{rows.OWN_COLUMN}{title}": pd.to_numeric(table[title]) if numbers(table[title])
        else table[title].replace("", rows.NONE)
        for title, use in zip(table, uses, strict=True) if use == COLOUR
    }  # fmt: skip
    whole = texts.assign(**({"gold": gold[0]} if gold else {}), **own)[kept].reset_index(drop=True)
    text = inventory.uploaded_text(whole, columns)
    return f"Yours: {name} ({'-'.join(columns)})", text, f"{words}." if words else ""


def check(table: pd.DataFrame, uses: Sequence[str], columns: Sequence[str]) -> None:
    """Raise DataError if columns with these uses do not form a text."""
    if not columns:
        raise DataError("No column of sentences: choose the language of at least one.")
    times = Counter(columns)
    if (len(columns) > 2 and max(times.values()) > 1) or max(times.values()) > 2:
        raise DataError("Choose different languages, or the same language for exactly two columns: pairs of sentences.")
    if uses.count(GOLD) > 1:
        raise DataError("More than one column of scores: keep one, and colour by the others.")
    for title, use in zip(table, uses, strict=True):
        if use == GOLD and not numbers(table[title]):
            wrong = [cell for cell in table[title] if cell and (math.isnan(number(cell)) or not cell.isascii())]
            wrong.sort(key=lambda cell: "," in cell)  # a cell without a comma is the clearer example in the error
            why = f"a cell {no_number(wrong[0])}" if wrong else "it has no numbers"
            raise DataError(f"Column {title} can't be used as scores: {why}. Choose another use.")


@st.cache_data(max_entries=4, show_spinner="Reading the file")
def cells(name: str, content: bytes, header: bool | None = None) -> pd.DataFrame:
    """Read the columns of a file. Each cell is a string that `normalise` has cleaned; blank rows are dropped. `header`
    says whether the first row is a header; None means to guess. Raises DataError if the file is not a table."""
    kind = name.rpartition(".")[2].lower()
    if kind not in KINDS:
        raise DataError(f"{name}: not a table of text. {ADVICE}; .{', .'.join(KINDS[1:])} are read, too.")
    lines = rows_of(name, decoded(name, content), "," if kind == "csv" else "\t", MAX_ROWS + 2)
    if lines and len(lines[0]) > MAX_COLUMNS:
        few = f"more than {MAX_COLUMNS}; remove columns that you don't need."
        raise DataError(f"{name}: {len(lines[0]):,} columns, {few}")
    columns = from_rows(name, lines, header)
    table = pd.DataFrame({title: list(map(normalise, column)) for title, column in columns.items()}, dtype=object)
    table = table[(table != "").any(axis=1)].reset_index(drop=True)
    if table.empty:
        raise DataError(f"{name}: no rows; expected one sentence, translation or pair of sentences per line.")
    if len(table) > MAX_ROWS:
        raise DataError(f"{name}: more than {MAX_ROWS:,} rows; give the first {MAX_ROWS:,}, or use the command line.")
    return table


def from_rows(name: str, lines: list[list[str]], header: bool | None) -> dict[str, list[str]]:
    """Return the columns of a table by title. Raises DataError if rows differ in their number of cells."""
    for row, line in enumerate(lines, 1):
        if len(line) != len(lines[0]):
            width = f"{len(line)} column{'s' * (len(line) != 1)}"
            way_out = ": put cells that contain a comma or semicolon in quotes, or save one sentence per line as .txt"
            raise DataError(
                f"{name}: row {row} has {width}, row 1 has {len(lines[0])}; all rows must have the same number"
                f"{way_out * name.lower().endswith('.csv')}."
            )
    if not lines:
        return {}
    titles = [""] * len(lines[0])
    if is_header(lines) if header is None else header:
        titles, lines = [normalise(title) for title in lines[0]], lines[1:]
    names: list[str] = []  # unique column names
    for at, title in enumerate(titles, 1):
        unnumbered = title or f"Column {at}"
        names.append(unnumbered if unnumbered not in names else f"{unnumbered} ({at})")
    columns = zip(titles, names, map(with_points, zip(*lines, strict=True)), strict=False)
    # Excel adds columns without a title and text; leave them out
    return {name: column for title, name, column in columns if title or any(map(str.strip, column))}


def with_points(cells: Sequence[str]) -> list[str]:
    """Replace decimal commas by points if all cells are numbers. Commas that separate thousands stay."""
    commas = all(re.fullmatch(r"\s*([-+]?\d+(,\d+)?(e[-+]?\d+)?)?\s*", cell, re.IGNORECASE) for cell in cells)
    decimal = commas and any(re.search(r",(?!\d{3}\s*$)|^\s*[-+]?0,", cell) for cell in cells)
    return [cell.replace(",", ".") for cell in cells] if decimal else list(cells)


def is_header(lines: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row is a header: it has one of `TITLES`, a language, or a word above numbers."""
    first, below = lines[0], lines[1:]
    if any(normalise(cell).lower() in TITLES or title_key(normalise(cell)) in LANG_OF_TITLE for cell in first):
        return True
    return any(
        not (wordless([title]) and re.search(r"\w", title)) and numbers(column)
        for title, column in zip(first, zip(*below, strict=True), strict=False)
    )


def wordless(values: Iterable[str]) -> bool:
    """Return whether the cells contain only numbers in any notation, dates and punctuation, and are not all empty."""
    filled = [value for value in values if value]
    spelt = re.compile(r"[\W\d_]*(((?<=\d)e[-+]?\d+|nan|inf|infinity|n/?a|none|null)[\W\d_]*)?", re.IGNORECASE)
    return bool(filled) and all(map(spelt.fullmatch, filled))


def numbers(values: Iterable[str]) -> bool:
    """Return whether each cell is a finite number or empty, and at least one is a number."""
    filled = pd.Series([value for value in values if value], dtype="string")
    parsed = pd.to_numeric(filled, errors="coerce")  # as in `text_of`: 1_000 is not a number
    return bool(len(filled)) and bool(np.isfinite(parsed.astype(float)).all())


def decoded(name: str, content: bytes) -> str:
    """Decode a file in UTF-8, or in UTF-16 or UTF-32 with a byte order mark. Every line ends in a line feed. Raises
    DataError that names the kind of the file, or the line that is not text."""
    start = content.removeprefix(codecs.BOM_UTF8).lstrip()
    if what := next((what for mark, what in NOT_TEXT.items() if start.startswith(mark)), ""):
        raise DataError(f"{name}: {what.partition(';')[0]}, not text. {ADVICE}.")
    encoding = next((encoding for mark, encoding in MARKS.items() if content.startswith(mark)), "utf-8-sig")
    try:
        text = content.decode(encoding)
        at = text.find("\0")
    except UnicodeDecodeError as error:
        at = error.start
    if at >= 0:
        line, perhaps = content[:at].count(b"\n") + 1, ", perhaps not text" * (b"\0" in content)
        raise DataError(f"{name}:{line}: not UTF-8{perhaps}. {ADVICE}.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def rows_of(name: str, text: str, usual: str, most: int) -> list[list[str]]:
    """Split a table into rows, and return the first `most` rows that are not blank. Excel may name the separator on
    the first line (sep=;). It is detected if there is no such line, or if another program has extended it (sep=,;)."""
    if declared := re.match(r'"?sep=([^\w\s"]|\t)"?([,;|\t]*) *\n', text, re.IGNORECASE):
        text = text[declared.end() :]
    text = re.sub(r"\n{2,}", "\n", text)  # reading millions of blank lines takes a minute
    separator = declared[1] if declared and not declared[2] else separator_of(text, usual)
    try:
        return list(islice(split(text, separator), most))
    except csv.Error as error:
        raise DataError(f"{name}: not CSV ({error}); put cells that contain a comma or a quote in quotes.") from None


def separator_of(text: str, usual: str) -> str:
    """Return the separator that gives most rows the same number of columns; `usual` if none fits. A comma or semicolon
    that is not `usual` fits only if few stand before a space; a comma also needs a line ending in two quoted cells."""
    fits = {}
    commas = usual == "," or re.search(r'",\s*"(?:[^"]|"")*"$', text, re.MULTILINE)
    for separator in SEPARATORS if commas else SEPARATORS.replace(",", ""):
        try:
            widths = list(map(len, islice(split(text, separator), SAMPLE)))
        except csv.Error:
            continue
        ((width, count),) = Counter(widths).most_common(1) or [(1, 0)]
        prose = len(re.findall(f'{separator} [^"]', text)) / (1 + text.count(separator)) if separator in ",;" else 0
        share = count / len(widths) if widths else 0
        sure = prose < 0.5 or (usual == "," and share == 1)
        if width > 1 and (separator == usual or (share >= EVEN and sure and len(widths) > (usual != ","))):
            fits[separator] = share, -prose
    return max(fits, key=fits.__getitem__, default=usual)


def split(text: str, separator: str) -> Iterator[list[str]]:
    """Split a table into rows that are not blank. Quotes may enclose cells; with tabs, only if `quoted` is true."""
    if separator == "\t" and not quoted(text):
        return (line.split("\t") for line in text.split("\n") if line.strip())
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    return (row for row in lines if any(map(str.strip, row)))


def quoted(text: str) -> bool:
    """Return whether quotes in tab-separated text enclose cells instead of belonging to sentences: all cells except
    numbers are in quotes, or a cell in quotes contains doubled quotes."""
    lines = [line.split("\t") for line in text.split("\n", SAMPLE)[:SAMPLE] if line.strip()]
    cells = [cell for line in lines for cell in line if len(line) > 1 and not re.fullmatch(r"[\s\d.,+-]*", cell)]
    enclosed = [cell for cell in cells if re.fullmatch(r'"(?:[^"]|"")*"', cell)]
    return bool(cells) and (len(enclosed) == len(cells) or any('""' in cell[1:-1] for cell in enclosed))
