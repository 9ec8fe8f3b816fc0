"""Group the points of a map into topics, in two levels, and name each topic by words that distinguish its sentences.

These are content words for the semantic latent, and function words and values of style properties for other latents,
where content words do not distinguish groups. A topic without such words is named after the sentence in its middle."""

import re
import textwrap
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from app.core import rows
from bgt_core.data.columns import primary
from bgt_core.data.properties import APOSTROPHES
from bgt_core.evaluation.facts import FUNCTION_WORDS, NAME, OTHER, classed_words

LEVELS, LEAST = (6, 24), 8  # maximum number of topics at each level; minimum mean number of their points
GROUPED, COUNTED = 5_000, 20_000  # maximum number of points to cluster, and of sentences whose words are counted
FEW, RATIO = 3, 2  # a word can name a topic if at least 3 of its sentences have it, at twice the rate of the others
SHARE = 0.1  # minimum share of a topic's sentences that have a word of its name
NAMED_BY, QUOTED = 3, 30  # maximum number of words in a name; maximum length of a sentence as a name, in characters
FREQUENT = 0.05  # without a list of function words, words in more than this share of the sentences are left out
WORD, PLURAL = re.compile(r"[^\W\d_](?:['’]?[^\W\d_])+"), re.compile(r"(?<=...)s$")  # "I'll" is one word
CLEARER = {"short": "contracted", "full": "not contracted"}  # values of a style property -> clearer words
Topics = tuple[list[dict], np.ndarray, np.ndarray]  # the result of the function `topics`


@st.cache_data(max_entries=32, show_spinner=False)
def topics(content: str, xy: np.ndarray, by_style: bool, _table: pd.DataFrame) -> Topics:
    """Find the topics of N sentences, whose hash is `content`, with coordinates (N, 2 or 3). Return the coarse and then
    the finer topics, and the indices in this list of each row's coarse and finer topic, (N,) each."""
    from sklearn.cluster import BisectingKMeans

    langs, given = _table["lang"].unique().tolist(), ~_table["own"].to_numpy()
    lang = next((lang for lang in langs if FUNCTION_WORDS.get(primary(lang))), langs[0])
    named = np.flatnonzero(given & (_table["lang"] == lang).to_numpy())
    named = named[:: 1 + len(named) // COUNTED]
    documents = (styles if by_style else contents)(_table.iloc[named], lang)
    sample = xy[given][:: 1 + given.sum() // GROUPED]
    means = (BisectingKMeans(min(most, max(1, len(sample) // LEAST)), random_state=0).fit(sample) for most in LEVELS)
    # the groups are nested, because the splits into fewer are the first of those into more
    levels = [np.unique(each.predict(xy), return_inverse=True)[1] for each in means]
    parents = np.full(levels[0].max() + 1, -1), levels[0][np.unique(levels[1], return_index=True)[1]]
    found: list[dict] = []
    for groups, above in zip(levels, parents, strict=True):
        for at, words in enumerate(distinguishing(documents, groups[named], above)):
            inside, here = np.flatnonzero(groups == at), np.flatnonzero(groups[named] == at)
            away = ((xy[inside] - xy[inside].mean(0)) ** 2).sum(1) * np.where(np.isin(inside, named), 1, 99)
            middle = int(inside[away.argmin()])
            row, saying = _table.iloc[middle], sum(not documents[each].isdisjoint(words[:NAMED_BY]) for each in here)
            sentence = f"“{textwrap.shorten(row['text'], QUOTED, placeholder='…')}”"
            name = ", ".join(words[:NAMED_BY]) if saying > SHARE * len(here) else sentence
            name += f" ({at + 1})" * bool(above[at] < 0 and name in {topic["name"] for topic in found})
            topic = {"key": f"{row['id']}.{int(above[at] >= 0)}", "name": name, "parent": int(above[at])}
            found.append({**topic, "middle": middle, "saying": saying, "counted": len(here)})
    return found, levels[0], (levels[0].max() + 1 + levels[1]).astype(np.uint8)


def distinguishing(documents: Sequence[set[str]], groups: np.ndarray, parents: np.ndarray) -> list[list[str]]:
    """Return the words that distinguish each group of documents from all others, and from those with the same parent.
    If x of its n documents and y of m others have a word, it weighs x log(x / n : (y + 1) / (m + 1)), like TF-IDF."""
    from sklearn.preprocessing import MultiLabelBinarizer

    coder = MultiLabelBinarizer(sparse_output=True)
    has = coder.fit_transform(documents)  # (N, words)
    member = (groups[:, None] == np.arange(len(parents))).astype(float)
    here, sizes = (has.T @ member).T, member.sum(0)[:, None]  # (groups, words), (groups, 1)
    compared = (np.ones((len(parents),) * 2), parents[:, None] == parents)  # (groups, groups)
    rates = [(others @ here - here + 1) / (others @ sizes - sizes + 1) for others in compared]
    ratio = here / np.maximum(sizes, 1) / np.maximum(*rates)
    weight = np.where((here >= FEW) & (ratio >= RATIO), here * np.log(np.maximum(ratio, 1)), 0)
    return [[coder.classes_[at] for at in np.argsort(-line, kind="stable") if line[at]] for line in weight]


def contents(table: pd.DataFrame, lang: str) -> list[set[str]]:
    """Return the content words of each sentence, as they are usually written, in the singular if that also occurs."""
    found, forms, common = [], Counter[str](), Counter[str]()  # `forms` counts how words are written inside sentences
    for text in table["text"].str.translate(APOSTROPHES):
        parts = [each for each in classed_words(text, lang) if each[2] in (NAME, OTHER) and each[1] - each[0] > 1]
        forms.update(text[start:end] for start, end, _ in parts if start)
        found.append({text[start:end].lower() for start, end, _ in parts})
        common.update(found[-1])
    usual = {form.lower(): form for form, _ in reversed(forms.most_common())}
    most = len(table) * (1 if FUNCTION_WORDS.get(primary(lang)) else FREQUENT)
    single = {word: one if (one := PLURAL.sub("", word)) in common else word for word in common}
    return [{usual.get(single[word], single[word]) for word in words if common[word] <= most} for words in found]


def styles(table: pd.DataFrame, lang: str) -> list[set[str]]:
    """Return the function words, in quotes, the closing mark and the style properties of each sentence."""
    functions = FUNCTION_WORDS.get(primary(lang), frozenset())
    texts = table["text"].str.lower().str.translate(APOSTROPHES)
    found = [{f"“{word}”" for word in WORD.findall(text) if functions & {*word.split("'")}} for text in texts]
    for name in ("mark", *(name for name in rows.STYLES if name in table)):
        for features, value in zip(found, table[name], strict=True):
            features |= {CLEARER.get(value, value)} - {rows.NONE, rows.OTHER}
            features.discard(f"“{value.lower()}”")  # "vous" is a form of address and a word
    return found
