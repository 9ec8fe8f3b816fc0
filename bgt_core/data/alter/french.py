"""Alter French sentences: swap who does it to whom, or two attributes, or drop or add a negation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from bgt_core.data.alter.french_negation import negations
from bgt_core.data.alter.french_words import (
    ADJECTIVE_FORMS,
    ADVERBS,
    CONJUGATED,
    DETERMINERS,
    DIRECT,
    ETRE,
    FORMS,
    INDIRECT,
    LINKS,
    NAMES,
    NOUN_FORMS,
    PARTICIPLES,
    SUBJECTS,
)
from bgt_core.data.alter.tokens import Altered, Token, joined, tokenise
from bgt_core.grammar.words import VOWEL

WORD = re.compile(r"(?i:aujourd'hui|(?:[ldnjmtsc]|qu|jusqu|lorsqu|puisqu|quelqu)'|\w+(?:-\w+)*)")
FAR = 7  # maximum number of tokens between two roles

_SUBJECT_OF = {"me": "je", "te": "tu", "nous": "nous", "vous": "vous", "le": "il", "la": "elle", "lui": "il"}
_SUBJECT_OF |= {"les": "ils", "leur": "ils", "m'": "je", "t'": "tu", "l'": "il"}
_DIRECT_OBJECT_OF = {"je": "me", "j'": "me", "tu": "te", "nous": "nous", "vous": "vous", "il": "le", "elle": "la"}
_DIRECT_OBJECT_OF |= {"ils": "les", "elles": "les"}
_INDIRECT_OBJECT_OF = _DIRECT_OBJECT_OF | {"il": "lui", "elle": "lui", "ils": "leur", "elles": "leur"}
_OTHER_GENDER = {("il", "la"): ("elle", "le"), ("elle", "le"): ("il", "la")}  # whatever the verb
_FIRST_OR_SECOND = {"je", "j'", "tu", "nous", "vous", "me", "te", "m'", "t'", "moi", "toi"}
_BEFORE_VOWEL = {"que": ("que", "qu'"), "qu'": ("que", "qu'"), "si": ("si", "s'"), "s'": ("si", "s'")}
_AVOIR = {form for form, readings in FORMS.items() if "avoir" in [verb for verb, _, _ in readings]}


class Argument(NamedTuple):
    """A name, or a determiner and its noun: tokens from `start` to `end`."""

    start: int
    end: int
    kind: str  # "person" or "thing"
    gender: str
    plural: bool


def french(text: str) -> list[Altered]:
    """Every safe alteration of a French sentence, in a fixed order."""
    tokens = tokenise(text.replace("’", "'"), WORD)
    words = [token.lower for token in tokens]
    swapped = _pronouns(tokens, words) or _arguments(tokens, words)
    roles = [Altered("roles", joined(swapped))] if swapped else []
    return [*roles, *_attributes(tokens, words), *negations(tokens)]


def _pronouns(tokens: Sequence[Token], words: Sequence[str]) -> list[Token] | None:
    """ "je ne te crois pas" -> "tu ne me crois pas"; "il la voit" -> "elle le voit"."""
    for row, word in enumerate(words[:-2]):
        at = row + 2 if words[row + 1] in ("ne", "n'") else row + 1
        if word not in _DIRECT_OBJECT_OF or at + 1 >= len(words) or words[at] not in _SUBJECT_OF:
            continue
        if (word, words[at]) in _OTHER_GENDER:
            subject, thing = _OTHER_GENDER[word, words[at]]
            verb: str | None = words[at + 1]
        else:
            subject, verb = _SUBJECT_OF[words[at]], None
            thing = _objects(words, at)[word]
            elsewhere = {each for place, each in enumerate(words) if place not in (row, at)}
            if subject != word.replace("j'", "je") and thing and not elsewhere & _FIRST_OR_SECOND:
                verb = _conjugated(words[at + 1], word, subject, subjunctive=words[row - 1] in ("que", "qu'"))
        return _with_pronouns(tokens, words, row, at, subject, thing, verb) if verb else None
    return None


def _objects(words: Sequence[str], clitic: int) -> dict[str, str]:
    """The object that each subject becomes; empty for a third person if the verb's kind of object is not known."""
    at = clitic + 1
    verbs = {verb for verb, _, _ in FORMS.get(words[at], ())}
    if "avoir" in verbs:
        at = next((row for row in range(at + 1, len(words)) if words[row] not in ADVERBS), len(words))
        participle = re.sub(r"(?<=[éui])e?s?$", "", words[at]) if at < len(words) else ""
        verbs = {PARTICIPLES.get(participle, "")}
    direct, indirect = (words[clitic] not in each for each in (("lui", "leur"), ("le", "la", "les", "l'")))
    if verbs & DIRECT and direct:
        return _DIRECT_OBJECT_OF
    if verbs & INDIRECT and indirect:
        return _INDIRECT_OBJECT_OF
    first_or_second = words[clitic] in _FIRST_OR_SECOND
    return {
        subject: thing if first_or_second and subject in _FIRST_OR_SECOND else ""
        for subject, thing in _DIRECT_OBJECT_OF.items()
    }


def _conjugated(form: str, old: str, new: str, subjunctive: bool) -> str | None:
    """The same verb and tense with another subject; None if its form is not known."""
    for verb, tense, person in FORMS.get(form, ()):
        if person == SUBJECTS[old] and not (subjunctive and tense == "imperfect"):
            return str(getattr(CONJUGATED[verb], tense)[SUBJECTS[new]])
    return None


def _with_pronouns(
    tokens: Sequence[Token], words: Sequence[str], row: int, at: int, subject: str, thing: str, verb: str
) -> list[Token]:
    """The tokens with another subject at `row`, another object at `at` and the verb behind it."""
    changed = list(tokens)
    changed[row] = Token(tokens[row].space, subject)
    if row and words[row - 1] in _BEFORE_VOWEL:  # "qu'il" but "que je"
        full, elided = _BEFORE_VOWEL[words[row - 1]]
        vowel = subject[0] in ("i" if full == "si" else "ie")
        changed[row - 1] = Token(tokens[row - 1].space, elided if vowel else full)
        changed[row] = Token("" if vowel else " ", subject)
    if words[at - 1] == "n'":
        changed[at - 1] = Token(tokens[at - 1].space, "ne")
    short = thing in ("me", "te", "le", "la") and VOWEL.match(verb) is not None
    changed[at] = Token(" ", thing[0] + "'" if short else thing)
    changed[at + 1] = Token("" if short else " ", verb)
    if words[at + 1] in _AVOIR:
        for later in range(at + 2, min(at + 4, len(words))):
            changed[later] = Token(tokens[later].space, _agreed(tokens[later].text, thing))
    return changed


def _agreed(word: str, thing: str) -> str:
    """A participle in the singular or, after "les", in the plural; other words as they are."""
    if word in ADVERBS or re.sub("e?s?$", "", word) not in PARTICIPLES:
        return word
    singular = word if word in PARTICIPLES else word.removesuffix("s")
    return singular + "s" * (thing == "les" and not singular.endswith("s")) if thing not in ("nous", "vous") else word


def _arguments(tokens: Sequence[Token], words: Sequence[str]) -> list[Token] | None:
    """Exchange names and noun phrases of the same number, and of the same gender if something agrees with it."""
    for start in range(len(words)):
        subject = _argument(tokens, words, start)
        if subject is None or (start and words[start - 1][-1].isalnum() and words[start - 1] not in ("que", "quand")):
            continue
        for other in range(subject.end + 1, len(words)):
            thing = _argument(tokens, words, other)
            between = words[subject.end : other]
            if len(between) > FAR or any(
                word in LINKS or (not word[-1].isalnum() and word[-1] != "'") for word in between
            ):
                break
            if thing and _exchangeable(words, subject, thing):
                return _swapped(tokens, subject, thing)
    return None


def _exchangeable(words: Sequence[str], subject: Argument, thing: Argument) -> bool:
    between = words[subject.end : thing.start]
    if not any(word in FORMS for word in between):  # no verb
        return False
    before = [word for word in between if word not in ("pas", "plus", "jamais")][-1]
    after = words[thing.end] if thing.end < len(words) else "."
    agrees = bool(ETRE & set(between)) or after in ADJECTIVE_FORMS
    return (
        subject.kind == thing.kind
        and subject.plural == thing.plural
        and (subject.gender == thing.gender or not agrees)
        and before not in ETRE | {"de", "d'"}
        and after not in ("et", "ou", "de", "d'", "qui")
        and "avec" not in between
        and words[subject.start : subject.end] != words[thing.start : thing.end]
    )


def _argument(tokens: Sequence[Token], words: Sequence[str], start: int) -> Argument | None:
    name, word = tokens[start].text, words[start]
    if name in NAMES:
        return Argument(start, start + 1, "person", NAMES[name], False)
    if word not in DETERMINERS or start + 1 >= len(words) or words[start + 1] not in NOUN_FORMS:
        return None
    gender, plural = DETERMINERS[word]
    kind, of_noun, many = NOUN_FORMS[words[start + 1]]
    if many != plural or gender not in ("", of_noun):
        return None
    return Argument(start, start + 2, kind, of_noun, plural)


def _swapped(tokens: Sequence[Token], subject: Argument, thing: Argument) -> list[Token] | None:
    """Exchange both with their determiners; "au" and an elided word before need the same kind of word after them."""
    first, second = list(tokens[subject.start : subject.end]), list(tokens[thing.start : thing.end])
    if "au" in (first[0].lower, second[0].lower) or tokens[thing.start - 1].lower in ("à", "de"):
        if len(first) != len(second) or subject.gender != thing.gender:
            return None
        if bool(VOWEL.match(first[-1].text)) != bool(VOWEL.match(second[-1].text)):
            return None
        first, second = [first[0], second[-1]], [second[0], first[-1]]
        return [*tokens[: subject.start], *first, *tokens[subject.end : thing.start], *second, *tokens[thing.end :]]
    if tokens[thing.start - 1].text.endswith("'") or (subject.start and tokens[subject.start - 1].text.endswith("'")):
        return None
    first[0], second[0] = Token(second[0].space, first[0].text), Token(first[0].space, second[0].text)
    if first[0].text not in NAMES:
        first[0] = Token(first[0].space, first[0].lower)
    return [*tokens[: subject.start], *second, *tokens[subject.end : thing.start], *first, *tokens[thing.end :]]


def _attributes(tokens: Sequence[Token], words: Sequence[str]) -> Iterator[Altered]:
    """Exchange two adjectives after their nouns, each in the form that its new place needs."""
    at = [
        row
        for row, word in enumerate(words)
        if row and word in ADJECTIVE_FORMS and words[row - 1] in NOUN_FORMS and not ADJECTIVE_FORMS[word][0]
    ]
    for one, two in combinations(at, 2):
        first, second = ADJECTIVE_FORMS[words[one]][1], ADJECTIVE_FORMS[words[two]][1]
        if first != second and words[one - 1] != words[two - 1]:  # "un chien noir ou un chien blanc" would say the same
            changed = list(tokens)
            for row, forms in ((one, second), (two, first)):
                _, gender, plural = NOUN_FORMS[words[row - 1]]
                changed[row] = Token(tokens[row].space, forms[gender, plural])
            yield Altered("attributes", joined(changed))
            return
