"""Altered sentences: raw English and French text that means something else in nearly the same words.

    text -> tokens -> roles or attributes swapped, a negation dropped or added -> text

Small lexicons say which words are verbs, nouns, names and function words; there is no parser. A sentence is left alone
where a swap might not be well-formed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random

from bgt_core.data.alter.english import english
from bgt_core.data.alter.french import french
from bgt_core.data.alter.tokens import Altered
from bgt_core.errors import UsageError

__all__ = ["Altered", "altered", "altered_rows"]

SWAP_SHARE = 0.75  # of the sentences with both a swap and a changed negation, how many are swapped
_BY_LANG: dict[str, Callable[[str], list[Altered]]] = {"en": english, "fr": french}


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
    Altered(kind='roles', text='The man bit the dog.')
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


def altered_rows(pairs: Iterable[tuple[str, str]], lang: str, seed: int = 0) -> Iterator[str]:
    """Yield pairs whose first sentence can be altered, as lines of a TSV: both sentences and the altered one.

    The pairs are translations or paraphrases. Recipes read such files as those of
    `bgt_core.grammar.triples.triple_rows`.

    Args:
        pairs: A sentence in `lang`, and its translation or paraphrase.
        lang: "en" or "fr", the language of the first sentences.
        seed: Seed of all draws.

    Yields:
        Lines without a line end; pairs without a safe alteration are left out.

    Raises:
        UsageError: Another language.
    """
    rng = Random(f"{seed} altered")
    for first, second in pairs:
        if change := altered(first, lang, rng):
            yield f"{first}\t{second}\t{change.text}"
