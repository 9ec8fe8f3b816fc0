"""Find the words and marks of a sentence, remove each of them in turn, and compare the letters of two languages.

The constants are parts of regular expressions. All modules that distinguish words from marks use them.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from bgt_core.data.columns import UNSPACED, primary
from bgt_core.data.text import INVISIBLE, normalise
from bgt_core.errors import DataError


def _characters(categories: set[str]) -> str:
    """Return the ranges of the characters of these categories, except spaces, for the brackets of a pattern."""
    codes = [*range(0x1EA00), *range(0xE0000, 0xE0200)]  # all assigned marks and controls are in these ranges
    kinds = map(unicodedata.category, map(chr, codes))
    chosen = [code for code, kind in zip(codes, kinds, strict=True) if kind in categories and not chr(code).isspace()]
    runs = (list(run) for _, run in groupby(enumerate(chosen), lambda place: place[1] - place[0]))
    return "".join(f"{chr(run[0][1])}-{chr(run[-1][1])}" for run in runs)


COMBINING = _characters({"Mn", "Mc", "Me"})  # accents, vowel signs, points: they belong to the character before them
HIDDEN = _characters(INVISIBLE)  # joiners, directions, controls: neither words nor marks; `normalise` removes them
WITHIN = COMBINING + HIDDEN
LETTERS = rf"\w[\w{WITHIN}]*(?:['’‐‑·׳״-]\w[\w{WITHIN}]*)*"  # a word with its apostrophes and hyphens
_SIGN = rf"[^\w\s{HIDDEN}][{WITHIN}\U0001f3fb-\U0001f3ff]*"  # with its variation selector or skin tone
MARK = rf"[\U0001f1e6-\U0001f1ff]{{2}}|{_SIGN}(?:(?<=\u200d){_SIGN})*"  # a flag, a mark, or joined emojis
WORD = re.compile(f"{LETTERS}|{MARK}")
_SCRIPTS = ("\u3040-\u309f", "\u30a0-\u30ff", "\u3400-\u9fff々")  # hiragana, katakana, Chinese characters
RUN = re.compile(
    "|".join(f"[{script}][{script}{WITHIN}]*" for script in _SCRIPTS)
    + rf"|\w(?:(?![\u3040-\u9fff])[\w{WITHIN}])*|{MARK}"
)


def spans(text: str, lang: str) -> list[tuple[int, int]]:
    """Find the spans of words and marks or, in languages without spaces such as Japanese, of runs of one script."""
    return [match.span() for match in (RUN if primary(lang) in UNSPACED else WORD).finditer(text)]


def without(text: str, lang: str) -> Iterator[str]:
    """Yield the text without its first word or mark, then without its second, and so on.

    This is a generator, because a list of all these texts would grow with the square of the length.
    """
    return (normalise(text[:start] + text[end:]) for start, end in spans(text, lang))


# Similarity of two languages' scripts: the overlap of their letter frequencies.


def letter_overlap(first: Iterable[str], second: Iterable[str]) -> float:
    """Return the overlap of the letter frequencies of texts in two languages, from 0 to 1; case does not matter.

    It is the sum, over all letters, of the smaller of the two relative frequencies (1 minus the total variation).
    Combining marks count as letters, because many Asian scripts write vowels as marks. Raises DataError if the texts of
    a language have no letters.
    """
    left, right = (
        Counter(char for char in "".join(texts).casefold() if unicodedata.category(char)[0] in "LM")
        for texts in (first, second)
    )
    if not left or not right:
        raise DataError("One side has no letters; give text in both languages.")
    return sum(min(count / left.total(), right[char] / right.total()) for char, count in left.items())
