"""One sentence: its neighbours in each latent, text generated from its latents, the effect of each word, and its
wording as detected by rules (form of address, contraction, form of a question)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from app.core import corpora, rows, startup
from app.core.state import BY_DIGEST, Loaded, embed
from bgt_core.contracts import SEMANTIC
from bgt_core.data.columns import LABEL, UNSPACED, parse_columns, primary
from bgt_core.data.examples import LANGS, example_sentences
from bgt_core.data.properties import PROPERTIES, final_mark
from bgt_core.data.words import spans, without
from bgt_core.generation.options import DEFAULT_SEARCH, Search

COMPARED = 1_000  # number of sentences used for a language without example sentences
NEAREST = 5
GREEDY = replace(DEFAULT_SEARCH, size=1)
SEARCHES = (GREEDY, DEFAULT_SEARCH)  # the first is fast; its result is replaced by that of the second
CLOSE = 1  # maximum difference in words of sentences that count as equally long
LONGEST = 3  # maximum number of words that show a property together: "est-ce que tu", "I am late"
NO_WORD = "intonation"  # a question that is not marked by a word
USUAL = "inversion"  # the form of a question in any style


@st.cache_resource(max_entries=8, show_spinner=False)
def corpus(langs: tuple[str, ...]) -> pd.DataFrame:
    """Return sentences to compare with, in each of these languages: the examples, or the first of the app's texts with
    the language. Columns as `rows.table`, and `length`. The table is shared: do not change it."""
    parts = []
    for lang in langs:
        texts = [sentence for (sentence,) in example_sentences([lang])] if lang in LANGS else []
        first = next((text for text in startup.read().texts.values() if lang in text.langs), None)
        if lang not in LANGS and first:
            texts = corpora.sentences(first.alone(lang), COMPARED)["text"].tolist()
        texts = list(dict.fromkeys(texts))
        lengths = [length(text, lang) for text in texts]
        parts.append(rows.table(texts, lang, [""] * len(texts)).assign(length=lengths))
    return pd.concat(parts, ignore_index=True)


def length(text: str, lang: str) -> int:
    """Count the words, or the characters in a language without spaces."""
    return sum(map(str.isalnum, text)) if primary(lang) in UNSPACED else rows.words(text)


def vectors(loaded: Loaded, table: pd.DataFrame, latent: str) -> np.ndarray:
    """Embed the rows of a table sorted by language in a latent: (N, D)."""
    parts = table.groupby("lang", sort=False)
    return np.concatenate([embed(loaded, part["text"].tolist(), lang, latent) for lang, part in parts])


def searched(loaded: Loaded, lang: str, latent: str) -> pd.DataFrame:
    """Return the sentences to compare with: of all languages for the semantic latent, else of its own language."""
    return corpus(tuple(loaded.langs) if latent == SEMANTIC else (lang,))


def nearest(loaded: Loaded, text: str, lang: str, latent: str, count: int | None = NEAREST) -> pd.DataFrame:
    """Return the sentences nearest to a text, without the text itself, with their `cosine`: in all languages for the
    semantic latent, in its own language for the second one. If `count` is None, return all."""
    table = searched(loaded, lang, latent)
    if table.empty:
        return table.assign(cosine=[])
    similarities = loaded.similarity(embed(loaded, [text], lang, latent), vectors(loaded, table, latent))[0]
    order = np.argsort(-similarities, kind="stable")
    near = table.assign(cosine=similarities).iloc[order]
    return near[near["text"].str.casefold() != text.casefold()].iloc[:count]


def alike(text: str, lang: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return whether each sentence of a table has the same closing `mark` as the text, and the same `length` within a
    word."""
    same_length = (table["length"] - length(text, lang)).abs() <= CLOSE
    return pd.DataFrame({"mark": table["mark"] == rows.mark(text), "length": same_length & (table["lang"] == lang)})


FORMS = ("Comment allez-vous ?", "Comment vas-tu ?")  # the same question in both forms of address


def partner(loaded: Loaded, text: str, lang: str) -> tuple[str, str]:
    """Return a sentence to exchange latents with, and its language: if the model knows French, a French sentence in the
    other form of address for English and French texts; "" if none fits."""
    if lang in ("en", "fr") and "fr" in loaded.langs:
        return FORMS[PROPERTIES["address"].value(text, lang) == "vous"], "fr"
    return fitting(loaded, text, lang), lang


def fitting(loaded: Loaded, text: str, lang: str) -> str:
    """Return the sentence nearest in style that has another closing mark; "" if none does."""
    near = nearest(loaded, text, lang, loaded.second_latent, None)
    return next(iter(near.loc[~alike(text, lang, near)["mark"], "text"]), "")


def exchanged(
    loaded: Loaded, texts: Sequence[str], others: Sequence[str], lang: str, search: Search, other_lang: str = ""
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Generate each text in the style and language of its partner, and vice versa; both tables are like those of
    `written`."""
    if other_lang not in ("", lang):
        forth = written(loaded, texts, others, other_lang, search, lang)
        return forth, written(loaded, others, texts, lang, search, other_lang)
    both = written(loaded, [*texts, *others], [*others, *texts], lang, search)
    return both.iloc[: len(texts)], both.iloc[len(texts) :].reset_index(drop=True)


@st.cache_data(max_entries=256, show_spinner=False, hash_funcs=BY_DIGEST)
def written(
    loaded: Loaded,
    meanings: Sequence[str],
    styles: Sequence[str],
    lang: str,
    search: Search = DEFAULT_SEARCH,
    meaning_lang: str = "",
) -> pd.DataFrame:
    """Generate a sentence in `lang` from each of N meanings and the style in the same row; meanings are in
    `meaning_lang`, by default the same language.

    Columns: `text`; `meaning`, its cosine to the meaning in the semantic latent; `style`, its cosine to the style in
    the second latent.
    """
    from app.core import writing

    semantic = embed(loaded, meanings, meaning_lang or lang, SEMANTIC)
    second = embed(loaded, styles, lang, loaded.second_latent)
    texts = writing.write(loaded, semantic, second, lang, search)
    similarity = loaded.similarity_pairwise
    meaning = similarity(embed(loaded, texts, lang, SEMANTIC), semantic)
    style = similarity(embed(loaded, texts, lang, loaded.second_latent), second)
    return pd.DataFrame({"text": texts, "meaning": meaning, "style": style})


def left_out(loaded: Loaded, text: str, lang: str) -> pd.DataFrame:
    """Return how far each latent moves if a word or mark `word` is left out: 1 - cosine, one column per latent."""
    columns = {}
    for latent in loaded.latents:
        whole, parts = np.split(embed(loaded, [text, *without(text, lang)], lang, latent), [1])
        columns[latent] = 1 - loaded.similarity(whole, parts)[0]
    return pd.DataFrame({"word": [text[start:end] for start, end in spans(text, lang)], **columns})


def learnt_from(loaded: Loaded) -> str:
    """Describe the rows of the model's training data."""
    columns = parse_columns(loaded.info["arguments"].get("data.columns", loaded.langs))
    if LABEL in columns.values():
        return "labelled pairs of sentences"
    if len(loaded.langs) > 1:
        return "translations"
    return "paraphrases" if len(columns) > 1 else "sentences alone"


def wording(text: str, lang: str) -> dict[str, str]:
    """Return the value of each of `rows.STYLES` that a sentence has, as in {"address": "vous"}."""
    values = {name: PROPERTIES[name].value(text, lang) for name in rows.STYLES}
    return {name: value for name, value in values.items() if value}


def title(name: str, value: str) -> str:
    """Return a value in words: "vous", "short form"."""
    return f"{value} form" if name == "contraction" else value


def showing(text: str, lang: str, values: Mapping[str, str]) -> set[str]:
    """Return the lower-cased words of a text that express one of these property values, alone or together with
    their neighbours."""
    shown = set[str]()
    words = [] if primary(lang) in UNSPACED else text.split()
    for name, value in values.items():
        if value == NO_WORD:
            continue
        for length in range(1, LONGEST + 1):
            windows = [words[start : start + length] for start in range(len(words) - length + 1)]
            alone = (PROPERTIES[name].value(f"{' '.join(window)} {final_mark(text)}", lang) for window in windows)
            if shortest := [window for window, of in zip(windows, alone, strict=True) if of == value]:
                shown.update(word.casefold().strip(".,;:!?") for window in shortest for word in window)
                break
    return shown


def taken_over(text: str, lang: str, style: str, source: str, source_lang: str) -> dict[str, str]:
    """Return the values of a generated text that are those of its style sentence, and not those of its source."""
    of_style, of_source = wording(style, lang), wording(source, source_lang)
    values = wording(text, lang)
    return {
        name: value
        for name, value in values.items()
        if of_style.get(name) == value != USUAL and of_source.get(name) != value
    }
