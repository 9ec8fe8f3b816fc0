"""Controls that several pages use to choose options, numbers, sentences and models; warnings about typed text."""

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import pandas as pd
import streamlit as st

from app.core import inventory, rows, state, uploads
from app.core.address import BOUND, on_all_pages, write_on_arrival
from app.core.display import NOTES, verbatim
from bgt_core.contracts import VectorModel

COUNTS = [100, 300, 1_000, 5_000, 25_000, 100_000, 1_000_000]  # the numbers of rows that the user can choose from
SIDE_BY_SIDE = 4  # maximum number of languages shown as buttons; more are in a select box
CHARACTER, MARGINS = 6.6, 16  # in pixels: width of a character in a column's title, and of the two margins together
LINE, MOST_LINES = 21, 12  # height of a line in pixels; maximum number of lines in a table's cell
EXAMPLE = "You are late."  # the sentence that is shown until the user types another
BY_GRADIENTS = "Gradients"
METHODS = f"*{BY_GRADIENTS}* are integrated gradients (Sundararajan, Taly and Yan 2017): see “How to read this”."
T = TypeVar("T")


def choose_text(loaded: state.Loaded) -> inventory.ParallelText | None:
    """Let the user choose sentences in the model's languages. If the app has none, say so and return None."""
    if not (texts := loaded.texts()):
        of = "translations" if len(loaded.langs) > 1 else "sentences"
        st.info(NOTES["no-sentences"].format(loaded.languages, of), icon=":material/table_rows:")
        st.code(f"bgt app --data {','.join(loaded.langs)}=FILE.tsv", language="sh")
        uploads.button()
        return None
    name = next(iter(texts))
    if len(texts) > 1:
        name = st.selectbox("Sentences", list(texts), key="data", width=220, **BOUND)
    uploads.button()
    uploads.remove_button(name, "data", list(texts))
    return texts[name]


def chosen_models(table: pd.DataFrame, loaded: state.Loaded, usual: Sequence[str]) -> list[str]:
    """Let the user choose the models whose results of probes are shown. The choice is reset to `usual` when `usual`
    changes, or when another model is chosen in the sidebar."""
    key, models = "only_model", sorted(table["model"].unique(), key=lambda model: (model != loaded.title, model))
    changed = st.session_state.get(f"{key}_of") not in (None, (loaded.title, usual))
    if changed or not {key} & {*st.session_state, *st.query_params}:
        st.session_state[key] = list(usual)
    st.session_state[f"{key}_of"] = loaded.title, usual
    if lost := [model for model in st.query_params.get_all(key) if model and model not in models]:
        st.warning(f"The link asks for results of {verbatim(', '.join(lost))}, which this app does not have.")
    return st.multiselect("Model", models, key=key, placeholder="All", wrap=True, **BOUND) or models


def model_title(loaded: state.Loaded) -> None:
    """If two models are open, show the model's title above its results."""
    if state.second():
        st.markdown(f"**{verbatim(loaded.title)}**")


def choice(title: str, options: Sequence[T], key: str, default: T | None = None, **settings: Any) -> T:
    """Show the options side by side, and let the user choose an option. The page's URL keeps the choice."""
    default = options[0] if default is None else default
    return st.segmented_control(title, options, default=default, required=True, key=key, **settings, **BOUND) or default


def by_gradients(models: Sequence[state.Loaded], key: str = "words_by") -> bool:
    """If all models compute latents from token embeddings in PyTorch, let the user choose to measure by gradients."""
    known = all(model.bgt and not isinstance(model.bgt.model, VectorModel) for model in models)
    return known and choice("Measured by", ["Leaving words out", BY_GRADIENTS], key, help=METHODS) == BY_GRADIENTS


def language(title: str, langs: Sequence[str], key: str, default: str | None = None) -> str:
    """Let the user choose a language; without `default`, the first is preselected. The page's URL keeps the choice."""
    if len(langs) > SIDE_BY_SIDE:
        at = langs.index(default) if default else 0
        return st.selectbox(title, langs, at, format_func=rows.language_name, key=key, width=200, **BOUND)
    return choice(title, langs, key, default, format_func=rows.language_name)


def listed(place: Any, loaded: state.Loaded, title: str, key: str, lang: str, first: str = "") -> str:
    """Let the user choose a sentence whose vector is stored, at a `place` on the page; `first` is preselected."""
    options = loaded.listed(lang)["text"].tolist()
    if st.session_state.get(key) not in options:
        st.session_state.pop(key, None)
    return place.selectbox(title, options, options.index(first) if first in options else 0, key=key, **BOUND) or ""


def sentence(
    loaded: state.Loaded, title: str, keys: tuple[str, str], usual: str, hint: Callable[[str], str], example: str = ""
) -> tuple[str, str]:
    """Ask for a sentence and its language in two widgets with these `keys`. Both keep their values on all pages. While
    the field is empty, return the sentence `hint(language)`. The widgets start with `example` and `usual`."""
    key, lang_key = keys
    changed = st.session_state.get(f"usual {key}") != (title, usual) and not st.session_state.get(key)
    if (changed and lang_key not in st.query_params) or st.session_state.get(lang_key) not in loaded.langs:
        st.session_state.pop(lang_key, None)
    st.session_state[f"usual {key}"] = title, usual
    above = st.container()
    with on_all_pages():
        lang = language(f"Language of {title[0].lower()}{title[1:]}", loaded.langs, lang_key, usual)
        shown = hint(lang)
        if loaded.sentences:
            return listed(above, loaded, title, key, lang, shown), lang
        text = above.text_area(title, example, key=key, height=68, placeholder=shown or None, **BOUND) or ""
    name = rows.language_name
    write_on_arrival({key: text, lang_key: name(lang)}, {key: example, lang_key: name(usual)})
    text = bounded(text.strip(), uploads.MAX_CHARACTERS, title)
    warn(loaded, [text], lang, title, lang_key)
    return text or shown, lang


def keep(texts: Mapping[str, str], lang: str, source_lang: str, place: str) -> None:
    """Let the user keep sentences with a click, as rows among their own sentences, which are stars on the maps. `texts`
    maps generated sentences to their sources, which are kept with them. `place` is different for each use on a page."""
    tables = inventory.of_session().typed
    known = {row for table in tables for row in zip(table["text"], table["lang"], strict=True)}
    key, label, full = f"keep {place}", "Keep as a star on the maps", sum(map(len, tables)) >= rows.MAX_OWN

    def add() -> None:
        text, st.session_state[key] = st.session_state[key], None
        for row in dict.fromkeys([(texts[text], source_lang), (text, lang)]):
            if row not in known:
                inventory.add(*row)

    if new := [text for text in texts if text and (text, lang) not in known]:
        alone, limit = len(texts) == 1, f"With its source. Up to {rows.MAX_OWN}."
        st.pills(
            label, new, key=key, on_change=add, disabled=full, help=limit,
            format_func=(lambda _: label) if alone else str, label_visibility="collapsed" if alone else "visible",
        )  # fmt: skip
    else:
        st.caption("Kept as a star on the maps")


def count(title: str, options: Sequence[int], key: str, first: int = 0, width: int | Literal["stretch"] = 120) -> int:
    """Let the user choose a number; the default is `options[first]`. The page's URL keeps the choice."""
    return st.selectbox(title, options, first, format_func="{:,}".format, key=key, width=width, **BOUND)


def warn(loaded: state.Loaded, texts: Sequence[str], lang: str, title: str = "", key: str = "") -> None:
    """Warn if `texts` are not in `lang`, or have characters that the model can't read. If most texts are in another
    language, show a button that sets the language control with this `key` to that language."""
    if warning := state.warning(loaded, texts, lang):
        st.warning(f"{title}: {warning}" if title else warning, icon=":material/translate:")
    if key and (other := rows.other_language(texts, lang)) in loaded.langs:
        label = f"{title or 'It'} is {rows.language_name(other)}"
        st.button(label, key=f"{key} {other}", on_click=st.session_state.update, args=({key: other},))


def bounded(text: str, most: int, title: str) -> str:
    """Return the first `most` characters of a text. If the text is longer, show a warning that it was cut."""
    if len(text) > most:
        st.warning(f"{title} is too long: only its first {most:,} characters are used.")
    return text[:most]


def width(title: str) -> int:
    """Return the width in pixels that a table's column needs for its title."""
    return math.ceil(CHARACTER * len(title) + MARGINS)


def row_height(sentences: pd.DataFrame, width: int) -> int | None:
    """Return the height in pixels of a table's rows for sentences in columns of this width; None for one line."""
    wide = [[unicodedata.east_asian_width(char) in "WF" for char in text] for text in sentences.to_numpy().ravel()]
    longest = max((len(each) + sum(each) for each in wide), default=0)
    lines = math.ceil(1.2 * CHARACTER * longest / (width - MARGINS))  # 1.2: lines that break at spaces are not full
    return LINE * min(lines, MOST_LINES) if lines > 1 else None
