"""Minimal pairs of roles: two sentences with the same words that differ in who does it and to whom.

"The king gives the baker a book." and "The baker gives the king a book.": the same style and bag of words, two
meanings.
"""

from __future__ import annotations

import re
from random import Random
from typing import NamedTuple

from bgt_core.errors import UsageError
from bgt_core.grammar.clauses import Clause, en_clause, fr_clause
from bgt_core.grammar.meanings import draw_np
from bgt_core.grammar.noun_phrases import NP
from bgt_core.grammar.nouns import NOUNS
from bgt_core.grammar.triple_clauses import roles_swapped
from bgt_core.grammar.verbs import ACTS, GIFTS
from bgt_core.grammar.voice import Voice
from bgt_core.grammar.words import Lexeme, statement

LIMIT = 1_000  # maximum number of pairs; several times as many exist, so drawing always ends
KINDS = GIVE, ACT = "giver and receiver", "subject and object"

# Common words without synonyms: the pairs test roles, not rare vocabulary.
_PERSONS = [
    noun
    for noun in NOUNS["person"]
    if noun.key
    in "man woman boy girl student lawyer nurse dentist judge soldier mayor singer king queen princess hero".split()
]
_ACTS = [verb for kinds, verb in ACTS if "person" in kinds]


class RolePair(NamedTuple):
    """A sentence and its twin with two roles swapped, in each language."""

    kind: str  # one of KINDS
    texts: dict[str, tuple[str, str]]  # language -> the sentence, and its twin
    persons: dict[str, tuple[str, str]]  # language -> who does it, who stands first, and to whom, in lower case; the
    # twin has them the other way round


def role_pairs(count: int, seed: int = 0) -> list[RolePair]:
    """Draw `count` different pairs, both kinds in turn. The first pairs of a longer list are those of a shorter one.

    Raises UsageError if `count` is not between 0 and LIMIT.

    >>> role_pairs(2)[1].texts["en"]
    ('The singer saw the man.', 'The man saw the singer.')
    """
    if not 0 <= count <= LIMIT:
        raise UsageError(f"{count:,}: expected 0 to {LIMIT:,} minimal pairs.", parameter="count")
    rng = Random(f"{seed} roles")
    voices = {lang: Random(f"{seed} roles {lang}") for lang in ("en", "fr")}
    pairs: list[RolePair] = []
    seen: set[str] = set()
    while len(pairs) < count:
        pair = _draw(rng, voices, KINDS[len(pairs) % 2])
        texts = {text for twins in pair.texts.values() for text in twins}
        if all(_same_words(*twins) for twins in pair.texts.values()) and seen.isdisjoint(texts):
            seen |= texts
            pairs.append(pair)
    return pairs


def _draw(rng: Random, voices: dict[str, Random], kind: str) -> RolePair:
    nouns = rng.sample(_PERSONS, 2)
    one, two = (NP("the", noun) for noun in nouns)
    if kind == GIVE:
        gift = draw_np(rng, rng.choice(("thing", "text", "clothes")), "the some", 0.2)
        clause = Clause(one, rng.choice(GIFTS), rng.choice(("past", "habit", "future")), object=gift, receiver=two)
    else:
        verb = rng.choice(_ACTS)
        tenses = ("past", "future") if verb.kind == "!" else ("past", "habit", "now", "future")
        clause = Clause(one, verb, rng.choice(tenses), object=two)
    twin = roles_swapped(clause)
    english, french = (Voice(voices[lang]) for lang in ("en", "fr"))  # the same style for both twins
    texts = {
        "en": (statement(en_clause(english, clause), "en"), statement(en_clause(english, twin), "en")),
        "fr": (statement(fr_clause(french, clause), "fr"), statement(fr_clause(french, twin), "fr")),
    }
    return RolePair(kind, texts, {"en": _names(nouns, "en"), "fr": _names(nouns, "fr")})


def _names(nouns: list[Lexeme], lang: str) -> tuple[str, str]:
    first, second = (getattr(noun, lang)[0][0].lower() for noun in nouns)
    return first, second


def _same_words(left: str, right: str) -> bool:
    """Whether both twins have the same words; not if French contracts or elides one of them: "au roi" but "à la
    reine"."""
    one, two = (sorted(re.findall(r"\w+", text.lower())) for text in (left, right))
    return one == two
