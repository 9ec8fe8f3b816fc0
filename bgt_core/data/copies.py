"""Copies of a sentence: what must not be divided between training and testing."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from bgt_core.data.text import normalise


def copy_key(sentence: str) -> str:
    """A key that is the same for sentences that differ only in case, spaces, Unicode form or invisible characters.

    Most tokenizers give them the same tokens, so most encoders give them the same vector.
    """
    return normalise(unicodedata.normalize("NFKC", normalise(sentence)).casefold())


def join_copies(sentences: Sequence[str], groups: Sequence[int]) -> list[int]:
    """Join the groups of N sentences that share a copy of a sentence, directly or in a chain.

    Returns:
        The group of each sentence, (N,): that of the first sentence in the joined groups, or its own.
    """
    place = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    heads: dict[int, int] = {}  # group -> an earlier one that it is joined to

    def head(group: int) -> int:
        while group in heads:
            group = heads[group]
        return group

    first: dict[str, int] = {}  # key -> group of its first sentence
    for sentence, group in zip(sentences, groups, strict=True):
        earlier, *later = sorted(
            {head(first.setdefault(copy_key(sentence), group)), head(group)}, key=place.__getitem__
        )
        heads |= dict.fromkeys(later, earlier)
    return [head(group) for group in groups]
