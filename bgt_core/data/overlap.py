"""How far two languages share their writing: the overlap of their letters, and of the pieces of one vocabulary.

Both compare relative frequencies in translations of the same sentences, so that what the texts are about cancels out.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError

SENTENCES = 20_000  # translations that an overlap is measured on, at most


def letter_overlap(first: Iterable[str], second: Iterable[str]) -> float:
    """From 0 to 1: the share of the letters of one language, case apart, that the other's frequencies cover."""
    return overlap(*(Counter(filter(is_letter, "".join(texts).casefold())) for texts in (first, second)))


def piece_overlap(first: Sequence[str], second: Sequence[str], vocab_size: int) -> float:
    """The same of the pieces of one tokenizer, trained on both sides and lower-cased; DataError as of its training."""
    tokenizer = Tokenizer.train([*first, *second], vocab_size, lowercase=True)
    return overlap(
        *(Counter(piece for ids in tokenizer.encode(texts) for piece in ids[:-1]) for texts in (first, second))
    )


def is_letter(char: str) -> bool:
    """Marks count too: scripts of Asia write vowels with them."""
    return unicodedata.category(char)[0] in "LM"


def overlap(first: Counter, second: Counter) -> float:
    """The sum over kinds of the smaller relative frequency: 1 less the total variation distance.

    Raises DataError where there is nothing to count.
    """
    if not first or not second:
        raise DataError("A side without letters has no overlap; give text in both languages.")
    return sum(min(count / first.total(), second[kind] / second.total()) for kind, count in first.items())
