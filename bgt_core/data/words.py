"""The words and marks of a sentence, and the sentence without each of them."""

from __future__ import annotations

import re

from bgt_core.data.columns import UNSPACED
from bgt_core.data.detokenise import COMBINING
from bgt_core.data.languages import primary
from bgt_core.data.text import normalise

WORD = re.compile(rf"\w[\w{COMBINING}]*(?:['’-]\w[\w{COMBINING}]*)*|[^\w\s]")
RUN = re.compile(r"[\u3040-\u309f]+|[\u30a0-\u30ff]+|[\u3400-\u9fff々]+|\w+?(?=[\u3040-\u9fff]|\b)|[^\w\s]")


def spans(text: str, lang: str) -> list[tuple[int, int]]:
    """The spans of words and marks; in Japanese and Chinese, which have no spaces, runs of one script."""
    return [match.span() for match in (RUN if primary(lang) in UNSPACED else WORD).finditer(text)]


def without(text: str, lang: str) -> list[str]:
    """The text without each of its words and marks in turn."""
    return [normalise(text[:start] + text[end:]) for start, end in spans(text, lang)]
