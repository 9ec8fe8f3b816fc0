"""Alter English sentences: swap who does it to whom, or two attributes, or drop or add a negation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from bgt_core.data.alter.english_negation import negations
from bgt_core.data.alter.english_words import (
    ADJECTIVES,
    ADVERBS,
    ANIMATE,
    AUXILIARIES,
    BASES,
    BE,
    COLOURS,
    DETERMINERS,
    FUNCTION_WORDS,
    KNOWN_NOUNS,
    LINKS,
    MODALS,
    NAMES,
    NUMBERS,
    OBJECTS,
    PARTICIPLES,
    PASTS,
    PREPOSITIONS,
    SUBJECTS,
    SYMMETRIC,
    THIRDS,
)
from bgt_core.data.alter.tokens import Altered, Token, joined, spaced, tokenise

WORD = re.compile(r"\w+n't\b|'(?:m|re|ve|ll|d|s)\b|\w+?(?=n't\b)|\w+(?:-\w+)*")
FAR = 7  # maximum number of tokens between two roles
FIRST, SECOND, THIRD = 1, 2, 3  # grammatical person; SECOND also of plurals

_BE_FORMS = {  # by person
    **dict.fromkeys(("am", "is", "are"), ("am", "are", "is")),
    **dict.fromkeys(("was", "were"), ("was", "were", "was")),
    **dict.fromkeys(("'m", "'re"), ("'m", "'re", "'s")),
    "'ve": ("'ve", "'ve", "'s"),
    **dict.fromkeys(("has", "have"), ("have", "have", "has")),
    **dict.fromkeys(("does", "do"), ("do", "do", "does")),
    **dict.fromkeys(("doesn't", "don't"), ("don't", "don't", "doesn't")),
    **dict.fromkeys(("hasn't", "haven't"), ("haven't", "haven't", "hasn't")),
    **dict.fromkeys(("wasn't", "weren't"), ("wasn't", "weren't", "wasn't")),
}
_SAME = MODALS | {"had", "did", "didn't", "'ll", "'d", "won't", "can't", "cannot", "hadn't"}
_SAME |= {"couldn't", "wouldn't", "shouldn't"}
COPULAS = BE | {"'m", "'re", "'s", "be", "been", "being", "become", "became", "becomes"}
POSSESSIVES = {"i": "my", "you": "your", "he": "his", "she": "her", "we": "our", "they": "their"}
THOUGHTS = {"know", "think", "hope", "believe", "wish", "guess", "suppose", "say", "said", "knew", "thought", "heard"}
CONTRACTED = {"'m": "am", "'re": "are", "'s": "is", "'ll": "will"}  # behind a noun or name


class Argument(NamedTuple):
    """A noun phrase, pronoun or name: tokens from `start` to `end`, and its form in the other role."""

    start: int
    end: int
    kind: str  # "person" or "thing"
    person: int
    other: str  # for a pronoun, its form in the other role; else ""


def english(text: str) -> list[Altered]:
    """Every safe alteration of an English sentence, in a fixed order."""
    tokens = tokenise(text.replace("’", "'"), WORD)
    return [*_roles(tokens), *_attributes(tokens), *negations(tokens)]


def _roles(tokens: Sequence[Token]) -> Iterator[Altered]:
    words = [token.lower for token in tokens]
    if {"myself", "yourself", "himself", "herself", "ourselves", "themselves", "itself"} & set(words):
        return
    for subject in _subjects(words, tokens):
        for thing in _objects(words, tokens, subject.end + 1):
            between = words[subject.end : thing.start]
            if len(between) > FAR or not _one_clause(between) or words[thing.start - 1] in COPULAS:
                break
            if thing.kind != subject.kind or SYMMETRIC & set(between) or _again(words, subject, thing):
                continue
            if swapped := _swapped(tokens, words, subject, thing):
                yield Altered("roles", joined(swapped))
                return


def _one_clause(words: Sequence[str]) -> bool:
    return not any(word in LINKS or (word in SUBJECTS and word != "you") or not word[-1].isalnum() for word in words)


def _again(words: Sequence[str], subject: Argument, thing: Argument) -> bool:
    """Whether one of the two is also named elsewhere, or the subject is named by a possessive before the object."""
    named = {words[subject.end - 1], words[thing.end - 1], subject.other.lower(), thing.other.lower()} - {""}
    inside = {*range(subject.start, subject.end), *range(thing.start, thing.end)}
    elsewhere = {word for row, word in enumerate(words) if row not in inside}
    own = POSSESSIVES.get(words[subject.start], "")
    same = len(named) < 2 or subject.other.lower() == words[thing.start]
    return same or bool(named & elsewhere) or own in words[subject.end : thing.start]


def _at(words: Sequence[str], row: int) -> str:
    return words[row] if row < len(words) else ""


def _subjects(words: Sequence[str], tokens: Sequence[Token]) -> Iterator[Argument]:
    """The noun phrases before a finite verb, or after the auxiliary of a question."""
    for start in range(len(words)):
        argument = _argument(words, tokens, start, subject=True)
        if argument is None:
            continue
        after = _at(words, argument.end)
        if start and words[start - 1] in ("and", "or", "of"):
            continue
        in_question = start > 0 and _auxiliary(words[start - 1]) and (start == 1 or words[start - 2] in LINKS)
        if in_question or _finite(after) or (after in ADVERBS and _finite(_at(words, argument.end + 1))):
            yield argument


def _auxiliary(word: str) -> bool:
    return word in AUXILIARIES or word.endswith("n't")


def _finite(word: str) -> bool:
    return _auxiliary(word) or word in BASES or word in THIRDS or word in PASTS


def _objects(words: Sequence[str], tokens: Sequence[Token], first: int) -> Iterator[Argument]:
    """The noun phrases that end a phrase after a verb or a preposition."""
    for start in range(first, len(words)):
        thing = _argument(words, tokens, start, subject=False)
        if thing is None:
            continue
        before, after = words[start - 1], _at(words, thing.end)
        governed = before in PREPOSITIONS or _finite(before) or before in PARTICIPLES or before.endswith(("ing", "ed"))
        pronoun = thing.other and thing.other != "you" and words[start] != "her"
        ends = not after or not re.match(r"['\w]", after) or after in PREPOSITIONS | {"to"} | DETERMINERS
        ends = ends or (after in ADVERBS and not _finite(_at(words, thing.end + 1)))
        thought = thing.other == "you" and before in THOUGHTS and after.isalnum()  # "I know you", but "I know you sing"
        if (
            (governed or pronoun)
            and (ends or pronoun)
            and not thought
            and after not in ("and", "or", "'s")
            and before not in ("of", "have", "has", "had")
        ):
            yield thing


def _argument(words: Sequence[str], tokens: Sequence[Token], start: int, subject: bool) -> Argument | None:
    word, text = words[start], tokens[start].text
    if word in (SUBJECTS if subject else OBJECTS):
        other = SUBJECTS[word] if subject else OBJECTS[word]
        form = word if subject else other.lower()
        person = FIRST if form == "i" else THIRD if form in ("he", "she") else SECOND
        return Argument(start, start + 1, "person", person, other)
    if text in NAMES and not (start and words[start - 1] in ("and", "or")):
        return Argument(start, start + 1, "person", THIRD, "")
    if word in DETERMINERS and not (start and words[start - 1] in ("all", "both")):
        end = start + 1
        while end < len(words) and words[end] in ADJECTIVES and words[end] not in KNOWN_NOUNS:
            end += 1
        noun = words[end] if end < len(words) else ""
        if noun in KNOWN_NOUNS:
            return Argument(start, end + 1, "person" if noun in ANIMATE else "thing", _number(noun), "")
    return None


_PLURALS = {"children", "men", "women", "people", "police", "mice", "geese", "sheep", "wives", "kids", "parents"}


def _number(noun: str) -> int:
    return SECOND if noun in _PLURALS or (noun.endswith("s") and not noun.endswith(("ss", "us"))) else THIRD


def _swapped(tokens: Sequence[Token], words: Sequence[str], subject: Argument, thing: Argument) -> list[Token] | None:
    """Exchange both and make the verb agree; None if its form is not known."""
    tail = words[thing.end :]
    if any(word in ("and", "or", "but") and _finite(_at(tail, row + 1)) for row, word in enumerate(tail)):
        return None
    new_subject = [thing.other] if thing.other else [token.text for token in tokens[thing.start : thing.end]]
    old_subject = [token.text for token in tokens[subject.start : subject.end]]
    new_object = [subject.other] if subject.other else _uncapitalised(old_subject)
    before, middle = list(tokens[: subject.start]), list(tokens[subject.end : thing.start])
    if not thing.other and middle[0].text in ("'ve", "'d"):
        return None
    if subject.start and _auxiliary(words[subject.start - 1]):  # a question
        agreed = _agreed(words[subject.start - 1], subject.person, thing.person)
        if agreed is None:
            return None
        before[-1] = Token(before[-1].space, agreed)
    elif not _agree(middle, subject.person, thing.person):
        return None
    if not thing.other and middle[0].text in CONTRACTED:
        middle[0] = Token(" ", CONTRACTED[middle[0].text])
    first, second = spaced(new_subject), spaced(new_object)
    first[0] = Token(tokens[subject.start].space, first[0].text)
    return [*before, *first, *middle, *second, *tokens[thing.end :]]


def _uncapitalised(texts: list[str]) -> list[str]:
    first = texts[0] if texts[0] in NAMES or texts[0] == "I" else texts[0].lower()
    return [first, *texts[1:]]


def _agree(middle: list[Token], old: int, new: int) -> bool:
    """Give the first verb the form of its new subject, in place; False if that is not known."""
    for row, token in enumerate(middle):
        if token.lower in ADVERBS and token.lower not in BASES:
            continue
        if token.text == "'s" and row + 1 < len(middle) and middle[row + 1].lower in PARTICIPLES:
            return False  # 's may be "is" or "has"
        agreed = _agreed(token.lower, old, new)
        if agreed is None:
            return False
        middle[row] = Token("" if agreed.startswith("'") else token.space or " ", agreed)
        return True
    return False


def _agreed(word: str, old: int, new: int) -> str | None:
    if word == "'s" and old == THIRD:
        return ("'m", "'re", "'s")[new - 1]
    if word in _BE_FORMS:
        return _BE_FORMS[word][new - 1]
    if word in ("isn't", "aren't"):
        return (None, "aren't", "isn't")[new - 1]
    if word in _SAME or word in PASTS or word.endswith("ed"):
        return word
    if (old == THIRD) == (new == THIRD):
        return word
    if old == THIRD:
        return THIRDS[word].base if word in THIRDS else None
    return BASES[word].third if word in BASES else None


def _noun(words: Sequence[str], row: int) -> bool:
    """A known noun, or an unknown word where a phrase ends."""
    word, after = words[row], _at(words, row + 1)
    if word in FUNCTION_WORDS or word in ADJECTIVES or _finite(word) or not word.isalpha():
        return word in KNOWN_NOUNS
    return word in KNOWN_NOUNS or not after.isalpha() or after in FUNCTION_WORDS


def _attributes(tokens: Sequence[Token]) -> Iterator[Altered]:
    """Swap two adjectives or two numbers that stand before different nouns."""
    words = [token.lower for token in tokens]
    for known in (ADJECTIVES - NUMBERS, NUMBERS):
        at = [
            row
            for row, word in enumerate(words[:-1])
            if word in known and word not in KNOWN_NOUNS and _noun(words, row + 1)
        ]
        choices = [  # "a red car or a blue car" would say the same
            (one, two)
            for one, two in combinations(at, 2)
            if words[one] != words[two] and words[one + 1] != words[two + 1]
        ]
        if choices:
            one, two = max(choices, key=lambda pair: len({words[row] in COLOURS for row in pair}) == 1)
            yield Altered("attributes", joined(_exchanged(tokens, words, one, two)))
            return


def _exchanged(tokens: Sequence[Token], words: Sequence[str], one: int, two: int) -> list[Token]:
    """The tokens with two words exchanged, and their articles."""
    changed = list(tokens)
    for row, word in ((one, words[two]), (two, words[one])):
        changed[row] = Token(tokens[row].space, word)
        if row and words[row - 1] in ("a", "an"):
            changed[row - 1] = Token(tokens[row - 1].space, "an" if word[0] in "aeiou" else "a")
    return changed
