"""One sentence: what is near it in each latent, what is written from its latents, and what each word does to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from app import rows, startup
from app.state import Loaded, content, embed
from bgt_core.contracts import SEMANTIC
from bgt_core.data.columns import split_langs
from bgt_core.data.examples import LANGS, example_sentences
from bgt_core.data.text import normalise

COMPARED = 1_000  # sentences of a language that we have no examples of
NEAREST = 5
SEPARABLE = 0.05  # p-value, after Holm, below which one latent knows more of something than the other
OFFERED = 20  # sentences to exchange latents with
POOR = 0.8  # cosine of a rewritten sentence to its source below which it mostly says something else
CLOSE = 1  # words more or less that count as the same length
UNSPACED = ("ja", "zh")  # languages without spaces: lengths are in characters, and words are runs of one script
WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
RUN = re.compile(r"[\u3040-\u309f]+|[\u30a0-\u30ff]+|[\u3400-\u9fff々]+|\w+?(?=[\u3040-\u9fff]|\b)|[^\w\s]")


@st.cache_resource(max_entries=8, show_spinner=False)
def corpus(langs: tuple[str, ...]) -> pd.DataFrame:
    """Sentences to compare with in each of these languages: all the examples, or the first text in it that the app was
    started with. Columns as `rows.table`, and `length`; never changed, as it is shared."""
    parts = []
    for lang in langs:
        texts = list(dict.fromkeys(sentences_of(lang)))
        lengths = [length(text, lang) for text in texts]
        parts.append(rows.table(texts, lang, [""] * len(texts)).assign(length=lengths))
    return pd.concat(parts, ignore_index=True)


def sentences_of(lang: str) -> list[str]:
    if lang in LANGS:
        return [sentence for (sentence,) in example_sentences([lang])]
    from app import spaces

    text = next((text for text in startup.read().texts.values() if lang in text.langs), None)
    return spaces.sentences(text.alone(lang), COMPARED)["text"].tolist() if text else []


def length(text: str, lang: str) -> int:
    """In words; in characters where a language puts no spaces."""
    return sum(map(str.isalnum, text)) if lang.partition("-")[0] in UNSPACED else rows.words(text)


def vectors(loaded: Loaded, table: pd.DataFrame, latent: str) -> np.ndarray:
    """A latent of each row of a table that is sorted by language: (N, D)."""
    parts = table.groupby("lang", sort=False)
    return np.concatenate([embed(loaded, part["text"].tolist(), lang, latent) for lang, part in parts])


def nearest(loaded: Loaded, text: str, lang: str, latent: str, count: int | None = NEAREST) -> pd.DataFrame:
    """The sentences nearest to one, the nearest first, itself left out, with their `cosine`: by meaning in all
    languages, in the second latent in its own. None counts all."""
    table = corpus(tuple(loaded.langs) if latent == SEMANTIC else (lang,))
    if table.empty:
        return table.assign(cosine=[])
    similarities = loaded.encoder.similarity(embed(loaded, [text], lang, latent), vectors(loaded, table, latent))[0]
    order = np.argsort(-similarities, kind="stable")
    near = table.assign(cosine=similarities).iloc[order]
    return near[near["text"].str.casefold() != text.casefold()].iloc[:count]


def alike(text: str, lang: str, table: pd.DataFrame) -> pd.DataFrame:
    """What each sentence of a table shares with one, row by row: its final `mark`; its `length`, within a word."""
    same_length = (table["length"] - length(text, lang)).abs() <= CLOSE
    return pd.DataFrame({"mark": table["mark"] == rows.mark(text), "length": same_length & (table["lang"] == lang)})


def exchanged(loaded: Loaded, text: str, lang: str) -> pd.DataFrame:
    """Sentences whose style is near, but which end in another mark, and what is written when they exchange latents.

    Columns: `other`; those of `written` for the text's meaning in the other's style, and, after `back_`, for the
    reverse. First those where both outputs keep most, are no copies of what their meaning is from, and say no word
    again.
    """
    near = nearest(loaded, text, lang, loaded.second_latent, None)
    others = near.loc[~alike(text, lang, near)["mark"], "text"].head(OFFERED).tolist()
    forth = written(loaded, [text] * len(others), others, lang)
    back = written(loaded, others, [text] * len(others), lang)
    kept = sum(
        one[["meaning", "style"]].min(axis=1) * (one["text"].str.casefold() != pd.Series(meant).str.casefold())
        - one["text"].map(repetitions)
        for one, meant in ((forth, [text] * len(others)), (back, others))
    )
    table = pd.concat([pd.DataFrame({"other": others}), forth, back.add_prefix("back_")], axis=1)
    return table.loc[np.argsort(-kept, kind="stable")]


def repetitions(text: str) -> int:
    """How many words it says again."""
    words = re.findall(r"\w+", text.casefold())
    return len(words) - len(set(words))


def written(loaded: Loaded, meanings: Sequence[str], styles: Sequence[str], lang: str) -> pd.DataFrame:
    """A sentence with the meaning of each of N and the style of the one beside it, all of one language.

    Columns: `text`, and the cosines `meaning`, to the one in the semantic latent, and `style`, to the other in the
    second one.
    """
    key = content([*meanings, *styles])
    return _written(loaded.digest, key, lang, tuple(meanings), tuple(styles), loaded)


@st.cache_data(max_entries=256, show_spinner=False)
def _written(
    digest: str, key: str, lang: str, _meanings: tuple[str, ...], _styles: tuple[str, ...], _loaded: Loaded
) -> pd.DataFrame:
    from app import writing

    semantic = embed(_loaded, _meanings, lang, SEMANTIC)
    second = embed(_loaded, _styles, lang, _loaded.second_latent)
    texts = writing.write(_loaded, semantic, second, lang)
    similarity = _loaded.encoder.similarity_pairwise
    return pd.DataFrame(
        {
            "text": texts,
            "meaning": similarity(embed(_loaded, texts, lang, SEMANTIC), semantic),
            "style": similarity(embed(_loaded, texts, lang, _loaded.second_latent), second),
        }
    )


def second_knows(loaded: Loaded) -> list[str]:
    """The probing tasks that the second latent does better than the semantic one in most languages in which they were
    run, by the results that are stored with the model."""
    return _second_knows(loaded.digest, Path(loaded.info["folder"]) / startup.PROBES_FOLDER) if loaded.info else []


@st.cache_data(max_entries=8, show_spinner=False)
def _second_knows(digest: str, folder: Path) -> list[str]:
    from app import probe_results  # slow to import, and not needed for the first words of the page

    gaps = probe_results.gathered([folder] if folder.is_dir() else [], []).gaps
    one_language = gaps["lang"].map(lambda lang: len(split_langs(lang)) == 1).astype(bool)
    gaps = gaps[(gaps["first"] == SEMANTIC) & one_language]
    better = (gaps["points"] < 0) & (gaps["adjusted_p"] < SEPARABLE)
    share = better.groupby(gaps["task"], sort=False).mean()
    return share.index[share > 0.5].tolist()


def units(text: str, lang: str) -> list[tuple[int, int]]:
    """Where its words and marks begin and end; in Japanese and Chinese, which put no spaces, runs of one script."""
    return [match.span() for match in (RUN if lang in UNSPACED else WORD).finditer(text)]


def without(text: str, lang: str) -> list[str]:
    """The text without each of its words and marks in turn."""
    return [normalise(text[:start] + text[end:]) for start, end in units(text, lang)]


def left_out(loaded: Loaded, text: str, lang: str) -> pd.DataFrame:
    """How far each latent moves when a word or mark is left out: 1 - cosine, a column per latent; `word` names it."""
    columns = {}
    for latent in loaded.latents:
        whole, parts = np.split(embed(loaded, [text, *without(text, lang)], lang, latent), [1])
        columns[latent] = 1 - loaded.encoder.similarity(whole, parts)[0]
    return pd.DataFrame({"word": [text[start:end] for start, end in units(text, lang)], **columns})


def in_every_language(loaded: Loaded, text: str, lang: str) -> pd.DataFrame:
    """Its meaning written in each language of the model that has examples: `lang`, `text`, and the cosine of what was
    written to the sentence in the semantic latent."""
    return _in_every_language(loaded.digest, text, lang, loaded)


@st.cache_data(max_entries=64, show_spinner=False)
def _in_every_language(digest: str, text: str, lang: str, _loaded: Loaded) -> pd.DataFrame:
    from app import writing

    semantic = embed(_loaded, [text], lang, SEMANTIC)
    table = []
    for target in (code for code in _loaded.langs if code == lang or {code, lang} <= set(LANGS)):
        there = writing.in_language(_loaded, text, lang, target)
        cosine = _loaded.encoder.similarity_pairwise(semantic, embed(_loaded, [there], target, SEMANTIC))[0]
        table.append((target, there, float(cosine)))
    return pd.DataFrame(table, columns=["lang", "text", "cosine"])
