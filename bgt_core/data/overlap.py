"""How similar the writing of two languages is: the overlap of their letters, and of the tokens of one vocabulary.

Both compare relative frequencies in translations of the same sentences, so that the topics of the texts cancel out.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError

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
