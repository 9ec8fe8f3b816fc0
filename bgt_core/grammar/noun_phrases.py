"""Noun phrases of either language: determiner, adjective, noun and owner.

Object pronouns are excluded because they can't be derived safely here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from bgt_core.grammar.nouns import MASS
from bgt_core.grammar.voice import Voice
from bgt_core.grammar.words import VOWEL, Lexeme

NUMBERS = {"two": "deux", "three": "trois", "four": "quatre", "five": "cinq", "six": "six", "ten": "dix"}


class NP(NamedTuple):
    det: str  # the, some, this, what, my, your, our, own, all, of, a number; "" for pronouns and names
    noun: Lexeme
    plural: str = ""  # "plural" or ""
    adjective: Lexeme | None = None
    owner: NP | None = None  # the owner of "the teacher's car"


class Who(NamedTuple):
    """The features of a subject that a French verb agrees with."""

    text: str
    person: int  # 0 je ... 5 ils
    owns: int  # the person of its possessives: "on" has "notre"
    gender: str
    plural: bool


POSSESSIVE = ("my", "your", "his", "our", "your", "their")
_SINGULAR, _PLURAL = "mon ton son notre votre leur".split(), "mes tes ses nos vos leurs".split()
_AN = re.compile(r"(?!uni|use)[aeiou]|ho(nest|ur)")


def en_person(np: NP) -> int:
    return int(np.noun.kind) if np.noun.kind.isdigit() else 5 if np.plural else 2


def en_np(v: Voice, np: NP, own: str = "", neg: bool = False) -> str:
    """`own`: the possessive of the subject; `neg`: "some" becomes "any"."""
    noun = v.word(np.noun.en)[bool(np.plural)]
    phrase = f"{v.word(np.adjective.en)} {noun}" if np.adjective else noun
    many = np.plural or np.noun.kind in MASS
    if np.owner:
        owner = en_np(v, np.owner)
        det = owner + ("'" if np.owner.plural and owner.endswith("s") else "'s")
    elif np.det == "some":
        det = ("any" if neg else "some") if many else "an" if _AN.match(phrase) else "a"
    else:
        this = "these" if np.plural else "this"
        what = "what" if many else "what an" if _AN.match(phrase) else "what a"
        det = {"this": this, "what": what, "own": own, "all": ""}.get(np.det, np.det)
    return f"{det} {phrase}".lstrip()


def fr_np(v: Voice, np: NP, owns: int = 2, neg: bool = False) -> tuple[str, str]:
    """The phrase, before elision and contraction, and its gender. After a negation "un" becomes "de"."""
    singular, plural, gender = v.word(np.noun.fr)
    many = bool(np.plural)
    phrase, before = plural if many else singular, False
    if np.adjective:
        before, forms, vowel = v.word(np.adjective.fr)
        form = vowel if before and (gender, many) == ("m", False) and VOWEL.match(phrase) else forms[gender, many]
        phrase = f"{form} {phrase}" if before else f"{phrase} {form}"
    det = _fr_det(v, np, phrase, gender, owns, "de" if neg else _fr_some(np, gender, before))
    owner = f" de {fr_np(v, np.owner)[0]}" if np.owner else ""
    return f"{det} {phrase}{owner}".lstrip(), gender


def _fr_det(v: Voice, np: NP, phrase: str, gender: str, owns: int, some: str) -> str:
    """The determiner of a phrase; `some` stands for "some", and `owns` is the person of "own"."""
    many = bool(np.plural)
    if np.det in ("my", "your", "our", "own"):
        return _fr_possessive(v, np, phrase, gender, owns)
    determiners = {
        "": "",
        "some": some,
        "what": ("quelle" if gender == "f" else "quel") + "s" * many,
        "this": "ces" if many else "cette" if gender == "f" else "cet" if VOWEL.match(phrase) else "ce",
        **NUMBERS,
    }
    return determiners.get(np.det, _fr_the(np, gender))


def _fr_the(np: NP, gender: str) -> str:
    return "les" if np.plural else "la" if gender == "f" else "le"


def _fr_some(np: NP, gender: str, adjective_first: bool) -> str:
    if np.noun.kind in MASS:
        return f"de {_fr_the(np, gender)}"
    if np.plural:
        return "de" if adjective_first else "des"
    return "une" if gender == "f" else "un"


def _fr_possessive(v: Voice, np: NP, phrase: str, gender: str, owns: int) -> str:
    """ "mon", "ta" before a consonant, "nos"; "your" is "ton" or "votre" by the register."""
    person = {"my": 0, "our": 3, "own": owns}.get(np.det)
    if person is None:
        person = 1 if v.pick("you", "tu", "vous") == "tu" else 4
    if np.plural:
        return _PLURAL[person]
    feminine = person < 3 and gender == "f" and not VOWEL.match(phrase)
    return _SINGULAR[person].replace("on", "a") if feminine else _SINGULAR[person]


def fr_who(v: Voice, np: NP) -> Who:
    if not np.noun.kind.isdigit():
        text, gender = fr_np(v, np)
        person = 5 if np.plural else 2
        return Who(text, person, person, gender, bool(np.plural))
    person, (text, _, gender) = int(np.noun.kind), np.noun.fr[0]
    if person == 1 and v.pick("you", "tu", "vous") == "vous":
        return Who("vous", 4, 4, gender, False)
    if person == 3 and v.pick("we", "nous", "on") == "on":
        return Who("on", 2, 3, gender, True)
    return Who(text, person, person, gender, person in (3, 5))
