"""Altered sentences: raw English and French text that means something else in nearly the same words.

    text -> tokens -> roles or attributes swapped, a negation dropped or added -> text

Small lexicons say which words are verbs, nouns, names and function words. No parser is used, so a sentence is left
as it is if a swap might not be well-formed.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from bgt_core.data.alter.english import english
from bgt_core.data.alter.french import french
from bgt_core.data.alter.tokens import Altered
from bgt_core.errors import UsageError

__all__ = ["LANGS", "Altered", "altered"]

SWAP_SHARE = 0.75  # of the sentences with both a swap and a changed negation, how many are swapped
_BY_LANG: dict[str, Callable[[str], list[Altered]]] = {"en": english, "fr": french}
LANGS = tuple(_BY_LANG)


def altered(text: str, lang: str, rng: Random) -> Altered | None:
    """Alter a sentence.

    Args:
        text: One sentence of raw text.
        lang: "en" or "fr".
        rng: Chooses where several alterations are possible.

    Returns:
        The altered sentence and its kind, "roles", "attributes" or "negation"; None if no safe alteration was found.

    Raises:
        UsageError: Another language.

    >>> altered("The dog bit the man.", "en", Random(0))
    Altered(kind='negation', text="The dog didn't bite the man.")
    """
    if lang not in _BY_LANG:
        raise UsageError(
            f"language '{lang}': sentences of {' and '.join(_BY_LANG)} can be altered; choose one of them."
        )
    choices = _BY_LANG[lang](text)
    swaps = [each for each in choices if each.kind != "negation"]
    negations = [each for each in choices if each.kind == "negation"]
    if swaps and (not negations or rng.random() < SWAP_SHARE):
        return rng.choice(swaps)
    return negations[0] if negations else None
