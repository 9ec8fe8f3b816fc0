"""Words and punctuation marks, for every task that counts or compares them.

A word is a run of letters and digits, so l'eau has two and punctuation does not count; in Chinese and Japanese,
written without spaces, each character is a word.
"""

from __future__ import annotations

import re
import string
import unicodedata
from functools import cache

from bgt_core.data.trees import CJK
from bgt_core.data.words import MARK, WITHIN

_WORD = re.compile(rf"[{CJK}]|[^\W{CJK}](?:[^\W{CJK}]|[{WITHIN}])*")
_TOKEN = re.compile(f"{_WORD.pattern}|{MARK}")


def split_words(sentence: str) -> list[str]:
    """The words of a sentence, in order."""
    return _WORD.findall(sentence)


def split_tokens(sentence: str) -> list[str]:
    """The words and marks of a sentence, in order; every other character but a space is a mark."""
    return _TOKEN.findall(sentence)


def count_words(sentence: str) -> int:
    """The number of words of a sentence."""
    return len(_WORD.findall(sentence))


@cache
def is_punctuation(char: str) -> bool:
    """Whether a character is a punctuation mark: one of ASCII's 32, $ + < = > ^ ` | ~ among them, or of Unicode's."""
    return char in string.punctuation or unicodedata.category(char).startswith("P")
