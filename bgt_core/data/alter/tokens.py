"""Split a sentence into words with the space before each, so that an altered sentence keeps the spacing of the
original."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Altered(NamedTuple):
    """A sentence with nearly the same words and another meaning."""

    kind: str  # "roles", "attributes", "negation", or "words" (two words exchanged)
    text: str


class Token(NamedTuple):
    space: str  # before the text: "", " " or other white space
    text: str

    @property
    def lower(self) -> str:
        return self.text.lower()


def tokenise(text: str, pattern: re.Pattern[str]) -> list[Token]:
    """Split at the matches of a pattern of tokens; other characters become tokens of their own."""
    return [Token(*match.groups()) for match in re.finditer(rf"(\s*)({pattern.pattern}|\S)", text)]


def joined(tokens: Sequence[Token]) -> str:
    """The text; its first letter is a capital, and no space is in front."""
    text = "".join(token.space + token.text for token in tokens).lstrip()
    return text[:1].upper() + text[1:]


def spaced(texts: Sequence[str]) -> list[Token]:
    """Tokens with a space before each; "'s" and its like take none."""
    return [Token("" if text.startswith("'") else " ", text) for text in texts]
