"""What counts as a word, for every task that looks at words.

Words are runs of letters and digits, so l'eau has two and punctuation counts for nothing; in Chinese and Japanese
a character is a word.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")


def split_words(sentence: str) -> list[str]:
    """The words of a sentence, in order."""
    return _WORD.findall(sentence)


def words(sentence: str) -> int:
    """The number of words of a sentence."""
    return len(_WORD.findall(sentence))
