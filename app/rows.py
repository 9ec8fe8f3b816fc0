"""Sentences as tables: a row a sentence, with what can be counted on its surface."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import pandas as pd

from bgt_core import grammar
from bgt_core.data.text import normalise
from probes.tasks import TASKS

LANGUAGES = {
    "ar": "Arabic",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "tr": "Turkish",
    "zh": "Chinese",
}
COUNTED = {"words": "Length in words", "punctuation": "Punctuation marks", "mark": "Final mark"}
PROBED = {"length": "Length, as probed", "punct-first": "First mark, as probed"}  # labels of probing tasks
CLUSTER = "cluster"
COLOURS = {**COUNTED, "lang": "Language", **PROBED, CLUSTER: "Cluster of meaning"}
NUMBERS = ("words", "punctuation")  # the counted ones that are no category
MARKS = {".": "full stop", "!": "exclamation", "?": "question", "…": "ellipsis"}
MAX_OWN = 200
CATEGORIES = 6  # at most: colours that can be told apart
OTHER, NONE = "other", "none"


def name(lang: str) -> str:
    """A language's name, or its code where we have none."""
    return LANGUAGES.get(lang, lang)


def words(text: str) -> int:
    """Runs between spaces that hold a letter or a digit: French puts a space before its "?"."""
    return sum(any(map(str.isalnum, run)) for run in text.split())


def overlap(one: str, other: str) -> float:
    """The share of two sentences' words that both have, whatever their case (Jaccard); 0 where neither has one."""
    left, right = (set(re.findall(r"\w+", text.lower())) for text in (one, other))
    return len(left & right) / max(1, len(left | right))


def punctuation(text: str) -> int:
    """Punctuation characters; an ellipsis of three dots counts as one."""
    return sum(unicodedata.category(char).startswith("P") for char in text.replace("...", "…"))


def mark(text: str) -> str:
    """The name of the sentence's final mark: "full stop", ..., "other" or "none"."""
    last = text.replace("...", "…")[-1:]
    return MARKS.get(last, "none" if not last or last.isalnum() else "other")


def counts(text: str) -> dict[str, int | str]:
    """All that is counted of a sentence, as `COUNTED` names it."""
    return {"words": words(text), "punctuation": punctuation(text), "mark": mark(text)}


def table(texts: Sequence[str], lang: str, translations: Sequence[str] | None, start: int = 0) -> pd.DataFrame:
    """N sentences of one language -> N rows, numbered from `start`; a user's own have no translations."""
    numbers = range(start, start + len(texts))
    own = translations is None
    return pd.DataFrame(
        {
            "id": [f"{'own' if own else lang}{number}" for number in numbers],
            "pair": list(numbers),
            "lang": lang,
            "text": list(texts),
            "translation": list(translations or [""] * len(texts)),
            "words": [words(text) for text in texts],
            "punctuation": [punctuation(text) for text in texts],
            "mark": [mark(text) for text in texts],
            "own": own,
        }
    )


def pairs(texts: Sequence[Sequence[str]], langs: Sequence[str]) -> pd.DataFrame:
    """N translations, a text a language each -> the rows of the first language, then those of the second."""
    left, right = ([pair[side] for pair in texts] for side in (0, 1))
    both = [table(left, langs[0], right), table(right, langs[1], left)]
    return pd.concat(both, ignore_index=True)


def built_in(count: int) -> pd.DataFrame:
    """`count` translation pairs of our grammar."""
    langs = ("en", "fr")
    return pairs([[pair.texts[lang] for lang in langs] for pair in grammar.pairs(count)], langs)


def labelled(texts: Sequence[str], task: str) -> pd.Categorical:
    """The labels of a probing task; past six the rarer ones are "other", and sentences it skips have "none"."""
    items = TASKS[task].items(texts, "en")  # these tasks read every language alike
    known = dict(zip(items.sentences, items.labels, strict=True))
    labels = pd.Series([known.get(text, NONE) for text in texts])
    found = labels[labels != NONE].value_counts().index.tolist()
    if len(found) > CATEGORIES:
        found = [*found[: CATEGORIES - 1], OTHER]
    labels = labels.where(labels.isin([*found, NONE]), OTHER)
    return pd.Categorical(labels, [*sorted(found, key=in_order), NONE])


def in_order(label: str) -> tuple[bool, int, str]:
    """Sorts "4-6" before "10-12", and "other" last."""
    first = label.partition("-")[0]
    return label == OTHER, int(first) if first.isdecimal() else 0, label


def matching(rows: pd.DataFrame, wanted: str) -> list[str]:
    """Ids of the rows whose sentence contains a text, whatever its case."""
    return rows.loc[rows["text"].str.contains(wanted, case=False, regex=False), "id"].tolist()


def typed(lines: str, lang: str, taken: int) -> tuple[pd.DataFrame, int]:
    """A user's sentences, one a line -> their rows, and how many lines were over the limit.

    Blank lines and repetitions are dropped; `taken` rows were typed before.
    """
    texts = list(dict.fromkeys(filter(None, map(normalise, lines.splitlines()))))
    kept = texts[: max(0, MAX_OWN - taken)]
    return table(kept, lang, None, taken), len(texts) - len(kept)
