"""English and French sentences that a grammar generated, with labels of their meaning and style, in tables.

    pairs               translations. The style of a sentence (final mark, filler word, position of the time phrase,
                        synonyms, contractions, register) does not depend on its meaning or on its translation
    triples             a sentence, a paraphrase in other words or another order, and an altered sentence in nearly the
                        same words: "The king thanked the baker.", "The baker was thanked by the king.", "The baker
                        thanked the king." Training and held-out triples share only function words
    role pairs          two sentences that have the same words in exchanged roles: "The singer saw the man.", "The man
                        saw the singer."

Tests, benchmarks, evaluations and tutorials use these sentences. Commit 5411f3dd contains the code of the grammar.
"""

import lzma
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bgt_core.errors import UsageError

LANGS = ("en", "fr")
LIMIT, TRIPLES, ROLE_PAIRS = 30_000, 2_000, 1_000  # number of rows of each table
GIVE, ACT, NEGATION, ATTRIBUTES = "giver and receiver", "subject and object", "negation", "attributes"
KINDS = (GIVE, ACT, "two things", ATTRIBUTES, NEGATION)  # kinds of triples; role pairs have only the first two kinds
STEP = 1_010  # the list of seed s begins at row s * STEP; a multiple of len(KINDS), so that all start with GIVE


class Pair(NamedTuple):
    """An English and a French sentence with the same meaning."""

    texts: dict[str, str]  # {"en": ..., "fr": ...}
    meaning: tuple[str, ...]  # the sentence frame, features and words that both texts share
    style: dict[str, dict[str, str]]  # language -> {factor: value}, as in {"mark": "?"}, if the text shows the factor


class Triple(NamedTuple):
    """For each language: a sentence, a paraphrase, and an altered sentence with another meaning."""

    kind: str  # what differs in the altered sentence: one of KINDS
    frame: str  # the form of the three sentences, such as "receiver moved"
    texts: dict[str, tuple[str, str, str]]  # language -> sentence, paraphrase, altered sentence


class RolePair(NamedTuple):
    """A sentence and its twin, in which two persons have swapped roles ("who saw whom"), in each language."""

    kind: str  # GIVE or ACT
    texts: dict[str, tuple[str, str]]  # language -> the sentence, and its twin
    persons: dict[str, tuple[str, str]]  # language -> who acts in the sentence, and in its twin; lower-cased


def pairs(count: int, seed: int = 0) -> list[Pair]:
    """Return `count` pairs, no two of which have the same meaning or the same text.

    With the same seed, a longer list begins with the pairs of a shorter list. The seed sets the row of the table where
    the list begins, so short lists of different seeds do not overlap. Raises UsageError unless `count` is from 0 to
    LIMIT.

    >>> pairs(1)[0].texts["fr"]
    'Ah, votre luge est verte.'
    """
    return [
        Pair(
            {"en": en, "fr": fr},
            tuple(meaning.split("|")),
            {
                lang: dict(part.split("=") for part in text.split(";") if part)
                for lang, text in zip(LANGS, styles, strict=True)
            },
        )
        for en, fr, meaning, *styles in _drawn("pairs", LIMIT, count, seed)
    ]


def triples(count: int, seed: int = 0, *, held_out: bool = False) -> list[Triple]:
    """Return `count` triples with different sentences. Their kinds rotate through `KINDS`.

    The seed sets the row of the table where the list begins. Triples that are `held_out` have other nouns, verbs,
    adjectives, times and frames than the training triples. Raises UsageError unless `count` is from 0 to TRIPLES.

    >>> triples(3)[2].texts["en"]
    ('The goose is quicker than the fox.', 'The fox is slower than the goose.', 'The fox is quicker than the goose.')
    """
    rows = _drawn("triples-held-out" if held_out else "triples", TRIPLES, count, seed)
    return [Triple(kind, frame, {"en": (a, b, c), "fr": (d, e, f)}) for kind, frame, a, b, c, d, e, f in rows]


def role_pairs(count: int, seed: int = 0) -> list[RolePair]:
    """Return `count` different role pairs. The kinds GIVE and ACT alternate.

    The seed sets the row of the table where the list begins. Raises UsageError unless `count` is from 0 to ROLE_PAIRS.

    >>> role_pairs(2)[1].texts["en"]
    ('The singer saw the man.', 'The man saw the singer.')
    """
    return [
        RolePair(kind, {"en": (a, b), "fr": (c, d)}, {"en": (one, two), "fr": (un, deux)})
        for kind, a, b, c, d, one, two, un, deux in _drawn("roles", ROLE_PAIRS, count, seed)
    ]


def _drawn(name: str, size: int, count: int, seed: int) -> list[list[str]]:
    """Return the cells of `count` rows of the table `name`, which has `size` rows, from a row that the seed sets."""
    if not 0 <= count <= size:
        raise UsageError(f"{count:,}: expected 0 to {size:,} {name.replace('-', ' ')}.", parameter="count")
    rows, first = _table(name), seed * STEP % size
    return [row.split("\t") for row in (rows[first:] + rows[:first])[:count]]


@cache
def _table(name: str) -> list[str]:
    packed = Path(__file__).with_name(f"{name}.tsv.xz").read_bytes()
    return lzma.decompress(packed).decode().splitlines()
