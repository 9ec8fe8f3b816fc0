"""The words and marks of a sentence, and the sentence without each of them.

The names in capitals are parts of regular expressions, for all that tells words from marks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import groupby

from bgt_core.data.columns import UNSPACED
from bgt_core.data.languages import primary
from bgt_core.data.text import INVISIBLE, normalise


def _characters(categories: set[str]) -> str:
    """The ranges of characters of these categories, without spaces, for the brackets of a regular expression."""
    codes = [*range(0x1EA00), *range(0xE0000, 0xE0200)]  # all assigned marks and controls are in these ranges
    kinds = map(unicodedata.category, map(chr, codes))
    chosen = [code for code, kind in zip(codes, kinds, strict=True) if kind in categories and not chr(code).isspace()]
    runs = (list(run) for _, run in groupby(enumerate(chosen), lambda place: place[1] - place[0]))
    return "".join(f"{chr(run[0][1])}-{chr(run[-1][1])}" for run in runs)


COMBINING = _characters({"Mn", "Mc", "Me"})  # accents, vowel signs, points: they belong to the character before them
HIDDEN = _characters(INVISIBLE)  # joiners, directions, controls: neither words nor marks, and encoders never see them
WITHIN = COMBINING + HIDDEN
LETTERS = rf"\w[\w{WITHIN}]*(?:['’‐‑·׳״-]\w[\w{WITHIN}]*)*"  # a word with its apostrophes and hyphens
_SIGN = rf"[^\w\s{HIDDEN}][{WITHIN}\U0001f3fb-\U0001f3ff]*"  # with its variation or skin tone
MARK = rf"[\U0001f1e6-\U0001f1ff]{{2}}|{_SIGN}(?:(?<=\u200d){_SIGN})*"  # a flag, a mark, or joined emojis
WORD = re.compile(f"{LETTERS}|{MARK}")
_SCRIPTS = ("\u3040-\u309f", "\u30a0-\u30ff", "\u3400-\u9fff々")  # hiragana, katakana, Chinese characters
RUN = re.compile(
    "|".join(f"[{script}][{script}{WITHIN}]*" for script in _SCRIPTS)
    + rf"|\w(?:(?![\u3040-\u9fff])[\w{WITHIN}])*|{MARK}"
)


def spans(text: str, lang: str) -> list[tuple[int, int]]:
    """The spans of words and marks; in languages without spaces, as Japanese and Thai, runs of one script."""
    return [match.span() for match in (RUN if primary(lang) in UNSPACED else WORD).finditer(text)]


def without(text: str, lang: str) -> Iterator[str]:
    """The text without each of its words and marks in turn; all at once take the square of its length."""
    return (normalise(text[:start] + text[end:]) for start, end in spans(text, lang))
