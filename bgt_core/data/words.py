"""The words and marks of a sentence, and the sentence without each of them; how similar two languages' writing is.

The names in capitals are parts of regular expressions, for all that tells words from marks.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from bgt_core.data.columns import UNSPACED, primary
from bgt_core.data.text import INVISIBLE, Tokenizer, normalise
from bgt_core.errors import DataError


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


# How similar the writing of two languages is: the overlap of their letters, and of the tokens of one vocabulary.

SENTENCES = 20_000  # maximum number of translations to measure an overlap on


def letter_overlap(first: Iterable[str], second: Iterable[str]) -> float:
    """The share, from 0 to 1, of one language's letters, ignoring case, that the other's frequencies cover."""
    return overlap(*(Counter(filter(is_letter, "".join(texts).casefold())) for texts in (first, second)))


def piece_overlap(first: Sequence[str], second: Sequence[str], vocab_size: int) -> float:
    """The same for the tokens of one tokenizer, trained on both sides in lower case; DataError as for its training."""
    tokenizer = Tokenizer.train([*first, *second], vocab_size, lowercase=True)
    return overlap(
        *(Counter(token for ids in tokenizer.encode(texts) for token in ids[:-1]) for texts in (first, second))
    )


def is_letter(char: str) -> bool:
    """Count letters and marks: scripts of Asia write vowels as marks."""
    return unicodedata.category(char)[0] in "LM"


def overlap(first: Counter, second: Counter) -> float:
    """The sum over kinds of the smaller relative frequency: 1 minus the total variation distance.

    Raises DataError if one side is empty.
    """
    if not first or not second:
        raise DataError("One side has no letters; give text in both languages.")
    return sum(min(count / first.total(), second[kind] / second.total()) for kind, count in first.items())
