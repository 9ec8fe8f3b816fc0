"""Sentences as tables: a row a sentence, with what can be counted on its surface."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pandas as pd

from bgt_core.data import grammar
from bgt_core.text import normalise

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
COLOURS = {**COUNTED, "lang": "Language"}
NUMBERS = ("words", "punctuation")  # the counted ones that are no category
MARKS = {".": "full stop", "!": "exclamation", "?": "question", "…": "ellipsis"}
MAX_OWN = 200


def name(lang: str) -> str:
    """A language's name, or its code where we have none."""
    return LANGUAGES.get(lang, lang)


def words(text: str) -> int:
    """Runs between spaces that hold a letter or a digit: French puts a space before its "?"."""
    return sum(any(map(str.isalnum, run)) for run in text.split())


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
