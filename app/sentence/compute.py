"""Find a sentence's neighbours in each latent, generate text from it, and measure its style and each word's effect."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from app.core import inventory, pairs, rows
from app.core.state import BY_DIGEST, LISTED, Loaded, candidates, embed, embed_parts, examples
from bgt_core.contracts import SEMANTIC
from bgt_core.data.columns import LABEL, UNSPACED, parse_columns, primary
from bgt_core.data.properties import PROPERTIES, final_mark
from bgt_core.data.text import spans

DRAWN = 100  # number of random sentences whose cosines with all others give the level of random pairs
CLOSE = 1  # sentences are equally long if their word counts differ by at most this number
LONGEST = 3  # maximum number of words that together express a style property: "est-ce que tu", "I am late"
NO_WORD = "intonation"  # a question with the words of a statement; only intonation or the question mark shows it
USUAL = "inversion"  # the usual form of question, which is not counted as taken over from a style sentence
FORMS = {False: ("Vous avez raison.", "Tu as raison."), True: ("Comment allez-vous ?", "Comment vas-tu ?")}


def corpus(loaded: Loaded, langs: Sequence[str]) -> pd.DataFrame:
    """Return the sentences among which neighbours are searched: those whose vectors are stored, or else example
    sentences, or the app's first text if there are none. The columns are `length` and those of `rows.table`."""
    tables = [each if len(each := loaded.listed(lang)) or loaded.sentences else usual(lang) for lang in langs]
    table = pd.concat(tables, ignore_index=True)
    return table.assign(length=list(map(length, table["text"], table["lang"])))


@st.cache_resource(max_entries=16, show_spinner=False)
def usual(lang: str) -> pd.DataFrame:
    texts = list(examples(lang))
    first = next((text for text in inventory.read().texts.values() if lang in text.langs), None)
    if not texts and first:
        texts = inventory.sentences(first.alone(lang), LISTED)["text"].tolist()
    return rows.table(texts, lang, [""] * len(texts))


def length(text: str, lang: str) -> int:
    """Count the words of a text, or its characters in a language without spaces."""
    return sum(map(str.isalnum, text)) if primary(lang) in UNSPACED else rows.words(text)


def compared(loaded: Loaded, lang: str, latent: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the rows of `corpus` with which a sentence in `lang` is compared in a latent, and their vectors (N, D)."""
    table = corpus(loaded, loaded.langs if latent == SEMANTIC else [lang])
    return table, embed_parts(loaded, rows.parts(table), latent) if len(table) else np.empty((0, 0))


@st.cache_resource(max_entries=64, show_spinner=False, hash_funcs=BY_DIGEST)
def random_pairs(loaded: Loaded, lang: str, latent: str) -> np.ndarray:
    """Return the sorted cosines (P,) of `DRAWN` random sentences with all other sentences of `compared`; none for fewer
    than two sentences. All callers share the array: do not change it."""
    _, vectors = compared(loaded, lang, latent)
    if len(vectors) < 2:
        return np.empty(0)
    drawn = np.random.default_rng(0).permutation(len(vectors))[:DRAWN]
    return np.sort(loaded.similarity(vectors[drawn], vectors)[drawn[:, None] != np.arange(len(vectors))])


def nearest(loaded: Loaded, text: str, lang: str, latent: str) -> pd.DataFrame:
    """Return all sentences except the text itself, with their `cosine` to the text, the nearest first. In the semantic
    latent they are in any language, in the second latent in the language of the text."""
    table, vectors = compared(loaded, lang, latent)
    if table.empty:
        return table.assign(cosine=[])
    similarities = loaded.similarity(embed(loaded, [text], lang, latent), vectors)[0]
    order = np.argsort(-similarities, kind="stable")
    near = table.assign(cosine=similarities).iloc[order]
    return near[near["text"].str.casefold() != text.casefold()]


def alike(text: str, lang: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return whether each sentence ends in the same punctuation `mark` as the text, and has its `length` +- `CLOSE`."""
    same_length = (table["length"] - length(text, lang)).abs() <= CLOSE
    return pd.DataFrame({"mark": table["mark"] == rows.mark(text), "length": same_length & (table["lang"] == lang)})


def partner(loaded: Loaded, text: str, lang: str) -> tuple[str, str]:
    """Return a sentence for exchanging latents, and its language; if possible, in the other French form of address. If
    not, the shortest one in another form, such as du or Sie, or else with another closing mark; "" if there is none."""
    if lang in ("en", "fr") and "fr" in loaded.langs:
        return FORMS[text.endswith("?")][PROPERTIES["address"].value(text, lang) == "vous"], "fr"
    texts, own = usual(lang)["text"].tolist(), rows.wording(text, lang).values()
    short = rows.shortest(texts, lang, "?" if final_mark(text) == "?" else ".")
    forms = [other for value, other in short.items() if value not in own]
    unlike = (other for other in texts if rows.mark(other) != rows.mark(text))
    return min(forms or unlike, key=len, default=""), lang


@st.cache_data(max_entries=256, show_spinner=False, hash_funcs=BY_DIGEST)
def written(
    loaded: Loaded, meanings: Sequence[str], styles: Sequence[str], lang: str, meaning_lang: str = ""
) -> pd.DataFrame:
    """Generate a sentence in `lang` from each of N source sentences `meanings` and the style sentence at its index. The
    column `meaning` is the cosine between the semantic latents of the generated text and of the meaning; `style` is the
    cosine between the second latents of the generated text and of the style."""
    semantic = embed(loaded, meanings, meaning_lang or lang, SEMANTIC)
    second = embed(loaded, styles, lang, loaded.second_latent)
    best = [ranked[0] for ranked in candidates(loaded, semantic, second, lang)]
    lines = [(one.text, one.kept[SEMANTIC], one.kept[loaded.second_latent]) for one in best]
    return pd.DataFrame(lines, columns=["text", "meaning", "style"])


def effects(loaded: Loaded, text: str, lang: str, by_gradients: bool = False) -> pd.DataFrame:
    """Return how much each `word` and punctuation mark adds to each latent: the change (1 - cosine) if it is left out
    or, by gradients, its part of the cosine with the text's own latent."""
    table = pd.DataFrame({"word": [text[start:end] for start, end in spans(text, lang)]})
    for latent in loaded.latents:
        table[latent] = pairs.effects(loaded, text, lang, latent, embed(loaded, [text], lang, latent)[0], by_gradients)
    return table


def learnt_from(loaded: Loaded) -> str:
    """Return a noun for the rows of the model's training data, such as "translations"."""
    columns = parse_columns(loaded.info["arguments"].get("data.columns", loaded.langs))
    if LABEL in columns.values():
        return "labelled pairs of sentences"
    if len(loaded.langs) > 1:
        return "translations"
    return "paraphrases" if len(columns) > 1 else "sentences alone"


def title(name: str, value: str) -> str:
    """Return the title of the value of a style property, such as "vous" or "short form"."""
    return f"{value} form" if name == "contraction" else value


def showing(text: str, lang: str, values: Mapping[str, str]) -> set[str]:
    """Return the words of a text, in lower case, that express these style properties, alone or with adjacent words."""
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
    """Return the style properties that a generated text shares with its style sentence, but not with its source."""
    of_style, of_source = rows.wording(style, lang), rows.wording(source, source_lang)
    values = rows.wording(text, lang)
    return {
        name: value
        for name, value in values.items()
        if of_style.get(name) == value != USUAL and of_source.get(name) != value
    }
